"""Verbs that follow from the API description alone.

Generated from the API description by `make docs`: do not edit.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.client.generated.answers import (
    Archive,
    AuditEvent,
    AuditProof,
    AuditVerification,
    Config,
    ConfigKey,
    Deletion,
    LedgerVerification,
    MonthsMade,
    OutboxEvent,
    OutboxState,
    Partition,
    Plan,
    Risk,
    RiskBoard,
    RiskTrace,
    Session,
    Setting,
    User,
)
from headrace.client.verbs import Verbs, given, part


class Sessions(Verbs):
    """The caller's sessions in browsers."""

    async def get(self, session_id: str) -> Session:
        """One of your active sessions."""
        return Session.of(await self._get(f"/v1/sessions/{part(session_id)}"))

    async def revoke(self, session_id: str) -> None:
        """End one of your sessions. Ending the session of this request is a logout."""
        await self._change(f"/v1/sessions/{part(session_id)}", None, safe=False, method="DELETE")

    async def revoke_others(self) -> int:
        """End all your sessions but the one of this request."""
        value: int = (await self._change("/v1/sessions", None, safe=False, method="DELETE"))["ended"]
        return value

    async def list(self) -> AsyncGenerator[Session, None]:
        """Your active sessions, newest first."""
        async for item in self._pages("/v1/sessions", {}):
            yield Session.of(item)


class Deletions(Verbs):
    """Deletions of accounts, for administrators."""

    async def order(self, user_id: str, *, at_once: bool | None = None) -> Deletion:
        """Request the deletion of a user's account. Idempotent; with `at_once` it begins now. Only an administrator
        can undo it.
        """
        return Deletion.of(
            await self._change(
                f"/v1/admin/users/{part(user_id)}/deletion", None, safe=True, body=given({"at_once": at_once})
            )
        )

    async def get(self, user_id: str) -> Deletion:
        """The last deletion of an account, with its progress."""
        return Deletion.of(await self._get(f"/v1/admin/users/{part(user_id)}/deletion"))

    async def undo(self, user_id: str) -> User:
        """Undo a deletion that has not begun: the user's former status is restored. Their API keys stay revoked."""
        return User.of(
            await self._change(f"/v1/admin/users/{part(user_id)}/deletion", None, safe=False, method="DELETE")
        )

    async def list(self, *, status: str | None = None) -> AsyncGenerator[Deletion, None]:
        """Deletions of accounts, newest first."""
        async for item in self._pages("/v1/admin/deletions", {"status": status}):
            yield Deletion.of(item)


class Plans(Verbs):
    """Plans for sale; ``all`` and the changes are for administrators."""

    async def all(self, *, is_active: bool | None = None) -> AsyncGenerator[Plan, None]:
        """All plans, newest first."""
        async for item in self._pages("/v1/admin/plans", {"is_active": is_active}):
            yield Plan.of(item)

    async def create(
        self,
        name: str,
        price_cents: int,
        monthly_quota: int,
        *,
        currency: str | None = None,
        features: Sequence[Any] | None = None,
        is_active: bool | None = None,
        sort_order: int | None = None,
        key: str | None = None,
    ) -> Plan:
        """Create a plan: a monthly price and units."""
        return Plan.of(
            await self._create(
                "/v1/admin/plans",
                given(
                    {
                        "name": name,
                        "price_cents": price_cents,
                        "currency": currency,
                        "monthly_quota": monthly_quota,
                        "features": features,
                        "is_active": is_active,
                        "sort_order": sort_order,
                    }
                ),
                key,
            )
        )

    async def get(self, plan_id: str) -> Plan:
        """One plan."""
        return Plan.of(await self._get(f"/v1/admin/plans/{part(plan_id)}"))

    async def update(self, plan_id: str, *, version: int | None = None, **changes: Any) -> Plan:
        """Change the named fields. Earlier orders and entitlements keep the former values."""
        return Plan.of(
            await self._change(
                f"/v1/admin/plans/{part(plan_id)}", version, safe=version is not None, method="PATCH", body=changes
            )
        )

    async def delete(self, plan_id: str, *, version: int | None = None) -> None:
        """Remove a plan that was never used. For a used one, set `is_active` to false instead."""
        await self._change(f"/v1/admin/plans/{part(plan_id)}", version, safe=False, method="DELETE")

    async def list(self) -> Sequence[Plan]:
        """The plans on offer, in their order. No account is needed."""
        return [Plan.of(item) for item in (await self._get("/v1/plans"))["items"]]


class Ledger(Verbs):
    """Proof of the ledger, for administrators."""

    async def verify(self) -> LedgerVerification:
        """Read the whole ledger and report inconsistencies: for each entitlement total = left + held + committed,
        for each hold its settlement, for each open hold a task that has not ended. Takes seconds for millions of
        entries. Archived months are read by `headrace ledger verify`.
        """
        return LedgerVerification.of(await self._change("/v1/admin/ledger/verify", None, safe=True))

    async def verification(self) -> LedgerVerification | None:
        """The result of the last verification; null before the first. A schedule verifies the ledger every day."""
        answer = await self._get("/v1/admin/ledger/verification")
        return None if answer is None else LedgerVerification.of(answer)


class Audit(Verbs):
    """The audit trail."""

    async def get(self, event_id: str) -> AuditEvent:
        """One event, with both sides of the change."""
        return AuditEvent.of(await self._get(f"/v1/audit/events/{part(event_id)}"))

    async def prove(self, event_id: str) -> AuditProof:
        """The proof that an event was sealed as it is, which can be checked without Headrace."""
        return AuditProof.of(await self._get(f"/v1/audit/events/{part(event_id)}/proof"))

    async def verify(self, *, month: str | None = None, whole: bool | None = None) -> AuditVerification:
        """Recompute the seals since the last verification, and some earlier ones, from the events, and name the
        first thing that does not fit. The trail tells of it.

        With `whole` it recomputes every seal, which takes seconds for a million events; with `month` those of one
        month. Archived months are read by `headrace audit verify --whole`.
        """
        return AuditVerification.of(
            await self._change("/v1/admin/audit/verify", None, safe=True, body=given({"month": month, "whole": whole}))
        )

    async def list(
        self,
        *,
        action: str | None = None,
        resource_type: str | None = None,
        resource_id: str | None = None,
        user_id: str | None = None,
        client_ip: str | None = None,
        request_id: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        q: str | None = None,
        changes: bool | None = None,
    ) -> AsyncGenerator[AuditEvent, None]:
        """Audit events, newest first: the caller's own, or all for administrators. The administrator's read is
        audited.
        """
        async for item in self._pages(
            "/v1/audit/events",
            {
                "action": action,
                "resource_type": resource_type,
                "resource_id": resource_id,
                "user_id": user_id,
                "client_ip": client_ip,
                "request_id": request_id,
                "created_after": created_after,
                "created_before": created_before,
                "q": q,
                "changes": changes,
            },
        ):
            yield AuditEvent.of(item)


class Configs(Verbs):
    """Values that change at run time, for administrators."""

    async def keys(self) -> Sequence[ConfigKey]:
        """All keys, with the schema and default of each value."""
        return [ConfigKey.of(item) for item in (await self._get("/v1/admin/configs/keys"))["items"]]

    async def get(self, key: str, *, scope: str | None = None, scope_id: str | None = None) -> Config:
        """The value of exactly this scope."""
        return Config.of(
            await self._get(f"/v1/admin/configs/{part(key)}", given({"scope": scope, "scope_id": scope_id}))
        )

    async def set(
        self,
        key: str,
        value: Any,
        *,
        is_active: bool | None = None,
        scope: str | None = None,
        scope_id: str | None = None,
        version: int | None = None,
    ) -> Config:
        """Set a value for all users, a tenant or a user; the narrower wins. `If-Match: "0"` sets it if there is
        none.
        """
        return Config.of(
            await self._change(
                f"/v1/admin/configs/{part(key)}",
                version,
                safe=True,
                method="PUT",
                body=given({"value": value, "is_active": is_active}),
                params=given({"scope": scope, "scope_id": scope_id}),
            )
        )

    async def unset(
        self, key: str, *, scope: str | None = None, scope_id: str | None = None, version: int | None = None
    ) -> None:
        """Remove a value: the wider scope's applies then, or the default."""
        await self._change(
            f"/v1/admin/configs/{part(key)}",
            version,
            safe=False,
            method="DELETE",
            params=given({"scope": scope, "scope_id": scope_id}),
        )

    async def list(
        self,
        *,
        key: str | None = None,
        scope: str | None = None,
        scope_id: str | None = None,
        is_active: bool | None = None,
    ) -> AsyncGenerator[Config, None]:
        """All set values, newest first."""
        async for item in self._pages(
            "/v1/admin/configs", {"key": key, "scope": scope, "scope_id": scope_id, "is_active": is_active}
        ):
            yield Config.of(item)


class Settings(Verbs):
    """The settings in force, for administrators."""

    async def list(self) -> Sequence[Setting]:
        """What this deployment has chosen, in the API process that answers. Secrets are hidden."""
        return [Setting.of(item) for item in (await self._get("/v1/admin/settings"))["items"]]


class Outbox(Verbs):
    """Events on their way to receivers, for administrators."""

    async def state(self) -> OutboxState:
        """The number and age of waiting events, the dead ones, and the relays that are alive."""
        return OutboxState.of(await self._get("/v1/admin/outbox"))

    async def get(self, outbox_event_id: str) -> OutboxEvent:
        """One event with its data, for as long as it is kept."""
        return OutboxEvent.of(await self._get(f"/v1/admin/outbox/events/{part(outbox_event_id)}"))

    async def revive(self, outbox_event_id: str) -> OutboxEvent:
        """Let an event that was given up be tried again. It comes after events of the same thing that were published
        since: receivers who need the order go by `created_at`.
        """
        return OutboxEvent.of(
            await self._change(f"/v1/admin/outbox/events/{part(outbox_event_id)}/revive", None, safe=True)
        )

    async def revive_all(self, *, type: str | None = None) -> int:
        """Let all events that were given up be tried again, or those of one type."""
        value: int = (await self._change("/v1/admin/outbox/revive", None, safe=True, body=given({"type": type})))[
            "revived"
        ]
        return value

    async def list(
        self,
        *,
        status: str | None = None,
        type: str | None = None,
        aggregate_id: str | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[OutboxEvent, None]:
        """Everybody's events, newest first; those that were published go after HEADRACE_RETENTION_OUTBOX.

        A page may be short, even empty, without being the last: continue until `next_cursor` is null.
        """
        async for item in self._pages(
            "/v1/admin/outbox/events",
            {"status": status, "type": type, "aggregate_id": aggregate_id, "user_id": user_id},
        ):
            yield OutboxEvent.of(item)


class Archives(Verbs):
    """Archived months, for administrators."""

    async def get(self, archive_id: str) -> Archive:
        """One archive, by its id or by its month's name."""
        return Archive.of(await self._get(f"/v1/admin/archives/{part(archive_id)}"))

    async def list(self, *, table: str | None = None, status: str | None = None) -> AsyncGenerator[Archive, None]:
        """Months that have left their table, the last to leave first: their places, contents and hashes."""
        async for item in self._pages("/v1/admin/archives", {"table": table, "status": status}):
            yield Archive.of(item)


class Partitions(Verbs):
    """Months of tables, for administrators."""

    async def make_ahead(self) -> MonthsMade:
        """Make the months that are missing, from this one to three ahead. Running processes do so by themselves,
        too.
        """
        return MonthsMade.of(await self._change("/v1/admin/partitions", None, safe=True))

    async def list(self) -> Sequence[Partition]:
        """Every month of every table that is kept by months, with its size."""
        return [Partition.of(item) for item in (await self._get("/v1/admin/partitions"))["items"]]


class Risks(Verbs):
    """Known risks, for administrators."""

    async def create(
        self,
        category: str,
        severity: str,
        trigger_condition: str,
        mitigation_plan: str,
        owner: str,
        *,
        risk_id: str | None = None,
        status: str | None = None,
        refs: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Risk:
        """Enter a risk into the ledger."""
        return Risk.of(
            await self._create(
                "/v1/admin/risks",
                given(
                    {
                        "risk_id": risk_id,
                        "category": category,
                        "severity": severity,
                        "status": status,
                        "trigger_condition": trigger_condition,
                        "mitigation_plan": mitigation_plan,
                        "owner": owner,
                        "refs": refs,
                    }
                ),
                key,
            )
        )

    async def get(self, risk_id: str) -> Risk:
        """One risk."""
        return Risk.of(await self._get(f"/v1/admin/risks/{part(risk_id)}"))

    async def update(self, risk_id: str, *, version: int | None = None, **changes: Any) -> Risk:
        """Change the named fields."""
        return Risk.of(
            await self._change(
                f"/v1/admin/risks/{part(risk_id)}", version, safe=version is not None, method="PATCH", body=changes
            )
        )

    async def delete(self, risk_id: str, *, version: int | None = None) -> None:
        """Delete a risk that was entered in error. Close a resolved one instead: it stays in the ledger."""
        await self._change(f"/v1/admin/risks/{part(risk_id)}", version, safe=False, method="DELETE")

    async def board(self, *, owner: str | None = None) -> RiskBoard:
        """Numbers of open risks by severity, owner and status."""
        return RiskBoard.of(await self._get("/v1/admin/risks/board", given({"owner": owner})))

    async def traces(self, risk_id: str) -> Sequence[RiskTrace]:
        """The newest audit events with the risk's trace ids, at most a hundred."""
        return [RiskTrace.of(item) for item in (await self._get(f"/v1/admin/risks/{part(risk_id)}/traces"))["items"]]

    async def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        severity: str | Sequence[str] | None = None,
        category: str | None = None,
        owner: str | None = None,
        trace_id: str | None = None,
    ) -> AsyncGenerator[Risk, None]:
        """Risks, newest first."""
        async for item in self._pages(
            "/v1/admin/risks",
            {
                "status": [status] if isinstance(status, str) else status,
                "severity": [severity] if isinstance(severity, str) else severity,
                "category": category,
                "owner": owner,
                "trace_id": trace_id,
            },
        ):
            yield Risk.of(item)
