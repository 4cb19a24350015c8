"""Tasks as they are stored, submitted, taken and ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple, NewType

TaskId = NewType("TaskId", str)
WorkerId = NewType("WorkerId", str)

MEDIA_TYPES = frozenset({"IMAGE", "VIDEO", "PDF", "PPT"})
MEDIA_STEPS = ("PREPROCESSING", "DETECTING", "INPAINTING", "PACKAGING")
DEFAULT_QUEUE = "default"
LONGEST_TIMEOUT = timedelta(days=366)


class TaskStatus(StrEnum):
    """UPLOADED → QUEUED → RUNNING or a media step → an end. The database refuses every other move."""

    UPLOADED = "UPLOADED"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    PREPROCESSING = "PREPROCESSING"
    DETECTING = "DETECTING"
    INPAINTING = "INPAINTING"
    PACKAGING = "PACKAGING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def is_over(self) -> bool:
        return self in ENDS


ENDS = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELED})


# A label's name, and its value: part of an index entry, and so short. headrace.check_submission has the same rule.
LABEL = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}"


class ErrorCode(StrEnum):
    """Why an attempt failed; ``tasks.error_code`` (at most 16 characters)."""

    ERROR = "ERROR"  # the handler raised
    FATAL = "FATAL"  # the handler raised Fatal
    TIMEOUT = "TIMEOUT"  # it ran past its time
    CRASHED = "CRASHED"  # its process died: a signal, no memory, os._exit
    INTERRUPTED = "INTERRUPTED"  # its worker died
    BAD_PAYLOAD = "BAD_PAYLOAD"  # the payload does not fit the handler that is there now
    BAD_RESULT = "BAD_RESULT"  # what it gave back is not JSON, or too large


class Media(NamedTuple):
    """What a media task has beside its payload: its four columns, filled in by the package that knows the file."""

    input_asset_id: str
    quality_level: Literal["STANDARD", "HIGH"]
    mode: Literal["AUTO", "MANUAL"]
    output_format: str


@dataclass(slots=True)  # not frozen: that makes each three times as dear, and they come in hundreds of thousands
class TaskSpec:
    """A task to submit. None means: what the type says."""

    type: str
    payload: Any = None
    title: str | None = None
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    grace: timedelta | None = None  # from asking it to stop until it is killed
    extension: timedelta | None = None  # how much longer than its timeout an attempt may ask to run
    limit_key: str | None = None  # refused for a type that computes it itself
    labels: Mapping[str, str] = field(default_factory=dict)
    trace_id: str | None = None
    request_id: str | None = None  # told with the event of its making, and not kept
    schedule_uid: str | None = None
    idempotency_key: str | None = None
    media: Media | None = None  # for the media types, and only for them
    own: bool = False  # the product's own work, done for a user: such types are closed to what users submit themselves


@dataclass(frozen=True, slots=True)
class Task:
    """A task as people see it: a leased one shows as running before its row says so."""

    id: TaskId
    user_id: str
    task_type: str
    title: str
    payload: Any
    priority: int
    status: TaskStatus
    current_step: str | None
    progress: int
    attempt: int
    retries: int
    eta_sec: int | None
    result: Any
    error_code: str | None
    error_message: str | None
    queue: str
    run_at: datetime
    max_attempts: int
    timeout_seconds: int | None
    labels: Mapping[str, str] | None
    limit_key: str | None
    worker_id: str | None
    cancel_requested_at: datetime | None
    schedule_uid: str | None
    trace_id: str | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Change(StrEnum):
    """What happened to a task; the name of the event that tells of it."""

    CREATED = "task.created"
    STARTED = "task.started"
    STEP_CHANGED = "task.step_changed"
    SUCCEEDED = "task.succeeded"
    FAILED = "task.failed"
    CANCELED = "task.canceled"
    RETRIED = "task.retried"  # it goes on: after a failure with attempts left, a snooze, an interruption
    REVIVED = "task.revived"  # it was over, and a person tries again
    # Not told through the outbox: they come too often, or are nobody else's business.
    PROGRESSED = "task.progressed"
    EXTENDED = "task.extended"


@dataclass(frozen=True, slots=True)
class Transition:
    """One task's move, handed to followers in the transaction that makes it."""

    change: Change
    task_id: str
    task_type: str
    user_id: str
    attempt: int
    worker_id: str | None = None
    result: Any = None
    error_code: str | None = None
    error_message: str | None = None
    schedule_uid: str | None = None
    started_at: datetime | None = None  # of this attempt
    progress: int | None = None  # for PROGRESSED
    timeout_seconds: int | None = None  # of this attempt
    extended_seconds: int | None = None  # for EXTENDED: by how much more
    request_id: str | None = None  # of the request that made it; a worker's have none
    units: int | None = None  # for CREATED and REVIVED: what it costs


class Outcome(StrEnum):
    """How an attempt ended: the word in task_logs."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    RETRIED = "RETRIED"  # failed, and will be tried again
    SNOOZED = "SNOOZED"
    INTERRUPTED = "INTERRUPTED"  # the worker died or was stopped
    LOGGED = "LOG"  # not an end: a line that the handler wrote


@dataclass(slots=True)
class Claimed:
    """A task in a worker's hands. ``seq``, ``attempt`` and the worker are the fence of all it writes."""

    seq: int
    task_id: str
    attempt: int
    task_type: str
    user_id: str
    payload: Any
    retries: int
    max_attempts: int
    timeout_seconds: int | None
    trace_id: str | None
    claimed_at: datetime
    schedule_uid: str | None = None
    grace_seconds: int | None = None
    extension_seconds: int | None = None  # what is left of it
    received: float = 0.0  # monotonic: when the worker had it in hand
    begun_at: datetime | None = None  # when its handler began, by the database's clock; None: as soon as it was claimed
    # What this process has done about the start. Whether row and followers know of it is certain only after the commit;
    # between the two the locked row decides (``store.find_started``).
    start_sent: bool = False
    start_told: bool = False
    over: bool = False  # its end is being written: nothing that its handler still reports counts
    finished_in: bool = False  # whether its handler has finished it in a transaction of its own, which may be undone

    @property
    def is_last_attempt(self) -> bool:
        return self.retries + 1 >= self.max_attempts


@dataclass(slots=True)
class Ending:
    """How one attempt of a claimed task ended; what is done with it is decided when it is written."""

    claimed: Claimed
    outcome: Outcome
    result: Any = None
    error_code: str | None = None
    error_message: str | None = None
    delay: timedelta = timedelta(0)  # for RETRIED and SNOOZED
    spends_attempt: bool = True  # whether a return to the queue counts as a retry
    since: float = 0.0  # monotonic: since when it waits to be written
