"""Heads: the last seal of each round, kept outside the database.

A trail whose last seals were removed with their events is consistent in itself, signed or not: nothing in it shows that
there was more. So the last seal is also stored elsewhere, and ``verify`` checks all of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Protocol

from headrace.audit import seals
from headrace.audit.findings import Finding, Flaw
from headrace.audit.seals import Seal
from headrace.audit.signing import is_signed
from headrace.database import Tx
from headrace.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Head:
    """A kept seal and the name of its file."""

    number: int
    chain: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Signature:
    signed_by: bytes
    signature: bytes


class KeptHeads(Protocol):
    """Storage of heads. Nothing is ever replaced: a head that contradicts another is evidence as well."""

    @property
    def place(self) -> str:
        """For messages: a folder or an address."""

    async def keep(self, seal: Seal) -> None: ...

    async def list_heads(self) -> Sequence[Head]: ...

    async def list_since(self, day: date) -> Sequence[Head]:
        """Those of seals of this day and later."""

    async def list_first(self) -> Sequence[Head]:
        """Some of the oldest, without reading the names of all the others."""

    async def read_signature(self, head: Head) -> Signature | None:
        """None for a head that is unsigned or cannot be parsed."""


async def find_foreign(tx: Tx, kept: KeptHeads) -> Head | None:
    """One of the oldest heads whose seal this database does not have: another database's trail was kept there before.

    It reads one day's names; ``verify`` compares all of them.
    """
    heads = await kept.list_first()
    chains = await seals.read_chains(tx, [head.number for head in heads])
    return next((head for head in heads if chains.get(head.number) != head.chain), None)


class HeadCheck:
    """Compares a chain of seals with its kept heads.

    With known keys only signed heads count, so that a writer of that storage cannot raise a false alarm.
    """

    def __init__(self, kept: KeptHeads | None, keys: frozenset[bytes]) -> None:
        self._kept = kept
        self._keys = keys
        self._waiting: dict[int, list[Head]] = {}  # by the number of their seal
        self._agreeing: list[Head] = []
        self._contradicting: list[Head] = []

    @property
    def count(self) -> int:
        """The number of matching heads."""
        return len(self._agreeing)

    async def load(self, since: Seal | None = None) -> None:
        """Read them; with a seal, only its own and those of later seals."""
        try:
            heads = await self._list(since) if self._kept else ()
        except Unavailable:
            if self._keys:
                raise
            heads = ()  # as if none were kept: the result says so
        for head in heads:
            self._waiting.setdefault(head.number, []).append(head)

    async def _list(self, since: Seal | None) -> Sequence[Head]:
        assert self._kept is not None
        if since is None:
            return await self._kept.list_heads()
        heads = await self._kept.list_since(since.sealed_at.astimezone(UTC).date())
        return [head for head in heads if head.number >= since.number]

    def compare(self, seal: Seal) -> None:
        """Compare the next seal of the chain."""
        for head in self._waiting.pop(seal.number, ()):
            (self._agreeing if head.chain == seal.chain else self._contradicting).append(head)

    async def conclude(self, last: Seal | None, *, needed: bool) -> Finding | None:
        """The finding after the whole chain was compared. ``needed``: with keys, at least one head is required."""
        if self._kept is None:
            return None
        for head in self._contradicting:
            if await self._is_trusted(head):
                where = f"{head.name} in {self._kept.place}"
                return Finding(Flaw.HEAD, f"Seal {head.number} differs from the one kept as {where}.", seal=head.number)
        for head in sorted((head for heads in self._waiting.values() for head in heads), key=lambda head: -head.number):
            if await self._is_trusted(head):
                end = f"the trail ends with seal {last.number}" if last else "the trail has no seal at all"
                message = f"Its end was cut off: {end}, and {head.name} in {self._kept.place} is the head of another."
                return Finding(Flaw.CUT, message, seal=head.number)
        if needed and self._keys and not await self._any_trusted():
            message = (
                f"No signed head of the trail is kept in {self._kept.place}: a removed end cannot be detected."
                " `headrace audit seal` keeps one; --roots reads the ones you kept yourself."
            )
            return Finding(Flaw.HEAD, message)
        return None

    async def _any_trusted(self) -> bool:
        for head in sorted(self._agreeing, key=lambda head: -head.number):
            if await self._is_trusted(head):
                return True
        return False

    async def _is_trusted(self, head: Head) -> bool:
        if not self._keys:
            return True
        assert self._kept is not None
        signature = await self._kept.read_signature(head)
        if signature is None or signature.signed_by not in self._keys:
            return False
        return is_signed(head.chain, signature.signature, signature.signed_by)
