"""A backup goes from the embedded PostgreSQL to Debian's and back, whatever the versions of the two."""

import psycopg
import pytest

from headrace.embedded_postgres import EmbeddedConfig, Server, attach
from tests.cli.backups import PROGRAM_SCHEMA, counts, write_bill, writing_all_the_time
from tests.clusters import copy_cluster, migrated_cluster
from tests.e2e.conftest import MakeFolder, address
from tests.e2e.program import CHEAP, SECRET_KEY, layout_of, run_program


@pytest.mark.slow
def test_from_the_embedded_server_to_debians_and_back(make_folder: MakeFolder, debian: Server) -> None:
    """With a program's own schema, under load; as the documented roles there, without a superuser."""
    with psycopg.connect(debian.superuser_url, autocommit=True) as connection:
        connection.execute("ALTER ROLE headrace_migrator CREATEROLE")  # to make roles for programs' schemas
    here, back = make_folder(), make_folder()
    copy_cluster(migrated_cluster(), layout_of(here).home)
    settings = {**CHEAP, **SECRET_KEY}
    with attach(EmbeddedConfig(here / ".headrace")):
        made = run_program("database", "schema", "invoices", folder=here, settings=settings)
        assert made.code == 0, made.err
        url = made.out.strip()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(PROGRAM_SCHEMA)
            for _ in range(20):
                write_bill(connection)
        with writing_all_the_time(url):
            done = run_program("backup", "b", folder=here, settings=settings)
        assert done.code == 0, done.err

    there = {
        **settings,
        "HEADRACE_DATABASE_URL": address(debian, "headrace_service", "choose-another"),
        "HEADRACE_DATABASE_OWNER_URL": address(debian, "headrace_migrator", "choose-one"),
        "HEADRACE_DATA_DIR": "there",
    }
    restored = run_program("restore", "b", "--verify", folder=here, settings=there)
    assert restored.code == 0, restored.err
    found = counts(debian.url_for_superuser, "invoices")
    assert found["bills"] == found["tasks"] == found["totals"]
    password = url.partition("//")[2].partition("@")[0].partition(":")[2]
    with psycopg.connect(address(debian, "invoices", password), autocommit=True) as connection:
        write_bill(connection)  # with the password that it had
    for words in (("doctor",), ("audit", "verify"), ("ledger", "verify")):
        assert run_program(*words, folder=here, settings=there).code == 0, words
    done = run_program("backup", "c", folder=here, settings=there)
    assert done.code == 0, done.err

    again = run_program("restore", str(here / "c"), "--verify", folder=back, settings=settings)
    assert again.code == 0, again.err
    assert "the role invoices has no password yet" in again.err  # only a superuser could have read it there
    with attach(EmbeddedConfig(back / ".headrace")) as server:
        now = counts(server.url_for_superuser, "invoices")
    assert now["bills"] == now["tasks"] == found["bills"] + 1  # type: ignore[operator]
