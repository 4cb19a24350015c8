"""What a newcomer stumbled over in the first hour, each answered by one clear line now."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from headrace import ids
from headrace.accounts.schemas import ApiKeyIn
from headrace.schedules.cron import cron_of
from headrace.schedules.errors import CronInvalid
from tests.cli.conftest import Call, Place
from tests.conftest import TestServer

_TASKS = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, status, error_code, error_message, labels, finished_at)
SELECT $1 || number, 'u_00000000000000000000000000', 'invoice.render', 'Invoice ' || number, 'FAILED', 'handler_failed',
       'KeyError: ' || number || E'\\nTraceback', jsonb_build_object('batch', number::text), now()
FROM generate_series(1, 3) AS number
"""


@pytest.fixture
async def failed(server: TestServer, migrated: Place) -> Place:
    """Three tasks that failed, one of them submitted with a key."""
    await server.run(_TASKS.replace("$1", "'tsk_'"), database=migrated.name)
    await server.run("UPDATE headrace.tasks SET idempotency_key = 'inv-2' WHERE id = 'tsk_2'", database=migrated.name)
    return migrated


@pytest.mark.parametrize(
    ("option", "found"),
    [
        (("--title", "invoice 3"), ["tsk_3"]),
        (("--label", "batch=1"), ["tsk_1"]),
        (("--idempotency-key", "inv-2"), ["tsk_2"]),
        (("--error", "keyerror: 2"), ["tsk_2"]),
        (("--error", "HANDLER"), ["tsk_3", "tsk_2", "tsk_1"]),
    ],
)
def test_tasks_are_found_by_title_label_key_and_error(
    call: Call, failed: Place, option: tuple[str, str], found: list[str]
) -> None:
    """`tasks list` had no error column and no such filters."""
    shown = call("tasks", "list", *option, settings=failed.settings)
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == found
    assert "KeyError: " in shown.out
    assert "Traceback" not in shown.out  # the first line says it


@pytest.fixture
async def scheduled(server: TestServer, migrated: Place) -> Place:
    for name, kind in (("headrace: purge", "headrace.purge"), ("Nightly", "report.build")):
        await server.run(
            "INSERT INTO headrace.scheduled_tasks (uid, name, type, enabled) VALUES ($1, $2, $3, false)",
            ids.new("sch"),
            name,
            kind,
            database=migrated.name,
        )
    return migrated


def test_schedules_of_the_product_are_listed_only_when_asked_for(call: Call, scheduled: Place) -> None:
    """`schedules list` showed 16 schedules of Headrace's own."""
    listed = call("schedules", "list", settings=scheduled.settings).out
    assert ("Nightly" in listed, "purge" in listed) == (True, False)
    assert "purge" in call("schedules", "list", "--internal", settings=scheduled.settings).out
    assert "purge" in call("schedules", "list", "--type", "headrace.purge", settings=scheduled.settings).out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_data_folder_that_cannot_be_written_is_one_clear_line(call: Call, tmp_path: Path) -> None:
    """It was "this should not have happened: PermissionError"."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    for folder in (closed, Path("/root/headrace-data")):
        done = call("up", settings={"HEADRACE_DATA_DIR": str(folder)})
        assert "set HEADRACE_DATA_DIR" in done.complaint


def test_a_misspelt_scope_is_named_with_the_one_that_was_meant() -> None:
    """It was answered in pydantic's words."""
    with pytest.raises(ValidationError) as refused:
        ApiKeyIn.model_validate({"name": "x", "scopes": ["tasks:raed"]})
    (error,) = refused.value.errors()
    assert error["msg"] == "Value error, 'tasks:raed' is not a scope: did you mean tasks:read?"


@pytest.mark.parametrize(("expression", "span"), [("61 * * * *", "0 to 59"), ("* 24 * * *", "0 to 23")])
def test_a_bad_field_of_a_cron_expression_is_told_with_its_range(expression: str, span: str) -> None:
    with pytest.raises(CronInvalid, match=span):
        cron_of(expression)


def test_commands_are_silent_while_they_connect(call: Call, migrated: Place) -> None:
    """ "· looking at the database" stood on standard error of every command."""
    assert call("tasks", "list", settings=migrated.settings).err == ""
