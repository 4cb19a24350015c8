"""What a worker runs while operators look at it."""

from typing import Literal

from pydantic import BaseModel

from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry

registry = Registry()


class Report(BaseModel):
    customer: str
    format: Literal["pdf", "html"] = "pdf"


@registry.task("report.build", max_attempts=1)
async def build(context: TaskContext, payload: Report) -> dict[str, str]:
    """Builds a report."""
    async with context.step("gather"):
        pass
    async with context.step("draw"):
        if payload.customer == "nobody":
            raise ValueError("<b>there is no such customer</b>")
    return {"for": payload.customer}
