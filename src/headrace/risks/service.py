"""Verbs of the risk ledger for administrators. Every change is audited."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from headrace import audit, ids
from headrace.access import PreconditionFailed, check_version
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Tx
from headrace.risks import store
from headrace.risks.errors import RiskNotFound
from headrace.risks.model import Category, Facts, Risk, RiskStatus, Severity, Square, Trace
from headrace.sql import Mark


async def create_risk(tx: Tx, who: Who, facts: Facts, *, risk_id: str | None = None) -> Risk:
    """Enter a risk; without an id one is generated. ``RiskIdTaken`` if the id is in use."""
    risk = await store.insert_risk(tx, risk_id or ids.new("rsk"), facts)
    await audit.record(tx, who, Action.CREATED, _resource(risk), new=risk)
    return risk


async def change_risk(
    tx: Tx, who: Who, risk_id: str, changes: Mapping[str, Any], *, expected: int | None = None
) -> Risk:
    """Change the named fields of ``Facts``. Idempotent."""
    old = await _lock(tx, risk_id, expected)
    said = Facts(**{field.name: getattr(old, field.name) for field in fields(Facts)})
    facts = replace(said, **changes)
    if facts == said:
        return old
    new = await store.update_risk(tx, old, facts)
    if new is None:
        raise PreconditionFailed
    await audit.record(tx, who, Action.UPDATED, _resource(new), old=old, new=new)
    return new


async def delete_risk(tx: Tx, who: Who, risk_id: str, *, expected: int | None = None) -> None:
    """Delete a risk that was entered in error; a resolved one is closed instead, and stays."""
    old = await _lock(tx, risk_id, expected)
    if not await store.delete_risk(tx, old):
        raise PreconditionFailed
    await audit.record(tx, who, Action.DELETED, _resource(old), old=old)


async def get_risk(tx: Tx, risk_id: str) -> Risk:
    risk = await store.find_risk(tx, risk_id)
    if risk is None:
        raise RiskNotFound
    return risk


async def list_risks(
    tx: Tx,
    *,
    statuses: Sequence[RiskStatus] | None = None,
    severities: Sequence[Severity] | None = None,
    category: Category | None = None,
    owner: str | None = None,
    trace_id: str | None = None,
    older_than: Mark | None = None,
    limit: int,
) -> list[Risk]:
    """Risks, newest first; ``trace_id`` finds those that refer to it."""
    return await store.list_risks(
        tx,
        statuses=statuses,
        severities=severities,
        category=category,
        owner=owner,
        trace_id=trace_id,
        older_than=older_than,
        limit=limit,
    )


async def board(tx: Tx, *, owner: str | None = None) -> list[Square]:
    """Numbers of open risks by owner, status and severity, highest severity first."""
    gravity = list(Severity)
    counted = await store.count_open(tx, owner=owner)
    return sorted(counted, key=lambda each: (-gravity.index(each.severity), each.status, each.owner))


async def list_traces(tx: Tx, who: Who, risk_id: str, *, limit: int) -> list[Trace]:
    """The audit events that a risk refers to by trace id, newest first. The read is audited."""
    risk = await get_risk(tx, risk_id)
    traces = await store.list_traces(tx, risk.trace_ids, limit=limit)
    await audit.record(tx, who, Action.READ, _resource(risk), data={"of": "traces"})
    return traces


async def _lock(tx: Tx, risk_id: str, expected: int | None) -> Risk:
    risk = await store.lock_risk(tx, risk_id)
    if risk is None:
        raise RiskNotFound
    check_version(risk.version, expected)
    return risk


def _resource(risk: Risk) -> Resource:
    return Resource(ResourceType.TECH_RISK, risk.risk_id)
