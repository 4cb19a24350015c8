"""Exports the trail: JSON lines for programs, CSV for spreadsheets. Streamed a page at a time."""

import csv
import io
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import orjson

from headrace.audit.events import Event

# Prefixes that spreadsheets treat as a formula; user agents and names may hold any text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"

    @property
    def media_type(self) -> str:
        return "application/x-ndjson" if self is ExportFormat.JSONL else "text/csv; charset=utf-8"

    @property
    def heading(self) -> bytes:
        return b"" if self is ExportFormat.JSONL else _csv([COLUMNS])


COLUMNS = (
    *("id", "created_at", "action", "resource_type", "resource_id", "resource_data", "user_id", "username"),
    *("user_type", "actor_type", "client_ip", "user_agent", "request_method", "request_id", "trace_id"),
    *("space_path", "old_object", "new_object", "truncated_fields", "data", "seq"),
)


def render(events: Sequence[Event], chosen: ExportFormat) -> bytes:
    if chosen is ExportFormat.JSONL:
        return b"".join(orjson.dumps(as_json(event), option=orjson.OPT_APPEND_NEWLINE) for event in events)
    return _csv([_cells(event) for event in events])


def as_json(event: Event) -> dict[str, Any]:
    """An event under document 001's names, which are the table's."""
    return {
        "id": event.id,
        "timestamp": round(event.created_at.timestamp() * 1000),
        "action": event.action,
        "resource_type": event.resource_type,
        "resource": event.resource,
        "user": event.user,
        "actor_type": event.actor_type,
        "space_path": event.space_path,
        "diff_object": event.diff_object,
        "client_ip": event.client_ip,
        "user_agent": event.user_agent,
        "request_method": event.request_method,
        "request_id": event.request_id,
        "trace_id": event.trace_id,
        "data": event.data,
        "created_at": event.created_at,
        "seq": event.seq,
    }


def _cells(event: Event) -> Sequence[object]:
    diff = event.diff_object or {}
    return (
        *(event.id, event.created_at.isoformat(), event.action, event.resource_type),
        *(event.resource.get("identifier"), _json(event.resource.get("data"))),
        *(event.user.get("uid"), event.user.get("username"), event.user.get("type"), event.actor_type),
        *(event.client_ip, event.user_agent, event.request_method, event.request_id, event.trace_id),
        *(event.space_path, diff.get("old_object"), diff.get("new_object"), _json(diff.get("truncated_fields"))),
        *(_json(event.data), event.seq),
    )


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([[_without_formula(cell) for cell in row] for row in rows])
    return text.getvalue().encode()


def _without_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _json(value: object) -> str | None:
    return orjson.dumps(value).decode() if value else None
