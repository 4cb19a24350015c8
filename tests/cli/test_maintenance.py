"""What has to be done whoever runs: a deployment of schedulers and workers, without an API, is taken care of."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Place
from tests.cli.test_admin import fetch
from tests.conftest import TestServer
from tests.e2e.program import Program, eventually

MONTHS = "SELECT tablename FROM pg_tables WHERE tablename ~ '^audit_events_y' ORDER BY tablename DESC LIMIT 1"
DONE = """
SELECT (SELECT count(*) FROM headrace.audit_seals) > 0
   AND (SELECT bool_and(status = 'COMPLETED') FROM headrace.account_deletions)
   AND to_regclass('headrace.{month}') IS NOT NULL
   AND (SELECT bool_and(ended_at IS NOT NULL) FROM headrace.workers) AS done
"""
SILENT = """
INSERT INTO headrace.workers (id, host, pid, queues, types, labels, concurrency, lease, heartbeat_at)
VALUES ('wrk_1', 'gone', 1, NULL, '{}', '{}', 1, interval '1 second', now() - interval '1 hour')
"""
ONCE = """
SELECT count(*) FILTER (WHERE resource_type = 'account' AND action = 'deleted') AS deletions,
       count(*) FILTER (WHERE resource ->> 'identifier' = '{month}') AS months
FROM headrace.audit_events
"""


@pytest.fixture
async def neglected(server: TestServer, migrated: Place) -> tuple[Place, str]:
    """The last month ahead is missing."""
    month = (await server.run(MONTHS, database=migrated.name))[0]["tablename"]
    await server.run(f"DROP TABLE headrace.{month}", database=migrated.name)
    return migrated, month


@pytest.fixture
def schedulers(tmp_path: Path, neglected: tuple[Place, str], call: Call) -> Iterator[Place]:
    place, _ = neglected
    settings = {
        **place.settings,
        "HEADRACE_AUDIT_SEAL_INTERVAL": "100ms",
        "HEADRACE_ACCOUNT_DELETION_GRACE": "0s",
    }
    call("admin", "create", "root", settings=settings)
    call("admin", "create", "ada", settings=settings)
    call("admin", "delete", "ada", "--yes", settings=settings)
    fetch(place, SILENT)
    programs = [Program("scheduler", folder=tmp_path, settings=settings) for _ in range(2)]
    yield place
    for program in programs:
        program.close()


def test_schedulers_seal_and_keep_ahead_and_delete_accounts_and_give_up_the_dead(
    schedulers: Place, neglected: tuple[Place, str]
) -> None:  # W-16, W-17
    _, month = neglected
    assert eventually(lambda: fetch(schedulers, DONE.format(month=month))[0]["done"])
    assert dict(fetch(schedulers, ONCE.format(month=month))[0]) == {"deletions": 1, "months": 1}
