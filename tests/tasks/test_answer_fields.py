"""REST's answer to a submission is encoded without the model: it must be what the model would have said."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from headrace.edge.idempotency import Answer, _response, _stored
from headrace.tasks.model import Task, TaskId, TaskStatus
from headrace.tasks.schemas import TaskOut

AT = datetime(2026, 3, 1, 8, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("at", [AT, AT.replace(microsecond=120), AT.replace(microsecond=999_999)])
def test_a_submitted_task_is_shown_as_its_model_shows_it(at: datetime) -> None:
    given: dict[str, Any] = dict.fromkeys(Task.__dataclass_fields__)
    numbers = dict.fromkeys(("priority", "progress", "attempt", "retries", "max_attempts", "version"), 3)
    texts = dict.fromkeys(("user_id", "task_type", "title", "queue", "error_message"), "Bericht für März ✓ \u2028")
    instants = dict.fromkeys(("run_at", "queued_at", "started_at", "created_at", "updated_at"), at)
    task = Task(
        **given
        | numbers
        | texts
        | instants
        | {
            "id": TaskId("tsk_1"),
            "status": TaskStatus.QUEUED,
            "payload": {"b": [1.5, -0.0, 1e300, None], "a": {"ü": True}},
        }
    )
    whole = TaskOut.of(task).model_dump(mode="json")
    answered = _response(_stored(Answer(TaskOut.fields_of(task)))).body
    assert orjson.loads(answered) == whole
    assert orjson.dumps(whole, option=orjson.OPT_SORT_KEYS) == answered
