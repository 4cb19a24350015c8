"""Entitlements and usage: ``client.usage``."""

from collections.abc import AsyncGenerator
from datetime import date, datetime

from headrace.client.generated.answers import Balance, Entitlement, LedgerEntry, UsedDay
from headrace.client.verbs import Verbs, given, part


class Usage(Verbs):
    """Usage and remaining quota."""

    async def balance(self, *, user_id: str | None = None) -> Balance:
        """The units that you can use now, and until when."""
        return Balance.of(await self._get("/v1/usage/balance", given({"user_id": user_id})))

    async def list(
        self,
        *,
        task_id: str | None = None,
        entitlement_id: str | None = None,
        status: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[LedgerEntry, None]:
        """Your ledger, newest first: granted units, and those that each task held, used and released."""
        asked = {
            "task_id": task_id,
            "entitlement_id": entitlement_id,
            "status": status,
            "source": source,
            "since": since,
            "until": until,
            "user_id": user_id,
        }
        async for item in self._pages("/v1/usage", asked):
            yield LedgerEntry.of(item)

    async def days(
        self, *, since: date | None = None, until: date | None = None, user_id: str | None = None
    ) -> tuple[UsedDay, ...]:
        """Units charged and released on each day (UTC): by default the last 30 days, at most 366."""
        first = None if since is None else since.isoformat()
        last = None if until is None else until.isoformat()
        answer = await self._get("/v1/usage/days", given({"since": first, "until": last, "user_id": user_id}))
        return tuple(UsedDay.of(day) for day in answer["days"])

    async def entitlements(
        self, *, status: str | None = None, user_id: str | None = None
    ) -> AsyncGenerator[Entitlement, None]:
        """Your entitlements, newest first."""
        async for item in self._pages("/v1/entitlements", {"status": status, "user_id": user_id}):
            yield Entitlement.of(item)

    async def entitlement(self, entitlement_id: str) -> Entitlement:
        """One entitlement."""
        return Entitlement.of(await self._get(f"/v1/entitlements/{part(entitlement_id)}"))

    async def adjust(self, entitlement_id: str, units: int, *, reason: str, once: str | None = None) -> Entitlement:
        """Add units to a user's quota, or remove remaining ones. For administrators."""
        path = f"/v1/admin/entitlements/{part(entitlement_id)}/adjust"
        answer = await self._create(path, {"units": units, "reason": reason}, once)
        return Entitlement.of(answer["entitlement"])
