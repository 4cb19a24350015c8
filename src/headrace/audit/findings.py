"""Findings of a verification, and the comparison of rows with their seals."""

from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headrace.audit import merkle
from headrace.audit.canonical import canonical
from headrace.audit.model import EventId
from headrace.audit.seals import Leaves, Seal

LeavesOf = Callable[[int], Awaitable[Leaves | None]]


class Flaw(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"
    MOVED = "moved"
    UNNAMED = "unnamed"  # some event of this seal, and the leaves that would name it are damaged too
    SEAL = "seal"
    SIGNATURE = "signature"
    EXPORT = "export"
    HEAD = "head"  # the kept head contradicts it, or is missing
    CUT = "cut"  # the end of the trail is missing


@dataclass(frozen=True, slots=True)
class Finding:
    """The first inconsistency."""

    flaw: Flaw
    message: str
    seal: int | None = None
    event_id: EventId | None = None


class FlawFound(Exception):
    """Ends a verification."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding


async def verify_rows(
    of_month: Sequence[Seal], rows: AsyncIterable[Mapping[str, Any]], *, leaves_of: LeavesOf | None = None
) -> Finding | None:
    """Verify rows from elsewhere, such as an archive: all of one month by ``seq``, and its seals in order.

    With the leaves, where they are still kept, names the inconsistent event; without, only its seal.
    """
    waiting = deque(of_month)
    ids: list[EventId] = []
    hashes: list[bytes] = []

    async def close() -> Finding | None:
        seal, found = waiting.popleft(), Leaves(ids.copy(), hashes.copy())
        ids.clear()
        hashes.clear()
        if fits(seal, found.hashes):
            return None
        return compare(seal, await leaves_of(seal.number) if leaves_of else None, found)

    async for row in rows:
        while waiting and row["seq"] > waiting[0].last_seq:
            if finding := await close():
                return finding
        if not waiting or row["seq"] <= waiting[0].after_seq:
            return Finding(Flaw.ADDED, f"{row['id']} is in no seal.", event_id=row["id"])
        ids.append(row["id"])
        hashes.append(merkle.leaf(canonical(row)))
    while waiting:
        if finding := await close():
            return finding
    return None


def fits(seal: Seal, hashes: Sequence[bytes]) -> bool:
    return len(hashes) == seal.events and merkle.root(hashes) == seal.root


def compare(seal: Seal, sealed: Leaves | None, found: Leaves) -> Finding:
    """Classify the first event that differs from its sealed form."""
    where = f"in seal {seal.number} ({seal.month:%Y-%m})"
    if sealed is None or not fits(seal, sealed.hashes):
        if sealed is not None and list(sealed.hashes) == list(found.hashes):
            return Finding(Flaw.SEAL, f"The root of seal {seal.number} was replaced.", seal=seal.number)
        message = f"One of the {seal.events} events {where} was changed; which one can no longer be determined."
        return Finding(Flaw.UNNAMED, message, seal=seal.number, event_id=found.ids[0] if found.ids else None)
    at = next(
        (at for at, pair in enumerate(zip(sealed.hashes, found.hashes, strict=False)) if pair[0] != pair[1]),
        min(len(sealed.hashes), len(found.hashes)),
    )
    before = sealed.ids[at] if at < len(sealed.ids) else None
    now = found.ids[at] if at < len(found.ids) else None
    if before is not None and before == now:
        return Finding(Flaw.CHANGED, f"{now} {where} was changed.", seal=seal.number, event_id=now)
    if before is not None and before not in found.ids:
        return Finding(Flaw.MISSING, f"{before} {where} is missing.", seal=seal.number, event_id=before)
    if now is not None and now not in sealed.ids:
        return Finding(Flaw.ADDED, f"{now} {where} was added later.", seal=seal.number, event_id=now)
    return Finding(
        Flaw.MOVED, f"{now or before} {where} stands in another place.", seal=seal.number, event_id=now or before
    )
