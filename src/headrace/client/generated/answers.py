"""The server's answers as frozen dataclasses; ``Answer.of`` reads them.

Generated from the API description by `make docs`: do not edit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from headrace.client.answer import Answer, ExecutionState, RemovalState, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(TaskState):
    """A task at the time of the answer. Lists omit payload and result."""

    _times: ClassVar = frozenset(
        ["run_at", "cancel_requested_at", "queued_at", "started_at", "finished_at", "created_at", "updated_at"]
    )

    id: str
    user_id: str
    type: str
    title: str
    status: str
    queue: str
    priority: int = 0
    labels: Mapping[str, Any] = field(default_factory=dict)
    limit_key: str | None = None
    current_step: str | None = None
    """The step that runs, or ran last."""
    progress: int = 0
    """0 to 100."""
    eta_seconds: int | None = None
    """How long the handler thinks it will still take."""
    attempt: int = 0
    """The attempt that runs or ran last; 0 before the first."""
    retries: int = 0
    """Failed attempts that were followed by another."""
    max_attempts: int = 0
    timeout_seconds: int | None = None
    error_code: str | None = None
    """Of the last attempt that failed."""
    error_message: str | None = None
    worker_id: str | None = None
    """Who runs it, or ran it last."""
    schedule_id: str | None = None
    """The schedule that fired it."""
    trace_id: str | None = None
    run_at: datetime
    """Not before this time."""
    cancel_requested_at: datetime | None = None
    """When its cancellation was requested."""
    queued_at: datetime | None = None
    started_at: datetime | None = None
    """When the attempt started."""
    finished_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    version: int = 0
    """The `ETag`: send it as `If-Match` to change only what you have seen."""
    payload: Any = None
    result: Any = None
    """What the handler gave back; null until it has succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine(Answer):
    """The end of an attempt, or a log line of a handler (``status`` LOG)."""

    _times: ClassVar = frozenset(["created_at"])

    id: int = 0
    attempt: int = 0
    """0 for what happened outside any attempt."""
    status: str
    """`LOG` for a handler's line, otherwise how the attempt ended."""
    message: str | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Answer):
    """One step of one attempt."""

    _times: ClassVar = frozenset(["started_at", "ended_at"])

    name: str
    status: str
    """`SKIPPED`: done before."""
    attempt: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ms: int | None = None
    detail: Any = None
    """What the step noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(Answer):
    """One reason that prevents a run: a sentence for people, a code and facts for programs."""

    code: str
    text: str
    """For people."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For programs, by `code`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why(Answer):
    """Why a task is not running, the most important reason first."""

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"reasons": Reason}

    task_id: str
    status: str
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules(Answer):
    """The settings of a queue."""

    _times: ClassVar = frozenset(["paused_at"])

    name: str
    paused_at: datetime | None = None
    """Since when nothing is started from it; null when it runs."""
    max_running: int | None = None
    """How many of its tasks may run at once; null for any number."""
    version: int = 0
    """The `ETag`; 0 for a queue without settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(QueueRules):
    """A queue and its counts; unless ``exact``, they are lower bounds."""

    _times: ClassVar = frozenset(["paused_at"])

    name: str
    paused_at: datetime | None = None
    """Since when nothing is started from it; null when it runs."""
    max_running: int | None = None
    """How many of its tasks may run at once; null for any number."""
    version: int = 0
    """The `ETag`; 0 for a queue without settings."""
    waiting: int = 0
    """Tasks that could start now."""
    delayed: int = 0
    """Tasks whose time has not come."""
    running: int = 0
    """Tasks that workers run."""
    exact: bool = False
    """False when counting stopped at a bound: the counts are lower bounds."""
    oldest_waiting_seconds: float | None = None
    """How long the first of those waiting could have started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskType(Answer):
    """A registered task type. ``payload_schema`` is a JSON Schema; None accepts any payload."""

    _times: ClassVar = frozenset(["updated_at"])

    name: str
    description: str
    queue: str
    priority: int = 0
    max_attempts: int = 0
    timeout_seconds: int | None = None
    emits_events: bool = False
    max_running: int | None = None
    max_running_per_key: int | None = None
    """How many tasks with the same limit key may run at once."""
    limit_key: str | None = None
    """The limit key of a task: `user`, or a field of the payload; null: the key submitted with it."""
    limited_by_plan: bool = False
    """Whether the plan of a task's user limits how many run at once, of all such types together."""
    units: str | None = None
    """What a task costs: a whole number, or a field of the payload; null: nothing."""
    submit: str
    """Who may submit it: `admins`, `users`, or a scope; users may, and API keys with it."""
    retention: Mapping[str, float | None] | None = None
    """How many seconds a task is kept after such an end, null for ever; for other ends the settings apply."""
    payload_schema: Any = None
    """JSON Schema of the payload; null takes anything."""
    workers: int = 0
    """How many workers that are alive have it."""
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Answer):
    """A task that a worker runs."""

    _times: ClassVar = frozenset(["since"])

    task_id: str
    type: str
    queue: str
    attempt: int = 0
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker(Answer):
    """A worker process that has not ended."""

    _times: ClassVar = frozenset(["started_at", "heartbeat_at", "stopping_at"])

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"holds": Held}

    id: str
    host: str
    pid: int = 0
    alive: bool = False
    """False when it has been silent for longer than its lease: it is being given up."""
    queues: Sequence[str] | None = None
    """Null for all queues."""
    types: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    concurrency: int = 0
    """Tasks that it can run at once, in all its slots."""
    running: int = 0
    """As of its last heartbeat."""
    slots: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Its slots by pool: `async` on the event loop, `thread`, `process`, `removal` for watermarks. A task is taken
    only when a slot of its pool is free.
    """
    finished: int = 0
    started_at: datetime
    heartbeat_at: datetime
    silent_seconds: float = 0.0
    lease_seconds: float = 0.0
    stopping_at: datetime | None = None
    """When it was asked to stop: it claims nothing more."""
    holds: tuple[Held, ...] = ()
    """The tasks it holds, the oldest first; not all of them if they are many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType(Answer):
    """A type of event in one version; ``data_schema`` is the JSON Schema of its data."""

    name: str
    version: int = 0
    aggregate: str
    """What events are in order for: one task, one subscription."""
    description: str
    data_schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the event's `data`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction(Answer):
    """An action on many rows. ``task_id`` is the task that carries it out: wait for it, or cancel it to stop."""

    _times: ClassVar = frozenset(["created_at", "finished_at"])

    task_id: str
    """The task that carries it out."""
    resource: str
    action: str
    filter: Mapping[str, Any] = field(default_factory=dict)
    user_id: str
    expected: int = 0
    matched: int = 0
    """How many there were when it was asked for; counting ends at a bound."""
    done: int = 0
    skipped: int = 0
    """Had moved on by themselves, or were as they should be already."""
    refused: int = 0
    refusals: Sequence[Mapping[str, Any]] = ()
    """The first of those that were refused."""
    created_at: datetime
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(Answer):
    """A schedule and its counts at the time of the answer. Lists omit ``warnings``."""

    _times: ClassVar = frozenset(["next_run", "last_executed_at", "created_at", "updated_at"])

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"warnings": Reason}

    id: str
    user_id: str
    name: str
    type: str
    description: str | None = None
    cron: str | None = None
    interval: int | None = None
    """Seconds from one due time to the next."""
    timezone: str
    is_recurring: bool = False
    next_run: datetime | None = None
    """The next due time; null when there is none."""
    misfire_policy: str
    enabled: bool = False
    max_duration_seconds: int = 0
    timeout_grace_period: int = 0
    max_extension_seconds: int = 0
    max_retries: int = 0
    max_concurrent: int = 0
    overlap_policy: str
    max_waiting: int | None = None
    priority: int = 0
    labels: Mapping[str, Any] = field(default_factory=dict)
    data: Any = None
    total_executions: int = 0
    """Ended runs: a due time counts once, regardless of its attempts."""
    succeeded_executions: int = 0
    """Runs whose last attempt succeeded."""
    failed_executions: int = 0
    """Runs whose last attempt ended as `FAILED` or `TIMED_OUT`."""
    consecutive_failures: int = 0
    """Failed runs since the last success."""
    total_attempts: int = 0
    """Ended attempts, each counted."""
    skipped_runs: int = 0
    """Due times that did not run: missed and not caught up, or skipped by `overlap_policy`."""
    last_executed_at: datetime | None = None
    last_failure_error: str | None = None
    created_at: datetime
    updated_at: datetime
    version: int = 0
    """The `ETag`: send it as `If-Match` to change only this version."""
    warnings: tuple[Reason, ...] = ()
    """Why its runs would wait: no live worker takes them; or that it was due in the past. Empty while it is
    disabled.
    """
    canceled_runs: int = 0
    """Waiting runs that this request canceled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(Answer):
    """Statistics of a schedule and durations of its last runs."""

    _times: ClassVar = frozenset(["last_executed_at"])

    schedule_id: str
    total_executions: int = 0
    succeeded_executions: int = 0
    failed_executions: int = 0
    consecutive_failures: int = 0
    total_attempts: int = 0
    skipped_runs: int = 0
    success_rate: float | None = None
    """Of ended runs; null before the first."""
    last_executed_at: datetime | None = None
    last_failure_error: str | None = None
    pending: int = 0
    """Waiting runs."""
    running: int = 0
    """Running runs."""
    average_ms: float | None = None
    """The average duration of the last runs."""
    p95_ms: float | None = None
    longest_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution(ExecutionState):
    """A run of a schedule; each attempt is a run. Lists omit result and stack."""

    _times: ClassVar = frozenset(["scheduled_at", "started_at", "deadline_at", "finished_at", "created_at"])

    id: str
    schedule_id: str
    schedule_name: str
    type: str
    status: str
    trigger_type: str
    trigger_by: str | None = None
    """The user who ran it by hand."""
    scheduled_at: datetime
    """When it was due."""
    started_at: datetime | None = None
    deadline_at: datetime | None = None
    """When it receives a stop request; later after an extension."""
    finished_at: datetime | None = None
    duration_ms: int = 0
    progress: int = 0
    """0 to 100."""
    retry_count: int = 0
    """The number of the retry: 0 for the first attempt."""
    run_by: str | None = None
    """The worker."""
    task_id: str | None = None
    """The task that runs it; null while it waits for other runs to end."""
    error_message: str | None = None
    created_at: datetime
    result: str | None = None
    """JSON, truncated at 64 KB with a mark at the end."""
    error_stack: str | None = None
    """The stack trace, truncated to the innermost frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWhy(Answer):
    """Why a run is not running, the most important reason first."""

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"reasons": Reason}

    execution_id: str
    status: str
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock(Answer):
    """One holding of a lock. Only its holder has the ``token``."""

    _times: ClassVar = frozenset(["acquired_at", "expires_at", "released_at"])

    key: str
    user_id: str
    """The owner of the lock."""
    fence: int = 0
    """Larger than the fence of every earlier holding of this key."""
    holder: str
    status: str
    purpose: str | None = None
    acquired_at: datetime
    expires_at: datetime
    released_at: datetime | None = None
    remaining_seconds: float = 0.0
    """Time until it expires; 0 if it has ended."""
    token: str | None = field(default=None, repr=False)
    """Shown only once; required to renew and release."""
    ttl_seconds: float = 30.0
    """The last TTL requested by this client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User(Answer):
    """An account. ``password`` is set only when it was just generated."""

    _times: ClassVar = frozenset(["created_at", "updated_at", "last_login_at", "second_factor_at"])

    id: str
    username: str | None = None
    """Null for a user who only logs in with WeChat."""
    email: str | None = None
    status: str
    role: str
    version: int = 0
    """The `ETag`: send it as `If-Match` to change only this version."""
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None = None
    second_factor_at: datetime | None = None
    """When the second factor was turned on; null without one."""
    mobile: str | None = None
    """Shown only to you, and not to your API keys."""
    password: str | None = field(default=None, repr=False)
    """Set only when it was just generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Me(Answer):
    """The caller and its credentials: an API key has ``scopes``, a session has all rights of its user."""

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"user": User}

    user: User
    session_id: str | None = None
    """Null for an API key."""
    api_key_id: str | None = None
    """Null for a session."""
    scopes: Sequence[str] | None = None
    """The scopes of the API key; null for a session, which is not limited."""
    csrf_token: str | None = field(default=None, repr=False)
    """The value for `X-CSRF-Token` in a browser; null for an API key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(Answer):
    """An API key. ``key`` is set only when it was just created."""

    _times: ClassVar = frozenset(["created_at", "expires_at", "last_used_at"])

    id: str
    name: str
    hint: str
    """The key's last characters."""
    scopes: Sequence[str] = ()
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    """Precise to the minute."""
    key: str | None = field(default=None, repr=False)
    """Shown once: store it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(Answer):
    """An active session of a browser."""

    _times: ClassVar = frozenset(["created_at", "last_seen_at", "expires_at"])

    id: str
    current: bool = False
    """Whether it is the session of this request."""
    client_ip: str | None = None
    user_agent: str | None = None
    created_at: datetime
    last_seen_at: datetime
    """Precise to the minute."""
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(Answer):
    """The deletion of an account."""

    _times: ClassVar = frozenset(["due_at", "created_at", "started_at", "ended_at"])

    id: str
    user_id: str
    requested_by: str
    """The user, or the administrator who requested it."""
    status: str
    due_at: datetime
    """When it begins; until then it can be undone."""
    steps_done: Sequence[str] = ()
    obstacle: str | None = None
    """Why it is not completed yet."""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class File(Answer):
    """A stored file and its media properties."""

    _times: ClassVar = frozenset(["created_at", "expire_at"])

    id: str
    user_id: str
    """Its owner."""
    name: str
    """As it was uploaded."""
    media_type: str
    """Its kind, by its content."""
    mime_type: str
    size_bytes: int = 0
    sha256: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    """The facts of its content: `format`, `width`, `height`, `pages`, `frames`, `duration_ms`, `orientation`,
    `encrypted`, `signed`, as far as its kind has them, and `details`.
    """
    created_at: datetime
    expire_at: datetime | None = None
    """When it is deleted by itself; null: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload(Answer):
    """A multipart upload; ``stored`` are the uploaded parts."""

    _times: ClassVar = frozenset(["created_at", "expire_at"])

    id: str
    asset_id: str
    """The id that the file will have."""
    name: str
    size_bytes: int = 0
    sha256: str | None = None
    part_bytes: int = 0
    """The size of each part in bytes; the last one has the rest."""
    parts: int = 0
    """How many parts there are, numbered from 1."""
    direct: bool = False
    status: str
    error_code: str | None = None
    """Why completing it failed the last time."""
    created_at: datetime
    expire_at: datetime
    """When it is given up, unless a part comes before."""
    stored: Sequence[Mapping[str, Any]] = ()
    """The parts that are there: the others are still to be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Answer):
    """A link with which anyone can read the file."""

    _times: ClassVar = frozenset(["expires_at"])

    url: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageUse(Answer):
    """A user's storage use and limit."""

    stored_bytes: int = 0
    """Equal files count once, uploads under way with their whole size."""
    limit_bytes: int | None = None
    """Null: no limit."""
    largest_file_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile(Answer):
    """The result file of a task."""

    _times: ClassVar = frozenset(["created_at", "expire_at"])

    mime_type: str | None = None
    size_bytes: int | None = None
    task_id: str
    name: str | None = None
    sha256: str | None = None
    preview: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] | None = None
    """What the pipeline measured."""
    created_at: datetime
    expire_at: datetime | None = None
    """When the file is deleted; null: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote(Answer):
    """The present price."""

    units: int = 0
    """All of them together."""
    left: int = 0
    """What you can spend now."""
    enough: bool = False
    free: bool = False
    """Whether all of them are the console's sample picture: held, but not charged, ten times a day."""
    files: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Answer):
    """A candidate for a watermark."""

    id: int = 0
    """From 1, the surest first: what `candidates` of an order names."""
    kind: str
    """A `region` of a picture; of documents what it is: text, picture, form."""
    method: str
    """What spoke for it first."""
    score: float = 0.0
    certain: bool = False
    """Whether `AUTO` takes it off without asking."""
    box: Sequence[float] = ()
    """Left, top, width, height: in pixels of the picture, or points of its first page."""
    pages: Sequence[int] = ()
    """Of documents, from 1."""
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal(RemovalState):
    """An order and its task at the time of the answer. Lists omit the candidates."""

    _times: ClassVar = frozenset(["created_at", "finished_at", "declared_at", "returned_at", "returnable_until"])

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"candidates": Candidate}

    id: str
    """Its task's id."""
    user_id: str
    asset_id: str
    asset_name: str | None = None
    media_type: str
    quality: str
    mode: str
    output_format: str
    units: int = 0
    """What is held for it, and charged if it succeeds with a result that you do not have yet."""
    batch_id: str | None = None
    """What was ordered in one request has the same."""
    accept_poor: bool = False
    """Whether the result is taken as it is, the mark still to be seen or not."""
    status: str
    progress: int = 0
    """0 to 100."""
    eta_seconds: int | None = None
    error_code: str | None = None
    """Why it failed: `NO_MARK`, `NEEDS_REVIEW`, `AI_LABEL`, `MARK_REMAINS`, `MARK_MOVES`, `MARK_WIDE`,
    `POOR_RESULT`, `DAMAGED`, `UNREADABLE` and others. Nothing of it is charged.
    """
    error_message: str | None = None
    created_at: datetime
    finished_at: datetime | None = None
    candidates: tuple[Candidate, ...] = ()
    """What may be a mark, once it was looked for."""
    rights_basis: str | None = None
    rights_statement: str | None = None
    declared_at: datetime | None = None
    held_back: bool = False
    """It failed, but there is a result: see it with `GET /v1/removals/{id}/held-back`, and order the same with
    `accept_poor` to have it as it is. For a day after the end.
    """
    charged: int | None = None
    """The units that it was charged; null before its end. 0 for a failure, and for a result with the same bytes as
    an earlier one of yours, which `metrics.same_as` of the result names.
    """
    returned_at: datetime | None = None
    """When the result was returned as not good."""
    returnable_until: datetime | None = None
    """Until when `POST /v1/removals/{id}/return` gives the units back; null if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Answer):
    """A plan: a price for a number of units each month."""

    _times: ClassVar = frozenset(["created_at", "updated_at"])

    id: str
    name: str
    price_cents: int = 0
    """Monthly price in hundredths of the currency."""
    currency: str
    monthly_quota: int = 0
    """Units a month."""
    features: Sequence[Mapping[str, Any]] = ()
    prices: Sequence[Mapping[str, Any]] = ()
    """The price of each kind of file: the `units` entries of the features, with all defaults."""
    is_active: bool = False
    """Whether it is offered."""
    sort_order: int = 0
    version: int = 0
    """The `ETag`: send it as `If-Match` to change only this version."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(Answer):
    """A subscription at the time of the answer."""

    _times: ClassVar = frozenset(["started_at", "effective_at", "expire_at", "canceled_at", "created_at", "updated_at"])

    id: str
    user_id: str
    plan_id: str
    status: str
    """`PENDING` until it is paid for; `PAST_DUE` when its period is over and its renewal is unpaid."""
    started_at: datetime | None = None
    """When it was first paid."""
    effective_at: datetime | None = None
    """The start of its uninterrupted time."""
    expire_at: datetime | None = None
    """The end of the paid time."""
    canceled_at: datetime | None = None
    """When it was canceled; an `ACTIVE` one still lasts to `expire_at`."""
    auto_renew: bool = False
    """Whether it waits for its renewal when its period is over. Nothing is charged automatically."""
    version: int = 0
    """The `ETag`: send it as `If-Match` to change only this version."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Answer):
    """An order: ``code_url`` is the content of the QR code, ``jsapi`` the parameters for a mini-program."""

    _times: ClassVar = frozenset(["expires_at", "paid_at", "refunded_at", "created_at", "updated_at"])

    id: str
    """Also the order number at WeChat Pay."""
    user_id: str
    plan_id: str
    subscription_id: str
    entitlement_id: str | None = None
    """The entitlement that it bought."""
    kind: str
    method: str
    status: str
    description: str
    amount_cents: int = 0
    currency: str
    units: int = 0
    """The units that it buys."""
    code_url: str | None = None
    """The content of the QR code of a `NATIVE` order; `…/qr.png` is its image."""
    jsapi: Mapping[str, Any] | None = None
    """How to pay a `JSAPI` order that waits to be paid."""
    transaction_id: str | None = None
    """WeChat Pay's own number of the payment."""
    refund_id: str | None = None
    problem: str | None = None
    """Set when an operator must resolve the order."""
    expires_at: datetime
    """The end of the time to pay."""
    paid_at: datetime | None = None
    refunded_at: datetime | None = None
    version: int = 0
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Answer):
    """A subscription and its unpaid order."""

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"subscription": Subscription, "order": Order}

    subscription: Subscription
    order: Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement(Answer):
    """Units that may be used in a period."""

    _times: ClassVar = frozenset(["period_start", "period_end", "created_at"])

    id: str
    user_id: str
    plan_id: str
    subscription_id: str | None = None
    """The subscription that granted it; null if it was not bought."""
    quota_total: int = 0
    quota_left: int = 0
    """Units that are neither held nor used."""
    period_start: datetime
    period_end: datetime
    status: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry(Answer):
    """A ledger entry: units granted, held for a task, used by it or released."""

    _times: ClassVar = frozenset(["created_at"])

    id: str
    user_id: str
    task_id: str | None = None
    """The task that holds or used the units; null for a grant."""
    entitlement_id: str | None = None
    hold_id: str | None = None
    """The `HELD` entry that this one settles."""
    units: int = 0
    direction: str
    """`DEBIT` takes from the quota, `CREDIT` gives."""
    status: str
    """`HELD` when a task is created, then `COMMITTED` (used), `RELEASED`, or both in part."""
    source: str
    """What caused it."""
    remark: str | None = None
    """The reason of an adjustment."""
    task_title: str | None = None
    """In lists, the task's title: of a removal, the file's name."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance(Answer):
    """The units that can be used now."""

    _times: ClassVar = frozenset(["renews_at"])

    total: int = 0
    """Units granted for the present periods."""
    left: int = 0
    held: int = 0
    """Units held by tasks that have not ended."""
    renews_at: datetime | None = None
    """When the first of these periods ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedDay(Answer):
    """Units charged and released on one day (UTC)."""

    day: str
    used: int = 0
    """Units that were charged."""
    released: int = 0
    """Units that were held and released."""
    tasks: int = 0
    """Tasks that were charged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Answer):
    """A webhook endpoint. ``secret`` is set only when it was just generated."""

    _times: ClassVar = frozenset(["secret_rotated_at", "failing_since", "created_at", "updated_at"])

    id: str
    user_id: str
    name: str
    url: str
    status: str
    """`PAUSED`: events are queued. `DISABLED`: events are skipped."""
    status_reason: str | None = None
    """Why it is not active: `by_hand`, `failing` (for days), or `gone` (it answered 410)."""
    secret_hint: str | None = None
    """The last characters of the secret."""
    secret_rotated_at: datetime | None = None
    subscribed_events: Sequence[str] = ()
    task_types: Sequence[str] | None = None
    timeout_ms: int = 0
    max_retries: int = 0
    allow_ips: Sequence[str] | None = None
    ordered: bool = False
    every_user: bool = False
    failing_since: datetime | None = None
    """The first of the consecutive failures; null after a success."""
    version: int = 0
    created_at: datetime
    updated_at: datetime
    secret: str | None = field(default=None, repr=False)
    """Shown only once. Any Standard Webhooks library checks signatures with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Answer):
    """One attempt. Lists omit request and response."""

    _times: ClassVar = frozenset(["next_retry_at", "delivered_at", "created_at"])

    id: str
    endpoint_id: str
    event_id: str
    """`webhook-id` of the request."""
    event_type: str
    attempt: int = 0
    """Counted from 1 for this event at this endpoint."""
    status: str
    """`PENDING`: to be sent, or being sent. `RETRYING`: failed, and another attempt is due. `FAILED`: not sent
    again, because the endpoint is gone. `DEAD`: failed and not repeated: another attempt has begun, or this was
    the last.
    """
    error: str | None = None
    """Why there was no answer, or another explanation."""
    response_status: int | None = None
    duration_ms: int | None = None
    next_retry_at: datetime | None = None
    delivered_at: datetime | None = None
    created_at: datetime
    request_headers: Mapping[str, str] | None = None
    request_body: Any = None
    response_body: str | None = None
    """The first 4 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStatistics(Answer):
    """Statistics of an endpoint since a time."""

    _times: ClassVar = frozenset(["since", "last_success_at", "last_failure_at", "failing_since", "blocked_until"])

    since: datetime
    attempts: int = 0
    successes: int = 0
    failures: int = 0
    waiting: int = 0
    """Deliveries that have not ended."""
    success_rate: float | None = None
    """Successes among attempts; null without attempts."""
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    latency_p99_ms: float | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_error: str | None = None
    consecutive_failures: int = 0
    failing_since: datetime | None = None
    blocked_until: datetime | None = None
    """Nothing is sent before this time: the endpoint failed too often in a row, or asked for a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(Answer):
    """A notification."""

    _times: ClassVar = frozenset(["read_at", "created_at"])

    id: int = 0
    type: str
    title: str
    body: str
    payload: Mapping[str, Any] | None = None
    """The subject's ids: `task_id`, `subscription_id`, …; of a batch `batch_id`, and how many of its `total` files
    have `succeeded`, wait for an answer (`needs_input`) or have `failed`.
    """
    event_id: str | None = None
    """The event that caused it; of a batch, the batch and when it ended."""
    is_read: bool = False
    read_at: datetime | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsStep(Answer):
    """Statistics of one interval."""

    _times: ClassVar = frozenset(["at"])

    at: datetime
    """When the step begins."""
    submitted: int = 0
    succeeded: int = 0
    failed: int = 0
    needs_input: int = 0
    """Of `failed`: removals that ended with a question to their owner, or found no mark."""
    canceled: int = 0
    waiting: int | None = None
    """The most at any minute; counting ends at a bound."""
    delayed: int | None = None
    running: float | None = None
    """The mean, as are `workers` and `slots`."""
    oldest_waiting_seconds: float | None = None
    workers: float | None = None
    slots: float | None = None
    slots_busy: float | None = None
    """Slots with a task; `running` also counts tasks that a worker fetched early."""
    wait_p50: float | None = None
    """Median wait in seconds of the tasks that ended. Percentiles are at most 1 % off the exact ones."""
    wait_p95: float | None = None
    run_p50: float | None = None
    """Median run time in seconds of the tasks that ended."""
    run_p95: float | None = None
    wait_max: float | None = None
    """The longest wait; no percentile is above it."""
    run_max: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview(Answer):
    """Queues, workers and findings at a glance."""

    _times: ClassVar = frozenset(["at", "alarms_at"])

    _parts: ClassVar[Mapping[str, type[Answer]]] = {"queues": Queue}

    at: datetime
    waiting: int = 0
    delayed: int = 0
    """Waiting for their time."""
    running: int = 0
    exact: bool = False
    """False: counting ended at a bound, and more are waiting."""
    oldest_waiting_seconds: float | None = None
    """For how long the first that is due has waited."""
    oldest_waiting_queue: str | None = None
    queues: tuple[Queue, ...] = ()
    workers: Mapping[str, Any] = field(default_factory=dict)
    alarms: Sequence[Mapping[str, Any]] = ()
    """All checks, those that want attention first."""
    alarms_at: datetime
    """When the checks were made: at most some seconds ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities(Answer):
    """What this installation offers the caller."""

    version: str
    accounts: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    configs: Mapping[str, Any] = field(default_factory=dict)
    """The public config keys with your effective values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent(Answer):
    """An event of the audit trail."""

    _times: ClassVar = frozenset(["created_at"])

    id: str
    timestamp: int = 0
    """Unix milliseconds."""
    action: str
    resource_type: str
    resource: Mapping[str, Any] = field(default_factory=dict)
    user: Mapping[str, Any] = field(default_factory=dict)
    actor_type: str
    space_path: str | None = None
    diff_object: Mapping[str, Any] | None = None
    client_ip: str | None = None
    user_agent: str | None = None
    request_method: str | None = None
    request_id: str | None = None
    trace_id: str | None = None
    data: Mapping[str, str] | None = None
    created_at: datetime
    seq: int = 0
    """The order of sealing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditProof(Answer):
    """A proof that an event was sealed, to be checked without the database."""

    format: str
    event: str
    """The event's canonical text; its SHA-256 after a zero byte is the leaf."""
    path: Sequence[Sequence[Any]] = ()
    """Neighbours on the way to the root."""
    seal: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerification(Answer):
    """The result of verifying the audit trail."""

    _times: ClassVar = frozenset(["whole_at"])

    ok: bool = False
    events: int = 0
    """That are as they were sealed."""
    seals: int = 0
    unsealed: int = 0
    """Too new to be bound to anything yet."""
    signed_up_to: int = 0
    """The number of the last seal with a signature that holds."""
    heads: int = 0
    """Heads of the trail that are kept outside the database, and were compared."""
    numbers_without_event: int = 0
    """Given out after the last event and at none: rolled back, or removed."""
    not_looked_at: Sequence[str] = ()
    """Months that have left the database."""
    continued_from: int = 0
    """The seal where the last verification ended; 0 if it began at the first."""
    sampled: int = 0
    """Earlier seals, chosen at random, that were recomputed as well."""
    whole_at: datetime | None = None
    """When the trail was last verified from its first event on."""
    flaw: str | None = None
    """What kind of thing does not fit; null if everything does."""
    message: str | None = None
    """The first thing that does not fit, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerVerification(Answer):
    """The result of verifying the whole ledger."""

    _times: ClassVar = frozenset(["started_at", "finished_at"])

    started_at: datetime
    finished_at: datetime
    entries: int = 0
    entitlements: int = 0
    archived_months: int = 0
    """Archived months that were read as well."""
    fault_count: int = 0
    faults: Sequence[Mapping[str, Any]] = ()
    """The first hundred faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Answer):
    """A value that is set in one scope."""

    _times: ClassVar = frozenset(["created_at", "updated_at"])

    key: str
    scope: str
    scope_id: str
    """The tenant's or user's id; empty for GLOBAL."""
    value: Any = None
    version: int = 0
    """The `ETag`: counts the changes, from 1."""
    is_active: bool = False
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey(Answer):
    """A key that can be set, with its default."""

    key: str
    description: str
    public: bool = False
    """Whether `GET /v1/capabilities` shows it to clients."""
    default: Any = None
    """The value if none is set."""
    value_schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Answer):
    """A setting of the API process that answers."""

    name: str
    group: str
    value: str | None = None
    """As a person would write it; a secret is dots, null is unset."""
    chosen: bool = False
    """False: it is the default."""
    secret: bool = False
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxState(Answer):
    """The state of the outbox. Counts end at 100,000."""

    waiting: int = 0
    """New events that no relay has given to the consumers yet."""
    failed: int = 0
    """Events that a consumer could not take: tried again later."""
    dead: int = 0
    """Events that were given up. Alarm above 0."""
    oldest_waiting_seconds: float | None = None
    written: int = 0
    """Events written since the beginning."""
    broker_waiting: int = 0
    """Messages that the broker has not confirmed."""
    broker_given_up: int = 0
    """Messages that the broker refused too often."""
    relays: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent(Answer):
    """An event in the outbox."""

    _times: ClassVar = frozenset(["next_try_at", "published_at", "created_at"])

    id: str
    """Receivers recognise repeated deliveries by it."""
    type: str
    version: int = 0
    aggregate_type: str
    aggregate_id: str
    user_id: str | None = None
    """Whose event it is."""
    trace_id: str | None = None
    status: str
    """`PENDING`: waits for delivery. `FAILED`: will be retried. `PUBLISHED`: all consumers have it. `DEAD`: failed
    too often; an administrator can revive it.
    """
    tries: int = 0
    """Tries so far without success, the current one included."""
    next_try_at: datetime | None = None
    """The earliest time of the next try. While a relay delivers the event: when its lease ends."""
    published_at: datetime | None = None
    created_at: datetime
    data: Any = None
    """The payload; `GET /v1/event-types` has its schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(Answer):
    """A month that has left its table, or is leaving it."""

    _times: ClassVar = frozenset(["min_at", "max_at", "detached_at", "archived_at", "verified_at", "dropped_at"])

    id: str
    table: str
    month: str
    """Its first day."""
    status: str
    """`DETACHED`: beside its table. `ARCHIVED`: also in the archive. `DROPPED`: only there."""
    location: str | None = None
    """The file's name in the archive."""
    rows: int | None = None
    min_id: str | None = None
    max_id: str | None = None
    min_at: datetime | None = None
    max_at: datetime | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    """Of the file, lower-case hex."""
    detached_at: datetime
    archived_at: datetime | None = None
    verified_at: datetime | None = None
    """When the file was last read back and found right."""
    dropped_at: datetime | None = None
    restored_as: str | None = None
    """The table that holds its rows again, while there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(Answer):
    """A month of a table that is kept by months."""

    table: str
    name: str
    month: str | None = None
    """Its first day; null for the partition that takes what fits nowhere."""
    attached: bool = False
    """False: on its way into the archive."""
    size_bytes: int = 0
    live_rows: int = 0
    """As PostgreSQL estimates them."""
    dead_rows: int = 0
    """As PostgreSQL estimates them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthsMade(Answer):
    """The partitions that were made, and the problems."""

    made: Sequence[str] = ()
    problems: Sequence[str] = ()
    """What stood in the way of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk(Answer):
    """A known risk."""

    _times: ClassVar = frozenset(["created_at", "updated_at"])

    risk_id: str
    category: str
    severity: str
    status: str
    trigger_condition: str
    mitigation_plan: str
    owner: str
    refs: Mapping[str, Any] | None = None
    version: int = 0
    """The `ETag`: send it as `If-Match` to change only this version."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskBoard(Answer):
    """The open risks by category and severity."""

    by_severity: Mapping[str, int] = field(default_factory=dict)
    squares: Sequence[Mapping[str, Any]] = ()
    """Counts by owner, status and severity, highest severity first, without zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskTrace(Answer):
    """An audit event that a risk refers to."""

    _times: ClassVar = frozenset(["created_at"])

    event_id: str
    trace_id: str
    action: str
    resource_type: str
    resource_id: str
    actor_id: str
    created_at: datetime
