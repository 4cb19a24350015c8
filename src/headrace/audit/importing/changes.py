"""Parses the ``changes`` column of legacy trails into the two sides of a change.

``{field: [old, new]}``          pairs
``{field: {old: …, new: …}}``    pairs with names; also from/to and before/after
``{before: {…}, after: {…}}``    both sides; also old/new
``[{op, path, value}, …]``       JSON Patch, with ``old`` where it was kept
``[{field, old, new}, …]``       a list of pairs

Any other value is kept whole on the new side, under ``changes``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

Sides = tuple[dict[str, Any] | None, dict[str, Any] | None]

_PAIRS = (("old", "new"), ("before", "after"), ("from", "to"), ("old_value", "new_value"), ("oldValue", "newValue"))
_FIELD_NAMES = ("field", "path", "name", "key")


def sides(changes: Any) -> Sides:
    """The object before and after; None for an unknown side."""
    if isinstance(changes, str):
        try:
            changes = orjson.loads(changes)
        except orjson.JSONDecodeError:
            return None, {"changes": changes}
    if not changes:
        return None, None
    if isinstance(changes, Mapping):
        return _of_mapping(changes)
    if isinstance(changes, Sequence) and all(isinstance(each, Mapping) for each in changes):
        return _of_list(changes)
    return None, {"changes": changes}


def _of_mapping(changes: Mapping[str, Any]) -> Sides:
    pair = _pair(changes)
    if pair is not None and all(side is None or isinstance(side, Mapping) for side in pair):
        return _side(pair[0]), _side(pair[1])
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    for field, value in changes.items():
        if isinstance(value, list) and len(value) == 2:
            old[field], new[field] = value
        elif isinstance(value, Mapping) and (each := _pair(value)) is not None:
            old[field], new[field] = each
        else:
            new[field] = value
    return old or None, new or None


def _of_list(changes: Sequence[Mapping[str, Any]]) -> Sides:
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    for change in changes:
        field = next((str(change[name]) for name in _FIELD_NAMES if change.get(name)), None)
        if field is None:
            return None, {"changes": list(changes)}
        field = field.strip("/").replace("/", ".")
        for before, after in _PAIRS:
            if before in change and (before, after) != ("from", "to"):  # JSON Patch has another "from"
                old[field] = change[before]
            if after in change:
                new[field] = change[after]
        if "op" in change:
            _patch(change, field, old, new)
    return old or None, new or None


def _patch(change: Mapping[str, Any], field: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    match change["op"]:
        case "remove":
            old.setdefault(field, change.get("value"))
        case "move" | "copy":
            new[field] = f"({change['op']} of {str(change.get('from', '')).strip('/').replace('/', '.')})"
        case _ if "value" in change:
            new[field] = change["value"]


def _pair(value: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Both sides of a mapping that has no other keys."""
    for before, after in _PAIRS:
        if value and value.keys() <= {before, after}:
            return value.get(before), value.get(after)
    return None


def _side(value: Any) -> dict[str, Any] | None:
    return dict(value) if value else None
