"""What a task type is declared with is checked when the module is loaded, and the message says what was meant."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import Registry
from headrace.tasks.execution import BadTaskType


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_atempts": 3}, "did you mean max_attempts?"),
        ({"retries": 3}, "there are backoff, description,"),
        ({"payload": dict}, "there are backoff,"),
        ({"timeout": 30}, "timeout of greet is a timedelta, such as timedelta(seconds=30), not 30."),
        ({"max_attempts": 0}, "max_attempts of greet is a whole number from 1 on, not 0."),
        ({"max_running": "4"}, "max_running of greet is a whole number from 1 on, not '4'."),
    ],
)
def test_a_slip_of_the_pen_is_told(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadTaskType) as refused:
        Registry().task("greet", **options)
    assert said in refused.value.message


def test_what_is_right_is_taken() -> None:
    registry = Registry()

    @registry.task("greet", max_attempts=1, timeout=None, grace=timedelta(0), max_running=None, steps=["one"])
    async def greet(context: Any, payload: Any) -> None: ...

    assert registry.get("greet").steps == ("one",)
