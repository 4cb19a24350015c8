"""Merkle trees over leaves of 32 bytes, as in RFC 6962: a lone node at the end of a level moves up unchanged."""

import hashlib
from collections.abc import Sequence
from typing import Literal

SIZE = 32
# Different prefixes, so that a leaf can never be taken for a node.
_LEAF, _NODE = b"\x00", b"\x01"

Step = tuple[Literal["left", "right"], bytes]
"""A sibling on the path to the root, and its side."""


def leaf(content: bytes) -> bytes:
    return hashlib.sha256(_LEAF + content).digest()


def split(leaves: bytes) -> list[bytes]:
    """Split concatenated leaves."""
    return [leaves[at : at + SIZE] for at in range(0, len(leaves), SIZE)]


def root(leaves: Sequence[bytes]) -> bytes:
    level = list(leaves)
    while len(level) > 1:
        level = _parent_level(level)
    return level[0]


def path(leaves: Sequence[bytes], index: int) -> list[Step]:
    """The audit path from a leaf to the root."""
    steps: list[Step] = []
    level = list(leaves)
    while len(level) > 1:
        neighbour = index ^ 1
        if neighbour < len(level):
            steps.append(("left" if neighbour < index else "right", level[neighbour]))
        level, index = _parent_level(level), index // 2
    return steps


def climb(start: bytes, steps: Sequence[Step]) -> bytes:
    """The root computed from a leaf and its path."""
    for side, neighbour in steps:
        pair = neighbour + start if side == "left" else start + neighbour
        start = hashlib.sha256(_NODE + pair).digest()
    return start


def _parent_level(level: list[bytes]) -> list[bytes]:
    sha256 = hashlib.sha256
    above = [sha256(_NODE + level[at] + level[at + 1]).digest() for at in range(0, len(level) - 1, 2)]
    return above + level[-1:] if len(level) % 2 else above
