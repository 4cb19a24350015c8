"""Actions on many rows as the API takes and shows them."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headrace.admin.bulk.model import MAX_NAMED, MOST_COUNTED, Bulk, BulkResource, ScheduleAction, TaskAction
from headrace.edge.instants import Instant
from headrace.edge.text import Text
from headrace.schedules.schemas import SCHEDULE_ID
from headrace.schedules.store.schedules import ScheduleFilter
from headrace.tasks.model import LABEL, RUNNING, TaskStatus
from headrace.tasks.schemas import TASK_ID
from headrace.tasks.store.counts import COUNT_WALK, Counted
from headrace.tasks.store.tasks import Filter

_Word = Annotated[Text | None, Field(max_length=255)]
_Owner = Annotated[
    Text | None,
    Field(max_length=64, description="Whose, for administrators: a user's id, or `*` for everybody's. Else yours."),
]
_Id = Annotated[Text, Field(max_length=128)]
EVERYBODY = "*"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskFilterIn(_Body):
    """As in the list of tasks. States in which the action cannot be done are left out by themselves."""

    status: Annotated[list[TaskStatus] | None, Field(max_length=20, description="One of these.")] = None
    type: _Word = None
    queue: _Word = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    owner: _Owner = None
    internal: Annotated[bool, Field(description="Tasks of the product itself, too.")] = True
    ids: Annotated[
        list[_Id] | None,
        Field(
            min_length=1, max_length=MAX_NAMED, description="Just these; the rest still applies.", examples=[[TASK_ID]]
        ),
    ] = None

    def wanted(self, user_id: str, action: TaskAction | None) -> Filter:
        """Which tasks these are for this caller, of those to which the action can be done."""
        statuses = set(self.status or TaskStatus)
        if TaskStatus.RUNNING in statuses:  # as in the list: what shows a step as its status runs, too
            statuses |= {*RUNNING}
        chosen = statuses & (action.applies_to if action else set(TaskStatus))
        return Filter(
            _whose(self.owner, user_id),
            sorted(chosen),
            self.type,
            self.queue,
            self.created_after,
            self.created_before,
            self.internal,
        )


class ScheduleFilterIn(_Body):
    """As in the list of schedules."""

    type: _Word = None
    name: _Word = None
    label: Annotated[list[Annotated[str, Field(pattern=f"^{LABEL}={LABEL}$")]] | None, Field(max_length=8)] = None
    owner: _Owner = None
    ids: Annotated[
        list[_Id] | None,
        Field(
            min_length=1,
            max_length=MAX_NAMED,
            description="Just these; the rest still applies.",
            examples=[[SCHEDULE_ID]],
        ),
    ] = None

    def wanted(self, user_id: str, action: ScheduleAction) -> ScheduleFilter:
        labels = dict(each.split("=", 1) for each in self.label or ())
        enabled = action is not ScheduleAction.ENABLE  # those that are as they should be are left alone
        return ScheduleFilter(_whose(self.owner, user_id), self.type, enabled, labels, self.name)


def _whose(owner: str | None, user_id: str) -> str | None:
    return user_id if owner is None else None if owner == EVERYBODY else owner


class _BulkIn(_Body):
    expected: Annotated[
        int,
        Field(
            ge=0,
            le=2**53,
            description="The number that you were shown. If many more match by now, the request is refused.",
        ),
    ]


class TaskBulkIn(_BulkIn):
    action: TaskAction
    filter: TaskFilterIn = TaskFilterIn()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.filter.status and not set(self.filter.status) & self.action.applies_to:
            raise ValueError(f"no task in one of these states can be {_DONE[self.action]}")
        return self


_DONE = {TaskAction.CANCEL: "canceled", TaskAction.RETRY: "tried again", TaskAction.DELETE: "deleted"}


class ScheduleBulkIn(_BulkIn):
    action: ScheduleAction
    filter: ScheduleFilterIn = ScheduleFilterIn()


class CountOut(BaseModel):
    """How many there are."""

    count: int
    exact: bool = Field(
        description=f"False: `count` is a lower bound. Counting ends at {MOST_COUNTED:,}, and after reading "
        f"{COUNT_WALK:,} tasks where a part of the filter has no index."
    )

    @classmethod
    def of(cls, counted: Counted) -> Self:
        return cls(count=counted.count, exact=counted.exact)


class RefusalOut(BaseModel):
    """A row to which it was not done, and why."""

    id: str
    code: str
    message: str


class BulkOut(BaseModel):
    """An action on many rows. Its task is followed, and stopped, like any other: completed rows stay completed."""

    task_id: str = Field(description="The task that carries it out.", examples=[TASK_ID])
    resource: BulkResource
    action: str
    filter: dict[str, Any]
    user_id: str
    expected: int
    matched: int = Field(description="How many there were when it was asked for; counting ends at a bound.")
    done: int
    skipped: int = Field(description="Had moved on by themselves, or were as they should be already.")
    refused: int
    refusals: list[RefusalOut] = Field(description="The first of those that were refused.")
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, bulk: Bulk) -> Self:
        return cls(
            task_id=bulk.task_id,
            resource=bulk.resource,
            action=bulk.action,
            filter=dict(bulk.filter),
            user_id=bulk.user_id,
            expected=bulk.expected,
            matched=bulk.matched,
            done=bulk.done,
            skipped=bulk.skipped,
            refused=bulk.refused,
            refusals=[RefusalOut.model_validate(each) for each in bulk.refusals],
            created_at=bulk.created_at,
            finished_at=bulk.finished_at,
        )
