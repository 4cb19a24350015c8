"""The key by which a type's limit per key counts its tasks: ``"user"``, or a path into the payload.

It is data and no function, so that every submitter can compute it. ``headrace.limit_key`` does the same in SQL; a test
runs one table of cases through both.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

from headrace.tasks.errors import PayloadInvalid, TaskSpecInvalid

LONGEST_KEY = 255
ALLOWED = '"user", or "payload.FIELD" with any number of further .FIELDs; of letters, digits, _ and -, no digit first'

_USER = "user"
_RULE = re.compile(r"user|payload(\.[A-Za-z_][A-Za-z0-9_-]*)+")
_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})


def is_rule(text: object) -> bool:
    return isinstance(text, str) and len(text) <= 255 and _RULE.fullmatch(text) is not None


def limit_key(type_name: str, rule: str | None, submitted: str | None, *, payload: Any, user_id: str) -> str:
    """The key of a task; "" for none, and so no limit.

    Where its type computes one, a submitted key is refused: a user could evade the limit, or use up another's.
    """
    if rule is None:
        return submitted or ""
    if submitted is not None:
        raise TaskSpecInvalid(f"limit_key must be left out for {type_name}: the type takes it from {rule}.")
    if rule == _USER:
        return user_id
    _, *path = rule.split(".")
    key = _text(value_at(payload, path))
    if key is None or len(key) > LONGEST_KEY:
        field = ".".join(path)
        raise PayloadInvalid(
            f"The payload does not fit {type_name}: {field} is the key of a limit, and so a text, a number or a boolean"
            f" of at most {LONGEST_KEY} characters.",
            fields=[field],
        )
    return key


def value_at(payload: Any, path: Sequence[str]) -> Any:
    """The value stored there; None where there is none."""
    value = payload
    for name in path:
        value = _plain(value)
        value = value.get(name) if isinstance(value, dict) else None
    return _plain(value)


def _plain(value: Any) -> Any:
    """Its stored form: a dataclass as an object, a date as text."""
    return value if type(value) in _PLAIN else orjson.loads(orjson.dumps(value))


def _text(value: Any) -> str | None:
    """None if it cannot be a key."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if isfinite(value):
            # One number, one key: 1 and 1.0 must not have slots of their own. Adding nothing drops the sign of a zero.
            return f"{(Decimal(repr(value)) + 0).normalize():f}"
        case float():
            return ""  # it is stored as null
        case _:
            return None
