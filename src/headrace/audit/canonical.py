"""The hashed bytes of an event: identical from the database, from Python and from an archive.

A line for each column in the order below, after a line that names the format. A number is written in digits, an
instant in microseconds since 1970, a text as JSON, a jsonb column as PostgreSQL writes it (keys by length, then by
bytes; ``: `` and ``, `` between). An empty line is NULL. No value contains a line break, so no two events have
the same bytes.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.database import Row

FORMAT = "headrace.audit_event.v1"
TEXTS = (
    *("action", "resource_type", "actor_type", "client_ip", "space_path", "user_agent"),
    *("request_method", "request_id", "trace_id"),
)
DOCUMENTS = ("resource", "user", "diff_object", "data")
COLUMNS = ("id", "seq", "timestamp", "created_at", *TEXTS, *DOCUMENTS)
"""The hashed columns, in order: all columns. Never change them: add another format instead."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The same in SQL, which is ten times as fast: concat() skips NULL, json and jsonb give their own text. float8 holds the
# microseconds of the next two centuries exactly; numeric, the type of extract(), would cost as much as all the rest.
_TEXTS_SQL = ", ".join(f"to_json({name}), chr(10)" for name in TEXTS)
CANONICAL = f"""concat(
  '{FORMAT}', chr(10), to_json(id), chr(10), seq, chr(10), "timestamp", chr(10),
  (date_part('epoch', created_at) * 1000000)::bigint, chr(10), {_TEXTS_SQL},
  resource, chr(10), "user", chr(10), diff_object, chr(10), data
)"""


def canonical(row: Mapping[str, Any] | Row) -> bytes:
    """Hash input of a row of audit_events; jsonb columns may be values or, as in an archive, PostgreSQL's text."""
    return "\n".join((FORMAT, *(_line(name, row[name]) for name in COLUMNS))).encode()


def _line(name: str, value: Any) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return str(micros(value))
        case str() if name in DOCUMENTS:
            return value
        case str():
            return json.dumps(value, ensure_ascii=False)
        case dict() | list():
            return _as_jsonb(value)
        case _:
            return str(value)


def micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def instant(at: int) -> datetime:
    """The instant of a number of microseconds; the inverse of ``micros``."""
    return _EPOCH + timedelta(microseconds=at)


def _as_jsonb(value: Any) -> str:
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=lambda item: (len(item[0].encode()), item[0].encode()))
        return (
            "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_as_jsonb(each)}" for key, each in ordered) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_jsonb, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
