"""Tasks as they are stored, submitted, taken and ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple, NewType

TaskId = NewType("TaskId", str)
WorkerId = NewType("WorkerId", str)

MEDIA_TYPES = frozenset({"IMAGE", "VIDEO", "PDF", "PPT"})
# A removal that ends with one of these asks its owner something, or had nothing to remove: no failure of the service.
INPUT_CODES = ("NO_MARK", "NEEDS_REVIEW", "POOR_RESULT", "SIGNED")
MEDIA_STEPS = ("PREPROCESSING", "DETECTING", "INPAINTING", "PACKAGING")
# SQL: the status of a task at work before its first step. Media tasks have no RUNNING (document 002).
FIRST_STATUS = "CASE WHEN task.task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') THEN 'PREPROCESSING' ELSE 'RUNNING' END"
DEFAULT_QUEUE = "default"
MAX_TIMEOUT = timedelta(days=366)


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
        """Whether it succeeded, failed or was canceled."""
        return self in ENDS


ENDS = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELED})
# A media task that runs shows its step instead.
RUNNING = (TaskStatus.RUNNING, *(TaskStatus(step) for step in MEDIA_STEPS))
# What every type's tasks can be: what filters offer.
COMMON_STATUSES = (
    TaskStatus.QUEUED,
    TaskStatus.RUNNING,
    TaskStatus.SUCCEEDED,
    TaskStatus.FAILED,
    TaskStatus.CANCELED,
)


# A label's name, and its value: part of an index entry, and so short. headrace.check_submission has the same rule.
LABEL = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}"


class StepStatus(StrEnum):
    """How far a step is, in the documents' words."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"  # done in a former attempt


class ErrorCode(StrEnum):
    """Why an attempt failed; ``tasks.error_code`` (at most 16 characters)."""

    ERROR = "error"  # the handler raised
    FATAL = "fatal"  # the handler raised Fatal
    TIMEOUT = "timeout"  # it ran past its time
    CRASHED = "crashed"  # its process died: a signal, no memory, os._exit
    INTERRUPTED = "interrupted"  # its worker died
    BAD_PAYLOAD = "bad_payload"  # the payload does not fit the current handler
    BAD_RESULT = "bad_result"  # its result is not JSON, or too large


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
    """The name of its task type."""
    payload: Any = None
    """What its handler is given: JSON; None is ``{}``."""
    title: str | None = None
    """For people; by default the type's name."""
    queue: str | None = None
    """Where it waits."""
    priority: int | None = None
    """Higher is taken first, from -1,000,000 to 1,000,000."""
    run_at: datetime | None = None
    """Not before this instant, which has a time zone."""
    max_attempts: int | None = None
    """How often it may be tried, the first time included."""
    timeout: timedelta | None = None
    """How long an attempt may take before it is asked to stop."""
    grace: timedelta | None = None
    """From asking it to stop until it is killed."""
    extension: timedelta | None = None
    """How much longer than its timeout an attempt may ask to run."""
    limit_key: str | None = None
    """What the type's ``max_running_per_key`` counts it by; refused for a type that computes it itself."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What a worker must offer to take it."""
    trace_id: str | None = None
    """To find its way through the logs of several programs."""
    request_id: str | None = None
    """Of the request that submits it: part of the event of its creation, and not stored."""
    schedule_uid: str | None = None
    """Of the schedule that fires it."""
    idempotency_key: str | None = None
    """With the same key and user, the same task is given again."""
    request_key: str | None = None
    """The idempotency key of the submitting request: shown in the task's events, not compared with anything here."""
    media: Media | None = None
    """For the media types, and only for them."""
    own: bool = False
    """The product's own work, done for a user: such types are closed to what users submit themselves."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task as users see it: a leased one shows as running before its row says so."""

    id: TaskId
    """``tsk_…``"""
    user_id: str
    """Whose it is."""
    task_type: str
    """The name of its type."""
    title: str
    """For people."""
    payload: Any
    """What its handler is given."""
    priority: int
    """Higher is taken first."""
    status: TaskStatus
    """Where it stands."""
    current_step: str | None
    """The step that its handler entered last."""
    progress: int
    """In per cent, as the handler last reported."""
    attempt: int
    """Which one runs or ran last; 0 before the first."""
    retries: int
    """How many attempts were spent by failures that were tried again."""
    eta_sec: int | None
    """The remaining seconds, as the handler last reported."""
    result: Any
    """What its handler gave back."""
    error_code: str | None
    """Why it failed, or why its last attempt did: ``error``, ``fatal``, ``timeout``, ``crashed`` and others."""
    error_message: str | None
    """The same for people, with the stack where there is one."""
    queue: str
    """Where it waits."""
    run_at: datetime
    """Not before this instant."""
    max_attempts: int
    """How often it may be tried."""
    timeout_seconds: int | None
    """How long an attempt may take; None is for ever."""
    labels: Mapping[str, str] | None
    """What a worker must offer to take it."""
    limit_key: str | None
    """What a limit on running tasks counts it by."""
    worker_id: str | None
    """Who runs it, or ran it last."""
    cancel_requested_at: datetime | None
    """When its cancellation was requested."""
    schedule_uid: str | None
    """Of the schedule that fired it."""
    trace_id: str | None
    """What was given with it."""
    queued_at: datetime | None
    """When it came into its queue."""
    started_at: datetime | None
    """When its last attempt began."""
    finished_at: datetime | None
    """When it was over."""
    version: int
    """Grows with every change; for ``version=`` of ``cancel`` and ``retry``."""
    created_at: datetime
    """When it was submitted."""
    updated_at: datetime
    """When it was changed last."""
    deleted_at: datetime | None
    """When it was deleted; such tasks are found no more."""


class Change(StrEnum):
    """What happened to a task; the name of the event that tells of it."""

    CREATED = "task.created"
    STARTED = "task.started"
    STEP_CHANGED = "task.step_changed"
    SUCCEEDED = "task.succeeded"
    FAILED = "task.failed"
    CANCELED = "task.canceled"
    RETRIED = "task.retried"  # it continues: after a failure with attempts left, a snooze, an interruption
    REVIVED = "task.revived"  # it was over, and a user tries again
    # Not written to the outbox: they come too often, or are internal.
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
    units: int | None = None  # for CREATED and REVIVED: its price
    saved: Mapping[str, Any] | None = None  # for SUCCEEDED: the result file that the handler saved


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
    extension_seconds: int | None = None  # the rest of it
    received: float = 0.0  # monotonic: when the worker received it
    begun_at: datetime | None = None  # when its handler began, by the database's clock; None: as soon as it was claimed
    # What this process has done about the start. Whether row and followers have it is certain only after the commit;
    # between the two the locked row decides (``store.find_started``).
    start_sent: bool = False
    start_reported: bool = False
    over: bool = False  # its end is being written: later reports of its handler do not count
    used_noted: bool = False  # whether its handler has reported its use: then a success may release units, too
    saved: Mapping[str, Any] | None = None  # the result file that its handler saved in this attempt
    finished_in: bool = False  # whether its handler has finished it in a transaction of its own, which may be undone
    finishing: bool = False  # whether that transaction may have locked the claim: no write of the worker waits for it

    @property
    def is_last_attempt(self) -> bool:
        return self.retries + 1 >= self.max_attempts


@dataclass(slots=True)
class Ending:
    """How one attempt of a claimed task ended; its consequence is decided when it is written."""

    claimed: Claimed
    outcome: Outcome
    result: Any = None
    error_code: str | None = None
    error_message: str | None = None
    delay: timedelta = timedelta(0)  # for RETRIED and SNOOZED
    spends_attempt: bool = True  # whether a return to the queue counts as a retry
    since: float = 0.0  # monotonic: since when it waits to be written
    refused: bool = False  # by something else than a lock: the writer finds out by what, and does not set it aside

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes while it waits to be written."""
        return 500 + len(self.result or b"") + len(self.error_message or "")

    @property
    def may_release_units(self) -> bool:
        """Whether writing it may give units back, for which the entitlements of the task's owner are locked."""
        return self.claimed.used_noted or self.outcome in (Outcome.FAILED, Outcome.CANCELED)
