"""Weak passwords, which are guessed first. No I/O except reading the bundled list."""

from functools import cache
from importlib.resources import files
from itertools import pairwise

_MAX_DISTINCT_LETTERS = 4  # distinct characters of a weak password, at most
_MIN_USERNAME_LENGTH = 4  # shorter usernames may occur in a password by chance


def weakness(password: str, username: str | None) -> str | None:
    """Why this is easy to guess, as the end of a sentence; None if no rule matches. ``username`` is folded."""
    folded = password.strip().casefold()
    bare = folded.strip("0123456789!?.-_*#$ ")
    if username is not None and _contains_username(folded, bare, username):
        return "must not be made of the username"
    if len(set(folded)) <= _MAX_DISTINCT_LETTERS or _repeats(folded):
        return "must not be a few characters over and over"
    if _is_run(folded):
        return "must not be a row of the alphabet or of digits"
    if folded in _common_passwords():
        return "must not be one of the 10,000 commonest"
    return None


def _contains_username(folded: str, bare: str, username: str) -> bool:
    if folded in (username, username[::-1]):
        return True
    return len(username) >= _MIN_USERNAME_LENGTH and bare in (username, username[::-1], username * 2)


def _repeats(text: str) -> bool:
    """Whether it repeats a part of itself; the last repetition may be incomplete."""
    return any(text == (text[:length] * len(text))[: len(text)] for length in range(1, len(text) // 2 + 1))


def _is_run(text: str) -> bool:
    steps = {ord(later) - ord(earlier) for earlier, later in pairwise(text)}
    return steps in ({1}, {-1})


@cache
def _common_passwords() -> frozenset[str]:
    lines = (files(__package__) / "common_passwords.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))
