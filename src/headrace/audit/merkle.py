"""Merkle trees over leaves of 32 bytes, as RFC 6962 draws them: a lone node at the end of a level moves up as it is."""

import hashlib
from collections.abc import Sequence
from typing import Literal

SIZE = 32
# A leaf can never pass for a node: they are hashed with different first bytes.
_LEAF, _NODE = b"\x00", b"\x01"

Step = tuple[Literal["left", "right"], bytes]
"""A neighbour on the way up, and the side that it stands on."""


def leaf(content: bytes) -> bytes:
    return hashlib.sha256(_LEAF + content).digest()


def split(leaves: bytes) -> list[bytes]:
    """Leaves that were stored one after another."""
    return [leaves[at : at + SIZE] for at in range(0, len(leaves), SIZE)]


def root(leaves: Sequence[bytes]) -> bytes:
    level = list(leaves)
    while len(level) > 1:
        level = _up(level)
    return level[0]


def path(leaves: Sequence[bytes], index: int) -> list[Step]:
    """What is needed to get from one leaf to the root."""
    steps: list[Step] = []
    level = list(leaves)
    while len(level) > 1:
        neighbour = index ^ 1
        if neighbour < len(level):
            steps.append(("left" if neighbour < index else "right", level[neighbour]))
        level, index = _up(level), index // 2
    return steps


def climb(start: bytes, steps: Sequence[Step]) -> bytes:
    """The root that a leaf and its path lead to."""
    for side, neighbour in steps:
        pair = neighbour + start if side == "left" else start + neighbour
        start = hashlib.sha256(_NODE + pair).digest()
    return start


def _up(level: list[bytes]) -> list[bytes]:
    sha256 = hashlib.sha256
    above = [sha256(_NODE + level[at] + level[at + 1]).digest() for at in range(0, len(level) - 1, 2)]
    return above + level[-1:] if len(level) % 2 else above
