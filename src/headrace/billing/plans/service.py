"""Verbs of plans. Every change is audited.

Orders and entitlements keep their own copy of the plan's values.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from headrace import audit, ids
from headrace.access import PreconditionFailed, check_version
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.billing.plans import store
from headrace.billing.plans.errors import PlanInUse, PlanInvalid, PlanNotFound
from headrace.billing.plans.model import FREE_PLAN, Plan, PlanFacts
from headrace.database import Tx
from headrace.sql import Mark

_MAX_OFFERED_PLANS = 100


async def create_plan(tx: Tx, who: Who, facts: PlanFacts) -> Plan:
    """Create a plan. ``PlanNameTaken`` if the name is in use."""
    plan = await store.insert_plan(tx, ids.new("pln"), facts)
    await audit.record(tx, who, Action.CREATED, _resource(plan), new=plan)
    return plan


async def change_plan(
    tx: Tx, who: Who, plan_id: str, changes: Mapping[str, Any], *, expected: int | None = None
) -> Plan:
    """Change the named fields of ``PlanFacts``. Idempotent."""
    old = await _lock(tx, plan_id, expected)
    present = PlanFacts(**{field.name: getattr(old, field.name) for field in fields(PlanFacts)})
    facts = replace(present, **changes)
    if facts == present:
        return old
    if plan_id == FREE_PLAN and facts.price_cents != 0:
        raise PlanInvalid("The free plan has no price: create another plan for sale.", field="price_cents")
    new = await store.update_plan(tx, old, facts)
    if new is None:
        raise PreconditionFailed
    await audit.record(tx, who, Action.UPDATED, _resource(new), old=old, new=new)
    return new


async def delete_plan(tx: Tx, who: Who, plan_id: str, *, expected: int | None = None) -> None:
    """Remove a plan that was never used; ``PlanInUse`` otherwise."""
    old = await _lock(tx, plan_id, expected)
    if plan_id == FREE_PLAN:
        raise PlanInUse("The free plan cannot be deleted: set `is_active` to false to stop granting it.")
    if not await store.delete_plan(tx, old):
        raise PreconditionFailed
    await audit.record(tx, who, Action.DELETED, _resource(old), old=old)


async def get_plan(tx: Tx, plan_id: str) -> Plan:
    plan = await store.find_plan(tx, plan_id)
    if plan is None:
        raise PlanNotFound
    return plan


async def get_by_id_or_name(tx: Tx, plan: str) -> Plan:
    """A plan by its id or its name."""
    found = await store.find_plan(tx, plan) or await store.find_by_name(tx, plan)
    if found is None:
        raise PlanNotFound(field="plan")
    return found


async def list_offered(tx: Tx) -> list[Plan]:
    """The price list."""
    return await store.list_offered(tx, limit=_MAX_OFFERED_PLANS)


async def list_plans(
    tx: Tx, *, is_active: bool | None = None, older_than: Mark | None = None, limit: int
) -> list[Plan]:
    return await store.list_plans(tx, is_active=is_active, older_than=older_than, limit=limit)


async def _lock(tx: Tx, plan_id: str, expected: int | None) -> Plan:
    plan = await store.lock_plan(tx, plan_id)
    if plan is None:
        raise PlanNotFound
    check_version(plan.version, expected)
    return plan


def _resource(plan: Plan) -> Resource:
    return Resource(ResourceType.PLAN, plan.id, {"name": plan.name})
