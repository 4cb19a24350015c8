"""What ``Registry.task`` takes beside a name: typed, so that a slip of the pen is found before anything runs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict

from headrace.tasks.execution import Backoff, Isolation, ProcessLimits
from headrace.tasks.retention_periods import Retention


class TaskOptions(TypedDict, total=False):
    """The rules of a task type. Each can be left out; the options of a single task override them."""

    isolation: Isolation
    """Where the handler runs: ``"async"`` on the worker's loop (what ``async def`` gets by itself), ``"thread"`` in a
    thread (what ``def`` gets), ``"process"`` in a child process that has limits and can be killed."""
    queue: str
    """The queue in which its tasks wait; ``"default"`` by default."""
    priority: int
    """Higher is taken first, from -1,000,000 to 1,000,000; 0 by default."""
    max_attempts: int
    """How often a task may be tried, the first time included; 3 by default."""
    backoff: Backoff
    """The pauses between attempts; by default 2 s, doubled each time, at most an hour."""
    timeout: timedelta | None
    """How long an attempt may take before it is asked to stop; None, the default, is for ever."""
    grace: timedelta
    """From asking a handler to stop until it is killed or given up; 10 s by default."""
    steps: Sequence[str]
    """The names that ``context.step`` takes; without them it takes any."""
    events: bool | Literal["always"]
    """Whether its changes are sent to subscribers (webhooks, notifications, brokers); True by default. ``"always"``
    also writes events without subscribers."""
    step_events: bool
    """Whether entering a step is such a change; False by default."""
    followers: Sequence[str]
    """Further parts of Headrace that move with its tasks, by name; for Headrace's own types."""
    max_running: int | None
    """How many of its tasks run at once, over all machines; None, the default, is no limit."""
    max_running_per_key: int | None
    """How many run at once for each limit key; None, the default, is no limit."""
    limit_key: str | None
    """What ``max_running_per_key`` counts by: ``"user"``, or ``"payload.FIELD"`` with any number of further fields."""
    limited_by_plan: bool
    """Whether the owner's plan limits how many run at once, over all types with this option; False by default."""
    units: int | str | None
    """What a task costs: a whole number, or ``"payload.FIELD"``. None, the default, is nothing."""
    submit: str
    """Who may submit it: ``"admins"``, the default, are administrators and programs on the database; ``"users"`` are
    all users; or a scope of API keys."""
    retention: Retention
    """How long a task is kept after its end: a ``timedelta``, ``"forever"``, or a mapping of ``"succeeded"``,
    ``"failed"`` and ``"canceled"`` to one; None, the default, is as the settings say."""
    limits: ProcessLimits
    """Limits of memory, time and files for one task, with ``isolation="process"``."""
    environment: Sequence[str]
    """What a child process gets of the environment beside ``PATH`` and the like: ``"NAME"`` passes the worker's
    variable on, ``"NAME=value"`` sets one."""
    network: bool
    """False lets a child process make no socket (Linux on x86-64 and arm64); True by default."""
    files: bool
    """False lets a child process open nothing but Python, libraries and ``PYTHONPATH`` (Linux 5.19); True by
    default."""
    description: str | None
    """Its description, for lists of types; by default the handler's docstring."""
