"""Why a task is not running, as the API shows it."""

from typing import Any, Self

from pydantic import Field

from headrace.tasks.model import TaskStatus
from headrace.tasks.schemas import TASK_ID, Answer
from headrace.tasks.why import Code, Explanation


class ReasonOut(Answer):
    code: Code
    text: str = Field(description="For people.", examples=["No worker is alive."])
    facts: dict[str, Any] = Field(description="For programs, by `code`.")


class WhyOut(Answer):
    """Why a task is not running, the most important reason first."""

    task_id: str = Field(examples=[TASK_ID])
    status: TaskStatus
    reasons: list[ReasonOut]

    @classmethod
    def of(cls, explained: Explanation) -> Self:
        reasons = [ReasonOut(code=each.code, text=each.text, facts=each.facts) for each in explained.reasons]
        return cls(task_id=explained.task.id, status=explained.task.status, reasons=reasons)
