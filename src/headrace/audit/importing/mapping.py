"""Maps a legacy row to an event, by document 001's mapping."""

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from headrace import ids
from headrace.audit import redaction
from headrace.audit.canonical import micros
from headrace.audit.diff import diff_object
from headrace.audit.importing.changes import sides
from headrace.audit.model import Action, ActorType, PrincipalType, ResourceType
from headrace.audit.record import address
from headrace.audit.text import clean, short

COLUMNS = (
    *("id", "created_at", "action", "resource_type", "resource_id", "resource_name", "user_id", "username"),
    *("ip_address", "user_agent", "request_id", "changes"),
)
REQUIRED = frozenset({"id", "created_at", "action", "resource_type"})

_MAX_REASON_LENGTH = 64
_SYNONYMS = {
    Action.CREATED: "create add added insert new register",
    Action.UPDATED: "update modify modified edit edited change changed patch patched set",
    Action.DELETED: "delete remove removed destroy destroyed",
    Action.READ: "view viewed get list reveal access accessed",
    Action.ENABLED: "enable activate activated start started resume",
    Action.DISABLED: "disable deactivate deactivated stop stopped pause suspend",
    Action.BYPASSED: "bypass",
    Action.FORCE_PUSH: "force_push",
    Action.LOGIN: "signin sign_in log_in logged_in",
    Action.LOGOUT: "signout sign_out log_out logged_out",
    Action.GRANTED: "grant assign assigned",
    Action.REVOKED: "revoke unassign unassigned",
}


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


_ACTIONS = {_plain(word): action for action, words in _SYNONYMS.items() for word in (action, *words.split())}
_TYPES = {_plain(type_): type_ for type_ in ResourceType} | {f"{_plain(type_)}s": type_ for type_ in ResourceType}


class Skipped(Exception):
    """This row cannot become an event; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Names:
    """Additional names of actions and types in a legacy trail."""

    actions: Mapping[str, Action] = field(default_factory=dict)
    types: Mapping[str, ResourceType] = field(default_factory=dict)

    def action(self, text: str | None) -> Action:
        found = self.actions.get(text or "") or _ACTIONS.get(_plain(text or ""))
        if found is None:
            raise Skipped(f"unknown action {short(text, _MAX_REASON_LENGTH)!r}")
        return found

    def type(self, text: str | None) -> ResourceType:
        found = self.types.get(text or "") or _TYPES.get(_plain(text or ""))
        if found is None:
            raise Skipped(f"unknown resource type {short(text, _MAX_REASON_LENGTH)!r}")
        return found


def event_of(row: Mapping[str, Any], source: str, names: Names) -> dict[str, object]:
    """The event's columns, deterministic including the id. ``Skipped`` if the row cannot be an event."""
    if row["created_at"] is None:
        raise Skipped("no time")
    action, type_ = names.action(row["action"]), names.type(row["resource_type"])
    millis = micros(_aware(row["created_at"])) // 1000
    if not 0 < millis < 2**48:
        raise Skipped("a time that no id can hold")
    user_id, ip = _text(row["user_id"]), _text(row["ip_address"])
    where = address((ip or "").strip().partition("/")[0] or None)
    data = {"imported_from": source, "legacy_id": clean(str(row["id"]))}
    if ip and where is None:
        data["ip_address"] = short(ip, 255) or ""  # not an address: kept as text
    old, new = (redaction.hide_secrets(side) for side in sides(row["changes"]))
    return {
        "id": _id(millis, source, str(row["id"])),
        "millis": millis,
        "action": action,
        "resource_type": type_,
        "resource": {
            "type": type_,
            "identifier": short(_text(row["resource_id"]) or "", 255),
            "data": {"resourceName": short(_text(row["resource_name"]) or "", 2000)},
        },
        "user": {
            "uid": short(user_id, 255) if user_id else "anonymous",
            "username": short(_text(row["username"]) or "", 255),
            "type": PrincipalType.USER if user_id else PrincipalType.ANONYMOUS,
        },
        "diff_object": diff_object(old, new),
        "client_ip": where,
        "user_agent": short(_text(row["user_agent"]), 512),
        "request_method": "POST",  # as the specification assumes
        "request_id": short(_text(row["request_id"]), 128),
        "data": data,
        "actor_type": ActorType.USER,
    }


def _id(millis: int, source: str, legacy_id: str) -> str:
    """A TypeID with a digest in place of the random part: importing a row again finds the same id."""
    digest = int.from_bytes(hashlib.sha256(f"{source}\n{legacy_id}".encode(errors="replace")).digest()[:10])
    tail = 7 << 76 | (digest >> 62 & 0xFFF) << 64 | 0b10 << 62 | digest & (1 << 62) - 1
    return ids.from_uuid("aud", uuid.UUID(int=millis << 80 | tail))


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
