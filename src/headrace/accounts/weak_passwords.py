"""Passwords that whoever guesses tries first. No I/O but for the list that comes along."""

from functools import cache
from importlib.resources import files
from itertools import pairwise

_FEW_LETTERS = 4  # different ones, or fewer
_SHORT = 4  # a username shorter than this says little about a password that holds it


def weakness(password: str, username: str | None) -> str | None:
    """Why this is easy to guess, as the end of a sentence; None if no rule says so. ``username`` is folded."""
    folded = password.strip().casefold()
    bare = folded.strip("0123456789!?.-_*#$ ")
    if username is not None and _is_made_of(folded, bare, username):
        return "must not be made of the username"
    if len(set(folded)) <= _FEW_LETTERS or _repeats(folded):
        return "must not be a few characters over and over"
    if _is_run(folded):
        return "must not be a row of the alphabet or of digits"
    if folded in _commonest():
        return "must not be one of the 10,000 commonest"
    return None


def _is_made_of(folded: str, bare: str, username: str) -> bool:
    if folded in (username, username[::-1]):
        return True
    return len(username) >= _SHORT and bare in (username, username[::-1], username * 2)


def _repeats(text: str) -> bool:
    """Whether it is a part of itself, over and over; the last time may be cut off."""
    return any(text == (text[:length] * len(text))[: len(text)] for length in range(1, len(text) // 2 + 1))


def _is_run(text: str) -> bool:
    steps = {ord(later) - ord(earlier) for earlier, later in pairwise(text)}
    return steps in ({1}, {-1})


@cache
def _commonest() -> frozenset[str]:
    lines = (files(__package__) / "common_passwords.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))
