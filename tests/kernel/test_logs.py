"""Logs are JSON for machines and never hold a secret."""

import json
import logging

import pytest

from headrace import logs


def test_lines_are_json_with_one_event_name_and_no_secret(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(format="json")
    logs.get("headrace.test").info("task.claimed", task_id="tsk_1", password="hunter2", api_token="hunter2")
    logging.getLogger("elsewhere").warning("plain %s", "words")
    ours, theirs = (json.loads(line) for line in capfd.readouterr().err.splitlines())
    assert (ours["event"], ours["task_id"], ours["level"]) == ("task.claimed", "tsk_1", "info")
    assert "hunter2" not in json.dumps(ours)
    assert theirs["event"] == "plain words"


def test_people_get_a_readable_line(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(format="human")
    logs.get("headrace.test").warning("queue.paused", queue="reports")
    line = capfd.readouterr().err
    assert "queue.paused" in line
    assert "{" not in line
