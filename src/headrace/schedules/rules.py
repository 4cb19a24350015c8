"""Validation of schedules. S-02: each rule names the invalid field; the database has the same rules."""

import json
import re
from typing import Any

from headrace import ids
from headrace.database import Tx
from headrace.errors import Invalid
from headrace.schedules.cron import cron_of, zone_of
from headrace.schedules.errors import ScheduleInvalid
from headrace.schedules.model import OverlapPolicy, ScheduleSpec
from headrace.tasks import storable
from headrace.tasks.catalog import Catalog
from headrace.tasks.errors import PayloadInvalid, TaskSpecInvalid, UnknownTaskType
from headrace.tasks.limit_keys import limit_key
from headrace.tasks.model import LABEL
from headrace.tasks.submit import check_is_open, is_own

OWN_NAMES = "headrace:"
MAX_DATA_BYTES = 10_240
MAX_INTERVAL_SECONDS = 10 * 366 * 24 * 3600
MAX_RUN_SECONDS = 366 * 24 * 3600
MAX_RETRIES = 999
MAX_LABELS = 8
MAX_WAITING = 1_000_000
_LABEL = re.compile(LABEL)
PRIORITIES = range(-1_000_000, 1_000_001)


async def check_spec(tx: Tx, catalog: Catalog, spec: ScheduleSpec, *, user_id: str) -> None:
    """Validate a user's schedule; raises ``ScheduleInvalid`` with the field's name."""
    if spec.name.startswith(OWN_NAMES) and user_id != ids.SYSTEM_USER:
        raise ScheduleInvalid(f"Names that begin with {OWN_NAMES!r} are reserved for the product.", fields=["name"])
    _check_texts(spec)
    check_rhythm(spec)
    _check_limits(spec)
    try:
        check_is_open(spec.type, user_id)
        known = await catalog.get(tx, spec.type)
        if not is_own(spec.type):
            await catalog.check_registered(tx, spec.type)
    except (TaskSpecInvalid, UnknownTaskType) as exc:
        raise ScheduleInvalid(exc.message, fields=["type"]) from None
    try:
        data = {} if spec.data is None else spec.data
        known.check_payload(data)
        limit_key(known.name, known.limit_key, None, payload=data, user_id=user_id)
    except PayloadInvalid as exc:
        raise ScheduleInvalid(exc.message.replace("The payload", "The data", 1), fields=["data"]) from None


def _check_texts(spec: ScheduleSpec) -> None:
    if not spec.name.strip() or len(spec.name) > 255 or "\0" in spec.name:
        raise ScheduleInvalid("A schedule has a name of 1 to 255 characters.", fields=["name"])
    if "\0" in (spec.description or ""):
        raise ScheduleInvalid("The description must not hold a NUL character.", fields=["description"])
    for label in (*spec.labels, *spec.labels.values()):
        if len(spec.labels) > MAX_LABELS or not _LABEL.fullmatch(label):
            raise ScheduleInvalid(
                f"Labels are at most {MAX_LABELS}, with names and values of 1 to 63 letters, digits and characters of "
                ". _ / - from a letter or a digit on.",
                fields=["labels"],
            )
    _check_data(spec.data)


def _check_data(data: Any) -> None:
    try:
        storable.encode(data, limit=MAX_DATA_BYTES)
    except storable.NotStorable as exc:
        raise ScheduleInvalid(f"The data {exc}.", fields=["data"]) from None
    # In PostgreSQL's format, with a blank after each colon and comma.
    length = len(json.dumps(data, ensure_ascii=False).encode())
    if length > MAX_DATA_BYTES:
        raise ScheduleInvalid(
            f"The data has {length:,} bytes and may have {MAX_DATA_BYTES:,}: store it elsewhere and send a link.",
            fields=["data"],
        )


def check_rhythm(spec: ScheduleSpec) -> None:
    """Validate cron, interval and run_at."""
    zone_of(spec.timezone)
    if spec.cron is not None and spec.interval is not None:
        raise ScheduleInvalid("Set either cron or interval, not both.", fields=["interval"])
    if spec.cron is not None:
        if len(spec.cron) > 255:
            raise ScheduleInvalid("A cron expression has at most 255 characters.", fields=["cron"])
        cron_of(spec.cron, spec.timezone)
        if spec.run_at is not None:
            raise ScheduleInvalid("run_at cannot be combined with a cron expression.", fields=["run_at"])
    elif spec.interval is not None:
        if not 1 <= spec.interval <= MAX_INTERVAL_SECONDS:
            raise ScheduleInvalid("An interval has at least 1 second and at most ten years.", fields=["interval"])
    elif spec.run_at is None:
        raise ScheduleInvalid("Set cron, interval (in seconds), or run_at for a single run.", fields=["cron"])
    if spec.run_at is not None and not 1970 <= spec.run_at.year <= 9998:
        raise ScheduleInvalid("run_at must lie between the years 1970 and 9998.", fields=["run_at"])


def _check_limits(spec: ScheduleSpec) -> None:
    rules = (
        ("max_duration_seconds", 0 < spec.max_duration_seconds <= MAX_RUN_SECONDS, "lies between 1 and a year"),
        (
            "timeout_grace_period",
            0 <= spec.timeout_grace_period < spec.max_duration_seconds,
            "is at least 0 and less than max_duration_seconds",
        ),
        ("max_extension_seconds", 0 <= spec.max_extension_seconds <= MAX_RUN_SECONDS, "lies between 0 and a year"),
        ("max_retries", 0 <= spec.max_retries <= MAX_RETRIES, f"lies between 0 and {MAX_RETRIES}"),
        ("max_concurrent", 1 <= spec.max_concurrent <= 1_000_000, "is at least 1"),
        (
            "max_waiting",
            spec.max_waiting is None or 1 <= spec.max_waiting <= MAX_WAITING,
            f"lies between 1 and {MAX_WAITING:,}; to let none wait, choose the overlap_policy skip",
        ),
        (
            "max_waiting",
            spec.max_waiting is None or spec.overlap_policy is OverlapPolicy.QUEUE_ALL,
            f"goes with the overlap_policy queue_all; {spec.overlap_policy} says itself how many wait",
        ),
        ("priority", spec.priority in PRIORITIES, "lies between -1,000,000 and 1,000,000"),
    )
    for field, holds, rule in rules:
        if not holds:
            raise ScheduleInvalid(f"{field} {rule}.", fields=[field])


def refused_by_database(constraint: str | None) -> Invalid | None:
    """The error for a CHECK of ``scheduled_tasks`` that this validation did not catch."""
    prefix = "ck_scheduled_tasks_"
    if constraint is None or not constraint.startswith(prefix):
        return None
    field = constraint.removeprefix(prefix)
    return ScheduleInvalid(f"The database refuses {field}.", fields=[field])
