"""TypeIDs: a prefix for the kind, ``_`` and a UUIDv7 in base32, which holds the time of creation.

>>> task = new("tsk")              # tsk_01h455vb4pex5vsknk084sn02q
>>> time_of(task)                  # the millisecond it was made in
>>> check(task, "tsk")             # the same id, or InvalidId

Ids of one process grow strictly, so a batch keeps its order, unless the clock is set back by more than ten seconds.
Order between processes is only as good as their clocks: page by ids, never prove an order with them.
"""

import os
import re
import threading
import time
import uuid
from datetime import UTC, datetime

from headrace.errors import Invalid

# The product itself acts as this user, so that every row has one.
SYSTEM_USER = "u_00000000000000000000000000"

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
# Two letters at a time: 13 lookups for an id instead of 26.
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}
_SHAPE = re.compile(r"([a-z](?:[a-z_]{0,61}[a-z])?)_([0-7][0-9a-hjkmnp-tv-z]{25})")

_RANDOM_BITS = 74
_SET_BACK_MILLIS = 10_000
_last_millis = 0
_last_random = 0
_last_prefix = ""  # the last millisecond as the ten letters that stand for it
_last_high = -1  # the first half of the last 80 bits, which seldom changes within a millisecond
_last_middle = ""  # and the eight letters that stand for it
_randomness = b""
_lock = threading.Lock()


class InvalidId(Invalid):
    """This is not an id of the expected kind."""

    code = "invalid_id"


def new(prefix: str, *, at: datetime | None = None) -> str:
    """Create an id; ``at`` sets another time than now, for rows that belong to an earlier one."""
    if at is not None:
        return f"{prefix}_{_encode(_millis(at) << 80 | _tail(_fresh_random()))}"
    return f"{prefix}_{_next()}"


def check(value: str, prefix: str) -> str:
    """Return ``value`` if it is an id with this prefix; raises ``InvalidId``."""
    match = _SHAPE.fullmatch(value)
    if match is None or match[1] != prefix:
        raise InvalidId(f"An id that starts with {prefix}_ is expected here.", expected_prefix=prefix)
    return value


def uuid_of(value: str) -> uuid.UUID:
    """The 16 bytes inside."""
    match = _SHAPE.fullmatch(value)
    if match is None:
        raise InvalidId
    number = 0
    for letter in match[2]:
        number = number << 5 | _VALUES[letter]
    return uuid.UUID(int=number)


def from_uuid(prefix: str, value: uuid.UUID) -> str:
    """The id of a UUID."""
    return f"{prefix}_{_encode(value.int)}"


def time_of(value: str) -> datetime:
    """The instant inside, by the clock of the process that made it."""
    return datetime.fromtimestamp((uuid_of(value).int >> 80) / 1000, tz=UTC)


def _millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _fresh_random() -> int:
    # The top bit stays clear, which leaves room to count up within a millisecond.
    return int.from_bytes(os.urandom(10)) >> (80 - _RANDOM_BITS + 1)


def _next() -> str:
    """The 26 letters of an id that is larger than those before it in this process."""
    global _last_millis, _last_random, _last_prefix, _last_high, _last_middle, _randomness
    millis = time.time_ns() // 1_000_000
    with _lock:
        # A clock that was far ahead and was corrected is followed: future ids would be refused.
        if millis > _last_millis or millis < _last_millis - _SET_BACK_MILLIS:
            _last_millis, _last_random = millis, _fresh_random()
            _last_prefix = "".join([_PAIRS[millis >> shift & 1023] for shift in range(40, -1, -10)])
        else:  # the same millisecond, or a clock that was set back a little: count up by an unpredictable step
            if not _randomness:
                _randomness = os.urandom(256)  # a call for each id would cost as much as the rest of it
            _last_random += 1 + int.from_bytes(_randomness[:4])
            _randomness = _randomness[4:]
        n, p = _tail(_last_random), _PAIRS
        high = n >> 40
        if high != _last_high:
            _last_high = high
            _last_middle = f"{p[high >> 30]}{p[high >> 20 & 1023]}{p[high >> 10 & 1023]}{p[high & 1023]}"
        return f"{_last_prefix}{_last_middle}{p[n >> 30 & 1023]}{p[n >> 20 & 1023]}{p[n >> 10 & 1023]}{p[n & 1023]}"


def _tail(random: int) -> int:
    """The 80 bits after the millisecond: version 7, twelve random ones, the variant, the other sixty-two."""
    return 7 << 76 | random >> 62 << 64 | 0b10 << 62 | random & (1 << 62) - 1


def _encode(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def _forget_after_fork() -> None:
    global _last_millis, _randomness, _lock
    _last_millis, _randomness, _lock = 0, b"", threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
