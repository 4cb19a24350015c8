"""``client.usage`` for programs without an event loop; its verbs are described at its twin."""

from collections.abc import Iterator
from datetime import date, datetime

from headrace.client.synchronous_schedules import Loop
from headrace.client.usage import Balance, Entitlement, LedgerEntry, Usage, UsedDay


class SyncUsage:
    def __init__(self, loop: Loop, usage: Usage) -> None:
        self._loop = loop
        self._usage = usage

    def balance(self, *, user_id: str | None = None) -> Balance:
        return self._loop.run(self._usage.balance(user_id=user_id))

    def list(
        self,
        *,
        task_id: str | None = None,
        entitlement_id: str | None = None,
        status: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        user_id: str | None = None,
    ) -> Iterator[LedgerEntry]:
        return self._loop.iterate(
            self._usage.list(
                task_id=task_id,
                entitlement_id=entitlement_id,
                status=status,
                source=source,
                since=since,
                until=until,
                user_id=user_id,
            )
        )

    def days(
        self, *, since: date | None = None, until: date | None = None, user_id: str | None = None
    ) -> tuple[UsedDay, ...]:
        return self._loop.run(self._usage.days(since=since, until=until, user_id=user_id))

    def entitlements(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Entitlement]:
        return self._loop.iterate(self._usage.entitlements(status=status, user_id=user_id))

    def entitlement(self, entitlement_id: str) -> Entitlement:
        return self._loop.run(self._usage.entitlement(entitlement_id))

    def adjust(self, entitlement_id: str, units: int, *, reason: str, once: str | None = None) -> Entitlement:
        return self._loop.run(self._usage.adjust(entitlement_id, units, reason=reason, once=once))
