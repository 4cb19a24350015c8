"""``headrace backup`` and ``headrace restore``: everything comes back, and nothing that is not whole looks healthy."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from headrace.backup import model, restoring
from tests.cli.backups import PROGRAM_SCHEMA, counts, plain, settings_of, write_bill, writing_all_the_time
from tests.cli.conftest import Call, Place
from tests.conftest import MakeDatabase, TestServer
from tests.e2e.program import Program, eventually


@pytest.fixture
async def source(server: TestServer, template: str, make_database: MakeDatabase) -> Place:
    name = await make_database(template)
    return Place(name, server.url(name, role="headrace_app"), server.url(name))


@pytest.fixture
def role(source: Place, empty: Place) -> Iterator[str]:
    """The name of a schema and its role, which belongs to the whole server."""
    name = f"bills_{source.name[-8:]}"
    yield name
    for place in (source, empty):
        with psycopg.connect(place.owner_url, autocommit=True) as connection:
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [name]).fetchone() is not None:
                connection.execute(f"DROP OWNED BY {name} CASCADE")
    with psycopg.connect(empty.owner_url, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {name}")


def submit(place: Place, count: int = 3) -> None:
    with psycopg.connect(place.owner_url) as connection:
        for _ in range(count):
            connection.execute("SELECT headrace.submit('book', '{}', unknown_type => 'wait')")


def tasks_in(place: Place) -> int:
    with psycopg.connect(place.owner_url) as connection:
        [count] = connection.execute("SELECT count(*) FROM headrace.tasks").fetchone() or [0]
    return int(count)


def test_a_backup_under_load_is_of_one_moment_and_comes_back_whole(
    call: Call, source: Place, empty: Place, role: str, tmp_path: Path
) -> None:
    here, there = settings_of(source, tmp_path / "here"), settings_of(empty, tmp_path / "there")
    made = call("database", "schema", role, settings=here)
    url = plain(made.out.strip())
    with psycopg.connect(url) as connection:
        connection.execute(PROGRAM_SCHEMA)
    with psycopg.connect(source.owner_url) as connection:
        connection.execute(f"GRANT SELECT (id, status) ON headrace.tasks TO {role} WITH GRANT OPTION")
    with writing_all_the_time(url):
        done = call("backup", "all.backup", "--json", settings=here)
    assert done.code == 0, done.err
    assert (tmp_path / "all.backup").stat().st_mode & 0o777 == 0o600
    assert json.loads(done.out)["schemas"] == [role]

    restored = call("restore", "all.backup", "--verify", settings=there)
    assert restored.code == 0, restored.err
    assert "verified: every row and file" in restored.out
    found = counts(empty.owner_url, role)
    assert found["bills"] == found["lines"] == found["tasks"] == found["totals"]
    assert found["remarks"] == ["tab\tnew\nline \\ and \\."]
    with psycopg.connect(empty.owner_url, autocommit=True) as connection:
        connection.execute(f"SET ROLE {role}; SET search_path = {role}")
        write_bill(connection)  # sequences, rights and triggers are there
        connection.execute("RESET ROLE")
        rights = "SELECT has_column_privilege(%s, 'headrace.tasks', 'id', 'SELECT WITH GRANT OPTION')"
        assert connection.execute(rights, [role]).fetchone() == (True,)
    assert call("doctor", settings=there).code == 0


def schema_of(place: Place) -> object:
    """Constraints, triggers with their modes, indexes and rights, by name."""
    with psycopg.connect(place.owner_url) as connection:
        return [
            sorted(map(str, connection.execute(query).fetchall()))
            for query in (
                "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint "
                "WHERE connamespace = 'headrace'::regnamespace",
                "SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal",
                "SELECT indexdef FROM pg_indexes WHERE schemaname = 'headrace'",
                "SELECT relname, relacl, relowner FROM pg_class WHERE relnamespace = 'headrace'::regnamespace "
                "AND relkind <> 't'",
            )
        ]


def test_a_restore_leaves_the_schema_as_migrations_make_it(
    call: Call, source: Place, empty: Place, tmp_path: Path
) -> None:
    """Foreign keys that were dropped for the load, and triggers that were disabled, are as before."""
    submit(source)
    assert call("backup", "b", settings=settings_of(source, tmp_path / "here")).code == 0
    assert call("restore", "b", settings=settings_of(empty, tmp_path / "there")).code == 0
    assert schema_of(empty) == schema_of(source)


def test_a_target_with_data_is_refused_unless_it_is_to_be_replaced(
    call: Call, source: Place, migrated: Place, tmp_path: Path
) -> None:
    here, there = settings_of(source, tmp_path / "here"), settings_of(migrated, tmp_path / "there")
    submit(source, 3)
    submit(migrated, 5)
    stale = tmp_path / "there" / "archive" / "audit_heads" / "2026-01-01" / f"{9:012}-{'0' * 64}.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    assert call("backup", "b", settings=here).code == 0
    again = call("backup", "b", settings=here)
    assert (again.code, "--force" in again.complaint) == (4, True)

    refused = call("restore", "b", settings=there)
    assert (refused.code, "--replace" in refused.complaint) == (4, True)
    assert tasks_in(migrated) == 5
    replaced = call("restore", "b", "--replace", "--verify", settings=there)
    assert replaced.code == 0, replaced.out + replaced.err  # also: no head of the former trail contradicts the new one
    assert tasks_in(migrated) == 3
    assert not stale.exists()
    assert [each.name for each in (tmp_path / "there" / "archive").rglob("*.json")] == [stale.name]


def test_files_of_the_archive_that_are_there_are_not_mixed_with_the_backup(
    call: Call, source: Place, empty: Place, tmp_path: Path
) -> None:
    there = settings_of(empty, tmp_path / "there")
    assert call("backup", "b", settings=settings_of(source, tmp_path / "here")).code == 0
    (tmp_path / "there" / "files" / "media").mkdir(parents=True)
    (tmp_path / "there" / "files" / "media" / "x").write_text("x")
    assert "--replace" in call("restore", "b", settings=there).complaint


def test_a_database_in_use_is_not_replaced(call: Call, source: Place, migrated: Place, tmp_path: Path) -> None:
    assert call("backup", "b", settings=settings_of(source, tmp_path / "here")).code == 0
    with psycopg.connect(migrated.owner_url, application_name="headrace worker here:1"):
        refused = call("restore", "b", "--replace", settings=settings_of(migrated, tmp_path / "there"))
    assert (refused.code, "headrace worker here:1" in refused.complaint) == (4, True)


def damaged(content: bytes, how: str) -> bytes:
    middle = content.index(b"tables/headrace.users.copy") + 60  # behind the header
    return {
        "cut off": content[: len(content) // 2],
        "one byte": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "something else": b"not a backup at all",
        "empty": b"",
    }[how]


@pytest.mark.parametrize("how", ["cut off", "one byte", "something else", "empty"])
def test_a_damaged_backup_is_refused_before_anything_is_touched(
    call: Call, source: Place, migrated: Place, tmp_path: Path, how: str
) -> None:
    submit(migrated)
    assert call("backup", "b", settings=settings_of(source, tmp_path / "here")).code == 0
    file = tmp_path / "b"
    file.write_bytes(damaged(file.read_bytes(), how))
    refused = call("restore", "b", "--replace", settings=settings_of(migrated, tmp_path / "there"))
    assert refused.code == 2, refused.err
    assert str(file) in refused.complaint
    assert tasks_in(migrated) == 3


def test_another_secret_key_is_refused(call: Call, source: Place, empty: Place, tmp_path: Path) -> None:
    there = settings_of(empty, tmp_path / "there")
    assert call("backup", "b", settings=settings_of(source, tmp_path / "here")).code == 0
    with zipfile.ZipFile(tmp_path / "b") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
        key = model.Manifest.from_bytes(archive.read(model.MANIFEST)).key_fingerprint
    assert source.settings["HEADRACE_SECRET_KEY"].encode() not in content  # the key itself is never in it
    other = {**there, "HEADRACE_SECRET_KEY": "another secret of the tests, long enough"}
    refused = call("restore", "b", settings=other)
    assert (refused.code, str(key) in refused.complaint) == (4, True)
    none = {name: value for name, value in there.items() if name != "HEADRACE_SECRET_KEY"}
    assert "there is none here" in call("restore", "b", settings=none).complaint
    assert call("restore", "b", "--other-key", settings=other).code == 0


ASSET = """
INSERT INTO headrace.assets (id, user_id, media_type, storage_key, origin_name, mime_type, size_bytes, sha256)
SELECT %(id)s, id, 'IMAGE', %(key)s, 'a.png', 'image/png', 1, repeat('0', 64) FROM headrace.users LIMIT 1
"""


def test_files_that_rows_name_are_in_it_and_one_that_was_deleted_is_noted(
    call: Call, source: Place, empty: Place, tmp_path: Path
) -> None:
    here, there = settings_of(source, tmp_path / "here"), settings_of(empty, tmp_path / "there")
    with psycopg.connect(source.owner_url) as connection:
        for name in ("kept", "deleted"):
            connection.execute(ASSET, {"id": f"ast_{name}", "key": f"u/{name}"})
    media = tmp_path / "here" / "files" / "media" / "u"
    media.mkdir(parents=True)
    (media / "kept").write_bytes(b"bytes" * 1000)
    (media / "nobodys").write_bytes(b"bytes")  # such as an upload that began after the snapshot
    month = tmp_path / "here" / "archive" / "audit_events" / "2026-01.parquet"
    month.parent.mkdir(parents=True)
    month.write_bytes(b"rows")
    done = call("backup", "b", settings=here)
    assert "warning: the file media/u/deleted was deleted" in done.err
    restored = call("restore", "b", "--verify", settings=there)
    assert restored.code == 0, restored.err
    assert "warning: the file media/u/deleted was gone" in restored.err
    files = tmp_path / "there" / "files"
    assert [file.relative_to(files).as_posix() for file in files.rglob("*") if file.is_file()] == ["media/u/kept"]
    assert (files / "media" / "u" / "kept").read_bytes() == b"bytes" * 1000
    assert (tmp_path / "there" / "archive" / "audit_events" / "2026-01.parquet").read_bytes() == b"rows"


def test_heads_that_are_younger_than_the_rows_are_left_out(call: Call, source: Place, tmp_path: Path) -> None:
    """The trail is sealed on while the files are copied: such a head would say that the restored trail was cut off."""
    here = settings_of(source, tmp_path / "here")
    submit(source)
    call("audit", "seal", settings=here)
    heads = tmp_path / "here" / "archive" / "audit_heads" / "2026-01-01"
    heads.mkdir(parents=True)
    (heads / f"{9:012}-{'0' * 64}.json").write_text("{}")
    assert call("backup", "b", settings=here).code == 0
    with zipfile.ZipFile(tmp_path / "b") as archive:
        assert not [name for name in archive.namelist() if "000000000009" in name]


BLOCKED = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'headrace.users'::regclass)"


@pytest.mark.parametrize("moment", ["migrating", "loading"])
def test_a_restore_that_is_killed_leaves_a_database_that_everything_refuses(
    call: Call, source: Place, empty: Place, tmp_path: Path, moment: str
) -> None:
    there = settings_of(empty, tmp_path / "there")
    submit(source)
    assert call("backup", "b", settings=settings_of(source, tmp_path / "here")).code == 0
    program = Program("restore", "b", folder=tmp_path, settings=there)
    try:
        with psycopg.connect(empty.owner_url, autocommit=True) as watch:

            def exists(table: str) -> bool:
                return watch.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone() == (True,)

            def is_blocked() -> bool:
                return watch.execute(BLOCKED).fetchone() == (True,)

            assert eventually(lambda: exists("headrace.unfinished_restore"))
            if moment == "loading":
                assert eventually(lambda: exists("headrace.users"))
                with psycopg.connect(empty.owner_url) as holder:
                    holder.execute("LOCK TABLE headrace.users IN ACCESS SHARE MODE")
                    assert eventually(is_blocked)
                    program.kill()
            else:
                program.kill()
            gone = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name LIKE 'headrace %%'"
            assert eventually(lambda: watch.execute(gone, [empty.name]).fetchone() == (0,))
    finally:
        program.close()
    for words in (
        ("up",),
        ("api",),
        ("worker",),
        ("scheduler",),
        ("relay",),
        ("migrate",),
        ("tasks", "list"),
        ("backup", "c"),
    ):
        refused = call(*words, settings=there)
        assert refused.code == 4, (words, refused.err)
        assert "A restore of b began" in refused.complaint, words
    doctor = call("doctor", settings=there)
    assert (doctor.code, "A restore of b began" in doctor.out) == (1, True)

    again = call("restore", "b", "--verify", settings=there)
    assert again.code == 0, again.err
    assert tasks_in(empty) == 3
    assert call("tasks", "list", settings=there).code == 0


def test_a_dump_of_another_version_loses_its_settings_and_keeps_its_functions() -> None:
    """PostgreSQL 15 does not know transaction_timeout; a line of a function may begin with SET as well."""
    script = (
        "\\restrict x\nSET transaction_timeout = 0;\n\n--\n-- Name: bills; Type: SCHEMA\n--\n\nCREATE SCHEMA bills;\n\n"
        "CREATE FUNCTION f() AS $$\nUPDATE t\nSET a = 1;\n$$;\n\\unrestrict x\n"
    )
    text = restoring.portable(script)
    assert "transaction_timeout" not in text
    assert "restrict" not in text
    assert "CREATE SCHEMA" not in text
    assert "UPDATE t\nSET a = 1;" in text


def test_psql_and_pg_dump_need_no_path(
    call: Call, source: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = {**settings_of(source, tmp_path / "here"), "HEADRACE_DATABASE_URL": source.owner_url}
    asked = call("database", "psql", "--", "-Atc", "SELECT 6 * 7", settings=settings)
    assert (asked.code, capfd.readouterr().out) == (0, "42\n")
    assert call("database", "psql", "--", "-c", "nonsense", settings=settings).code == 1
    dumped = call("database", "dump", "d", settings=settings)
    assert dumped.code == 0, dumped.err
    assert (tmp_path / "d").read_bytes().startswith(b"PGDMP")
    assert call("database", "dump", "d", settings=settings).code == 4


def test_a_dump_that_fails_leaves_no_file(call: Call, source: Place, tmp_path: Path) -> None:
    refused = call("database", "dump", "d", "--", "--schema=nowhere", settings=settings_of(source, tmp_path / "here"))
    assert (refused.code, "no matching schemas" in refused.complaint) == (7, True)
    assert list(tmp_path.glob("*d*")) == []
