"""``headrace audit``: search, export, verify, prove, import."""

import asyncio
import base64
import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace import audit
from headrace.audit import Action, Principal, PrincipalType, Resource, ResourceType, Who, signing
from headrace.cli.audit import RecordCount
from headrace.database import Database, DatabaseConfig
from tests.cli.conftest import Call, Place

ROOT = Path(__file__).parents[2]
KEY = base64.b64encode(bytes(range(32))).decode()


def record(place: Place, count: int = 3) -> Sequence[str]:
    async def write() -> Sequence[str]:
        who = Who(Principal("u_ada", "ada", PrincipalType.USER), audit.ActorType.USER, client_ip="192.0.2.7")
        async with await Database.connect(DatabaseConfig(place.app_url)) as db, db.transaction() as tx:
            return [
                str(await audit.record(tx, who, Action.CREATED, Resource(ResourceType.TASK, f"tsk_{n}"), new={"id": n}))
                for n in range(count)
            ]

    return asyncio.run(write())


def tamper(place: Place, sql: str) -> None:
    async def change() -> None:
        connection = await asyncpg.connect(place.owner_url)
        await connection.execute(f"SET session_replication_role = replica; {sql}")
        await connection.close()

    asyncio.run(change())


def test_list_show_and_export(call: Call, migrated: Place, tmp_path: Path) -> None:
    events = record(migrated)  # some in one millisecond: those are listed by their ids
    done = call("audit", "list", "--type", "task", "--json", settings=migrated.settings)
    assert [event["id"] for event in json.loads(done.out)] == sorted(events, reverse=True)
    done = call("audit", "list", "-s", "tsk_1 ada", settings=migrated.settings)
    assert events[1] in done.out
    assert events[0] not in done.out
    assert json.loads(call("audit", "show", events[0], settings=migrated.settings).out)["id"] == events[0]
    assert call("audit", "show", "aud_nothing", settings=migrated.settings).code == 3
    done = call("audit", "export", "--user", "u_ada", settings=migrated.settings)
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == sorted(events, reverse=True)
    assert "3 events exported" in done.err
    file = tmp_path / "trail.csv"
    done = call("audit", "export", "--format", "csv", "-o", str(file), "--type", "task", settings=migrated.settings)
    assert (done.code, done.out) == (0, "")
    assert [row["id"] for row in csv.DictReader(io.StringIO(file.read_text()))] == sorted(events, reverse=True)
    kept = call("audit", "export", "-o", str(file), settings=migrated.settings)
    assert (kept.code, kept.err.splitlines()[-1]) == (2, f"headrace: {file} exists: --force replaces it.")
    assert call("audit", "export", "-o", str(file), "--force", settings=migrated.settings).code == 0
    for words in (("--since", "yesterday"), ("--search", " ")):
        assert call("audit", "list", *words, settings=migrated.settings).code == 2


def test_a_failed_login_is_listed_as_one(call: Call, migrated: Place) -> None:
    async def write() -> None:
        user = Resource(ResourceType.USER, "u_ada", {"username": "ada"})
        async with await Database.connect(DatabaseConfig(migrated.app_url)) as db, db.transaction() as tx:
            for data in ({"outcome": "failure", "reason": "wrong_password"}, {"outcome": "success"}):
                await audit.record(tx, Who.system(), Action.LOGIN, user, data=data)

    asyncio.run(write())
    listed = call("audit", "list", "--action", "login", settings=migrated.settings).out
    assert sum("login failed (wrong_password)" in line for line in listed.splitlines()) == 1
    assert listed.count("login") == 2


def test_exported_events_are_counted_by_records_not_by_lines() -> None:
    whole = b'id,remark\r\n1,"two\nlines, ""quoted"""\r\n2,plain\r\n'
    for size in (1, 5, len(whole)):
        records = RecordCount(header=True)
        for start in range(0, len(whole), size):
            records.add(whole[start : start + size])
        assert records.count == 2


@pytest.mark.parametrize(
    "url", ["postgresql://ada:hunter2@127.0.0.1:1/app", "mysql://ada:hunter2@db/app", "postgresql://ada:hunter2@[/app"]
)
def test_an_address_that_cannot_be_imported_from_is_named_without_its_password(
    call: Call, migrated: Place, url: str
) -> None:
    done = call("audit", "import", "--from", url, settings=migrated.settings)
    assert done.code not in (0, 1), done.err
    assert "--from" in done.err
    assert "hunter2" not in done.err + done.out + repr(DatabaseConfig(url))


def test_verify_names_what_does_not_fit_and_fails(call: Call, migrated: Place) -> None:
    settings = {**migrated.settings, "HEADRACE_AUDIT_SIGNING_KEY": KEY}
    events = record(migrated)
    assert call("audit", "seal", settings=settings).out == "3 events sealed in 1.\n"
    record(migrated, 1)
    done = call("audit", "verify", settings=settings)
    assert (done.code, done.out) == (0, "3 events in 1 seal are as they were sealed.\n")
    assert "1 newer ones are not sealed yet" in done.err
    empty = call("audit", "verify", "--month", "2025-01", settings=settings)
    assert (empty.code, empty.out) == (0, "2025-01 has no sealed events; the chain of 1 seal is whole.\n")
    tamper(migrated, f"UPDATE headrace.audit_events SET user_agent = 'x' WHERE id = '{events[1]}'")
    done = call("audit", "verify", settings=settings)
    assert done.code == 1
    assert f"{events[1]} in seal 1" in done.out
    found = json.loads(call("audit", "verify", "--json", settings=settings).out)
    assert (found["ok"], found["finding"]["event_id"], found["finding"]["flaw"]) == (False, events[1], "changed")
    assert call("audit", "verify", "--month", "2020-01", settings=settings).code == 0
    assert call("audit", "verify", "--month", "2020", settings=settings).code == 2


def test_a_signed_trail_is_not_sealed_without_the_key(call: Call, migrated: Place) -> None:
    settings = {**migrated.settings, "HEADRACE_AUDIT_SIGNING_KEY": KEY}
    record(migrated)
    assert call("audit", "seal", settings=migrated.settings).code == 0, "nothing is signed yet"
    record(migrated)
    assert call("audit", "seal", settings=settings).code == 0
    record(migrated)
    refused = call("audit", "seal", settings=migrated.settings)
    assert (refused.code, "set HEADRACE_AUDIT_SIGNING_KEY" in refused.complaint) == (4, True)
    assert call("audit", "verify", "--json", settings=settings).code == 0, "whose last seal would not be signed"
    assert call("audit", "seal", settings=settings).out == "3 events sealed in 1.\n"


def test_a_signed_trail_that_was_cut_off_is_noticed_by_its_kept_head(
    call: Call, migrated: Place, tmp_path: Path
) -> None:
    settings = {
        **migrated.settings,
        "HEADRACE_AUDIT_SIGNING_KEY": KEY,
        "HEADRACE_ARCHIVE_URL": str(tmp_path / "archive"),
    }
    for _ in range(2):
        record(migrated)
        assert call("audit", "seal", settings=settings).code == 0
    whole = call("audit", "verify", "--json", settings=settings)
    assert (whole.code, json.loads(whole.out)["heads"]) == (0, 2)
    tamper(
        migrated,
        "DELETE FROM headrace.audit_events WHERE seq > 3; DELETE FROM headrace.audit_leaves WHERE seal = 2; "
        "DELETE FROM headrace.audit_seals WHERE number = 2",
    )
    done = call("audit", "verify", settings=settings)
    assert (done.code, "Its end was cut off: seal 2, up to which the trail was verified" in done.out) == (1, True)
    done = call("audit", "verify", "--whole", settings=settings)
    assert (done.code, "Its end was cut off: the trail ends with seal 1" in done.out) == (1, True)


def test_roots_that_were_kept_show_that_a_trail_was_cut_off(call: Call, migrated: Place, tmp_path: Path) -> None:
    settings = migrated.settings
    for _ in range(2):
        record(migrated)
        call("audit", "seal", settings=settings)
    file = tmp_path / "roots.jsonl"
    assert "2 seals written" in call("audit", "roots", "-o", str(file), settings=settings).err
    assert call("audit", "verify", "--roots", str(file), settings=settings).code == 0
    tamper(
        migrated,
        "DELETE FROM headrace.audit_events WHERE seq > 3; DELETE FROM headrace.audit_leaves WHERE seal = 2; "
        "DELETE FROM headrace.audit_seals WHERE number = 2",
    )
    done = call("audit", "verify", settings=settings)
    assert done.code == 0
    assert "3 numbers after the last event were given out" in done.err
    assert "no head of the trail is kept outside the database" in done.err
    done = call("audit", "verify", "--roots", str(file), settings=settings)
    assert (done.code, done.out) == (1, "Seal 2, which was exported, is missing.\n")
    file.write_text("nonsense")
    assert call("audit", "verify", "--roots", str(file), settings=settings).code == 2


def check(proof: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The example, by a Python that knows nothing of Headrace."""
    command = [sys.executable, "-I", "-S", str(ROOT / "examples" / "check_proof.py"), str(proof), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_proof_is_checked_without_the_product(call: Call, migrated: Place, tmp_path: Path) -> None:
    events = record(migrated, 5)
    assert call("audit", "proof", events[2], settings=migrated.settings).code == 4
    call("audit", "seal", settings=migrated.settings)
    proof = json.loads(call("audit", "proof", events[2], settings=migrated.settings).out)
    file = tmp_path / "proof.json"

    def checked(changed: dict[str, Any], *words: str) -> int:
        file.write_text(json.dumps(changed))
        return check(file, *words).returncode

    file.write_text(json.dumps(proof))
    done = check(file, proof["seal"]["chain"])
    assert done.returncode == 0, done.stderr
    assert events[2] in done.stdout
    assert checked(proof, "00" * 32) == 1, "another chain than the one that is known"
    assert checked(proof | {"event": proof["event"].replace("tsk_2", "tsk_9")}) == 1
    assert checked(proof | {"path": proof["path"][:-1]}) == 1
    assert checked(proof | {"seal": proof["seal"] | {"number": 7}}) == 1


def test_the_checker_is_thirty_lines() -> None:
    lines = (ROOT / "examples" / "check_proof.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 30
    assert "headrace" not in [word for line in lines if line.startswith(("import", "from")) for word in line.split()]


def test_the_public_key_is_printed(call: Call, migrated: Place) -> None:
    assert call("audit", "key", settings=migrated.settings).code == 2
    settings = {**migrated.settings, "HEADRACE_AUDIT_SIGNING_KEY": KEY}
    public = signing.SigningKey(bytes(range(32))).public
    assert base64.b64decode(call("audit", "key", settings=settings).out) == public
    for bad in ("c2hvcnQ=", "not base64 at all"):
        done = call("audit", "key", settings={**settings, "HEADRACE_AUDIT_SIGNING_KEY": bad})
        assert done.code == 2
        assert "openssl rand -base64 32" in done.complaint
        assert bad not in done.complaint


LEGACY = """
CREATE TABLE public.audit_logs AS
SELECT n AS id, now() - n * interval '1 day' AS created_at, 'create'::text AS action,
       CASE WHEN n = 5 THEN 'spaceship' ELSE 'cluster' END AS resource_type
FROM generate_series(1, 100) AS n
"""


def test_an_import_with_its_report(call: Call, migrated: Place) -> None:
    tamper(migrated, LEGACY)
    words = ("audit", "import", "--from", migrated.owner_url, "--since", "30d")
    dry = json.loads(call(*words, "--dry-run", "--json", settings=migrated.settings).out)
    assert (dry["read"], dry["written"], dry["skipped"]) == (29, 28, {"unknown resource type 'spaceship'": 1})
    stopped = call(*words, "--rename", settings=migrated.settings)
    assert stopped.code == 1
    assert "1 skipped: unknown resource type 'spaceship'\n    rows 5\n" in stopped.out
    assert "29 rows there ≠ 0 events here + 1 skipped" in stopped.out
    assert "nothing was imported" in stopped.err
    done = call(*words, "--accept-skipped", settings=migrated.settings)
    assert done.code == 0, done.err
    assert "29 read" in done.out
    assert "29 rows there = 28 events here + 1 skipped" in done.out
    again = call(*words, "--map-type", "spaceship=instance", "--rename", "--json", settings=migrated.settings)
    assert again.code == 0, again.err
    found = json.loads(again.out)
    assert (found["written"], found["present"], found["renamed_to"]) == (1, 28, "audit_logs_backup")
    assert call(*words, settings=migrated.settings).code == 2


@pytest.mark.parametrize(
    "words", [("--since", "long ago"), ("--map-type", "a=b"), ("--map-action", "nothing"), ("--table", "nowhere")]
)
def test_an_import_that_cannot_be(call: Call, migrated: Place, words: tuple[str, str]) -> None:
    assert call("audit", "import", "--from", migrated.owner_url, *words, settings=migrated.settings).code == 2


def test_a_verification_continues_and_says_when_all_was_verified(call: Call, migrated: Place) -> None:
    record(migrated)
    assert call("audit", "seal", settings=migrated.settings).code == 0
    first = json.loads(call("audit", "verify", "--json", settings=migrated.settings).out)
    assert (first["ok"], first["continued_from"]) == (True, 0)
    record(migrated)
    assert call("audit", "seal", settings=migrated.settings).code == 0
    second = json.loads(call("audit", "verify", "--json", settings=migrated.settings).out)
    assert (second["ok"], second["continued_from"], second["sampled"]) == (True, first["seals"], first["seals"])
    assert second["whole_at"] == first["whole_at"]
    shown = call("audit", "verify", settings=migrated.settings).out
    assert "--whole does it again" in shown
    whole = json.loads(call("audit", "verify", "--whole", "--json", settings=migrated.settings).out)
    assert (whole["continued_from"], whole["events"]) == (0, first["events"] + second["events"])
