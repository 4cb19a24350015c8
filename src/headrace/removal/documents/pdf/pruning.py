"""What is useless once drawings are gone: empty brackets and unused names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pikepdf

from headrace.removal.documents.pdf.reading import operator_of

SHOWS = ("Tj", "TJ", "'", '"')
_PAINTS = {*SHOWS, "S", "s", "f", "F", "f*", "B", "B*", "b", "b*", "sh", "Do", "INLINE IMAGE"}
_OPENS = {"q": "Q", "BT": "ET", "BMC": "EMC", "BDC": "EMC"}
_CLOSES = {"Q", "ET", "EMC"}
_MOVES = ("Td", "TD", "Tm", "T*")
# Which operator names what: the place of the name among the operands, and the list of resources that has it.
_CALLS = {
    "Do": "/XObject", "Tf": "/Font", "gs": "/ExtGState", "BDC": "/Properties", "DP": "/Properties", "sh": "/Shading",
    "scn": "/Pattern", "SCN": "/Pattern", "cs": "/ColorSpace", "CS": "/ColorSpace",
}  # fmt: skip


@dataclass(slots=True)
class _Bracket:
    at: int
    closes_with: str
    paints: bool = False
    dropped: bool = False
    tagged: bool = False  # named by the document's structure: it stays, if empty


def emptied(names: Sequence[str], dropped: set[int], tagged: set[int]) -> set[int]:
    """Brackets that hold nothing now, with the settings inside of those that end their effect.

    Settings in a text object (its font, its spacing) outlast it, so that only its moves go. A stream whose brackets do
    not match keeps them all.
    """
    useless: set[int] = set()
    open_brackets = [_Bracket(-1, "")]
    for at, name in enumerate(names):
        inner = open_brackets[-1]
        if at in dropped:
            inner.dropped = True
        elif name in _OPENS:
            open_brackets.append(_Bracket(at, _OPENS[name], tagged=at in tagged))
        elif name in _CLOSES:
            if inner.closes_with != name:
                return set()
            _close(names, open_brackets, at, useless)
        elif name in _PAINTS:
            inner.paints = True
    return useless


def _close(names: Sequence[str], brackets: list[_Bracket], at: int, useless: set[int]) -> None:
    done, outer = brackets.pop(), brackets[-1]
    outer.paints |= done.paints
    outer.dropped |= done.dropped
    outer.tagged |= done.tagged and names[outer.at] == "q"
    if done.paints or not done.dropped or done.tagged:
        return
    if done.closes_with == "Q":
        useless.update(range(done.at, at + 1))
    elif done.closes_with == "ET":
        useless.update(each for each in range(done.at, at + 1) if names[each] in (*_MOVES, "BT", "ET"))
    else:
        useless.update((done.at, at))


def called(instructions: Sequence[Any]) -> set[tuple[str, str]]:
    """All resources that instructions name: the list, and the name in it."""
    names = set()
    for instruction in instructions:
        kind = _CALLS.get(operator_of(instruction))
        if kind is None or not instruction.operands:
            continue
        at = 1 if kind == "/Properties" else -1 if kind == "/Pattern" else 0
        if at < len(instruction.operands) and isinstance(instruction.operands[at], pikepdf.Name):
            names.add((kind, str(instruction.operands[at])))
    return names


def own_copy(resources: Any) -> pikepdf.Dictionary:
    """Resources of which lists can be changed without a change for others that share them."""
    copied = pikepdf.Dictionary()
    for key in resources.keys():  # noqa: SIM118
        value = resources[key]
        copied[key] = pikepdf.Dictionary(dict(value.items())) if isinstance(value, pikepdf.Dictionary) else value
    return copied


def forget(resources: pikepdf.Dictionary, names: set[tuple[str, str]]) -> None:
    for kind, name in names:
        category = resources.get(kind)
        if isinstance(category, pikepdf.Dictionary) and name in category:
            del category[name]
            if not len(category.keys()):
                del resources[kind]
