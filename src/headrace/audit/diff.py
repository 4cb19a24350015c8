"""Both sides of a change as JSON of at most 64 KB each, truncated at the longest values first.

An ordinary row is only encoded. A value that is too large, or not representable in JSON or PostgreSQL, is traversed;
that takes linear time in its size (and a sort) for any shape.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import orjson

from headrace.audit.text import ELLIPSIS, clean

LIMIT = 65_536
# If less than this would remain of each long text, whole fields are removed instead.
_MIN_TEXT_BYTES = 32
# Above this number of nested paths only the names of top-level fields are listed.
_MAX_PATHS = 100
_MAX_PATH_LENGTH = 200
_MAX_NAMES_BYTES = 4 * LIMIT
# orjson itself stops at 254 levels.
_MAX_DEPTH = 200
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    """One side: JSON of at most ``LIMIT`` bytes, the truncated paths, and the digest of a longer original."""

    json: str
    cut: tuple[str, ...] = ()
    sha256: str | None = None


@dataclass(slots=True)
class _Text:
    """A nested text, and the size of its encoded form."""

    path: Path
    home: Any  # the dict or list that holds it
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = _size(self.home[self.path[-1]])


def diff_object(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, object] | None:
    """The audit trail's ``diff_object`` for a change from ``old`` to ``new``; None if both are None.

    The names are document 001's. A truncated side also has ``…_sha256``, the digest of its whole JSON, so that a full
    copy from elsewhere can be verified.
    """
    if old is None and new is None:
        return None
    sides = {name: encode(side) for name, side in (("old_object", old), ("new_object", new)) if side is not None}
    result: dict[str, object] = {name: side.json for name, side in sides.items()}
    for name in ("old_object", "new_object"):
        result[f"{name}_truncated"] = name in sides and bool(sides[name].cut)
    cut = dict.fromkeys(path for side in sides.values() for path in side.cut)
    if cut:
        result["truncated_fields"] = list(cut)
    result |= {f"{name}_sha256": side.sha256 for name, side in sides.items() if side.sha256 is not None}
    return result


def encode(value: Mapping[str, Any], *, limit: int = LIMIT) -> Encoded:
    """Valid JSON of ``value`` in at most ``limit`` bytes, truncated on character boundaries."""
    whole, too_deep = _dump(value)
    if len(whole) <= limit:
        return Encoded(whole.decode(), _name(too_deep))
    digest = hashlib.sha256(whole).hexdigest()
    copy = orjson.loads(whole)
    cut = _shorten_texts(copy, len(whole), limit, fewest=_MIN_TEXT_BYTES)
    if cut is None:
        cut = _flatten(copy, limit)
    return Encoded(orjson.dumps(copy).decode(), _name([*too_deep, *cut]), digest)


def _dump(value: Mapping[str, Any]) -> tuple[bytes, list[Path]]:
    """The whole as JSON, and the fields nested too deep, which are truncated regardless of size."""
    try:
        encoded = orjson.dumps(value, default=_plain_scalar, option=_OPTIONS)
    except TypeError:  # too deep, a number above 64 bits, text that is not UTF-8: rare enough for a traversal
        encoded = b"\\u0000"
    if b"\\u0000" not in encoded:
        return encoded, []
    too_deep: list[Path] = []
    names = {key: clean(str(key)) for key in value}
    plain = {names[key]: _plain(item, 1, partial(too_deep.append, (names[key],))) for key, item in value.items()}
    return orjson.dumps(plain), too_deep


def _plain(value: Any, depth: int, on_cut: Callable[[], None]) -> Any:
    """A copy that every encoder accepts: clean texts, text keys, 64-bit numbers, limited nesting."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else hex(value)
    if depth >= _MAX_DEPTH:
        on_cut()
        return "(nested too deep)"
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item, depth + 1, on_cut) for key, item in value.items()}
    if isinstance(value, Sequence | AbstractSet) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(item, depth + 1, on_cut) for item in value]
    try:
        return _plain(orjson.loads(orjson.dumps(value, default=_plain_scalar, option=_OPTIONS)), depth + 1, on_cut)
    except TypeError:
        return f"({type(value).__name__})"


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet):
        return sorted(value, key=str)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({len(value)} bytes)"
    return str(value)  # an address, a decimal, a path: stored as text


def _shorten_texts(root: dict[str, Any], size: int, limit: int, *, fewest: int) -> list[Path] | None:
    """Truncate the longest texts in place to a common length that fits; None if too little would remain."""
    texts = sorted(_texts(root), key=lambda text: text.size)
    left = limit - (size - sum(text.size for text in texts))
    for index, text in enumerate(texts):
        level = left // (len(texts) - index)
        if text.size > level:
            break
        left -= text.size
    else:
        return None
    if level < fewest:
        return None
    for text in texts[index:]:
        text.home[text.path[-1]] = _cut(text.home[text.path[-1]], level)
    return [text.path for text in texts[index:]]


def _flatten(root: dict[str, Any], limit: int) -> list[Path]:
    """For thousands of small values: each field becomes its JSON text, truncated in place as needed."""
    nested = [key for key, value in root.items() if isinstance(value, dict | list)]
    for key in nested:
        root[key] = orjson.dumps(root[key])[: 2 * limit].decode(errors="ignore")
    cut: list[Path] = [(key,) for key in nested]
    size = len(orjson.dumps(root))
    if size > limit:
        shortened = _shorten_texts(root, size, limit, fewest=0)
        if shortened is None:  # even the names are too long
            shortened = _leave_out(root, limit)
        cut = list(dict.fromkeys([*cut, *shortened]))
    return cut


def _leave_out(root: dict[str, Any], limit: int) -> list[Path]:
    """Remove whole fields, largest first, until the rest fits."""
    costs = {key: len(orjson.dumps({key: value})) - 1 for key, value in root.items()}  # with a comma, without braces
    size = 1 + sum(costs.values())
    gone: list[Path] = []
    for key in sorted(costs, key=costs.__getitem__, reverse=True):
        if size <= limit or not root:
            break
        del root[key]
        size -= costs[key]
        gone.append((key,))
    return gone


def _texts(root: dict[str, Any]) -> Iterator[_Text]:
    waiting: list[tuple[Path, Any]] = [((), root)]
    while waiting:
        path, home = waiting.pop()
        for key, value in home.items() if isinstance(home, dict) else enumerate(home):
            if isinstance(value, str):
                yield _Text((*path, key), home)
            elif isinstance(value, dict | list):
                waiting.append(((*path, key), value))


def _size(text: str) -> int:
    return len(orjson.dumps(text)) - 2


def _cut(text: str, size: int) -> str:
    """The longest prefix of ``text`` that, with an ellipsis, has at most ``size`` bytes in JSON."""
    room = size - _size(ELLIPSIS)
    if room < 0:
        return ""
    # Every character has at least one byte, so only the first ``room`` can fit.
    keep = bisect_right(range(min(len(text), room) + 1), room, key=lambda length: _size(text[:length])) - 1
    return text[:keep] + ELLIPSIS


def _name(paths: list[Path]) -> tuple[str, ...]:
    if len(paths) > _MAX_PATHS:
        paths = [path[:1] for path in paths]
    names = sorted({"".join(_step(part) for part in path).removeprefix(".")[:_MAX_PATH_LENGTH] for path in paths})
    room = _MAX_NAMES_BYTES
    for at, name in enumerate(names):
        room -= _size(name) + 3
        if room < 0:
            return (*names[:at], "*")  # more paths than are useful
    return tuple(names)


def _step(part: str | int) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"
