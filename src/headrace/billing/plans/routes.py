"""Routes of plans: the price list is public, the rest is for administrators."""

from typing import Annotated

from fastapi import Depends, Path, Query, Response

from headrace.access import PreconditionFailed
from headrace.billing.plans import service
from headrace.billing.plans.errors import PlanInUse, PlanInvalid, PlanNameTaken, PlanNotFound
from headrace.billing.plans.model import Plan
from headrace.billing.plans.schemas import PlanChangeIn, PlanIn, PlanOut
from headrace.database import Tx
from headrace.edge.authorization import Admin, MaybeCaller
from headrace.edge.errors import InvalidCursor, InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/v1", tags=["Plans"])

CreateOnce = Annotated[Once, Depends(idempotent("plans.create"))]
PlanId = Annotated[str, Path(min_length=1, max_length=64, examples=["pln_01h455vb4pex5vsknk084sn02q"])]
_CHANGE = (PlanNotFound, PreconditionFailed, InvalidIfMatch)


@router.get("/plans", response_model=Page[PlanOut], summary="The price list")
async def list_offered_plans(
    caller: MaybeCaller,  # noqa: ARG001 - required for rate limits
    db: Db,
) -> Page[PlanOut]:
    """The plans on offer, in their order. No account is needed."""
    async with db.transaction(readonly=True) as tx:
        return Page(items=[PlanOut.of(plan) for plan in await service.list_offered(tx)])


@router.get("/admin/plans", response_model=Page[PlanOut], summary="List all plans", responses=problems(InvalidCursor))
async def list_plans(
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
    paging: Paging,
    is_active: Annotated[bool | None, Query(description="Only plans on offer, or only the others.")] = None,
) -> Page[PlanOut]:
    """All plans, newest first."""
    listing = paging.of("plans", is_active=is_active)
    async with db.transaction(readonly=True) as tx:
        rows = await service.list_plans(tx, is_active=is_active, older_than=listing.after, limit=listing.fetch)
    return listing.page(rows, mark=lambda plan: (plan.created_at, plan.id), item=PlanOut.of)


@router.post(
    "/admin/plans",
    status_code=201,
    response_model=PlanOut,
    summary="Create a plan",
    responses=problems(PlanNameTaken, *ONCE),
)
async def create_plan(body: PlanIn, caller: Admin, db: Db, once: CreateOnce) -> Response:
    """Create a plan: a monthly price and units."""

    async def act(tx: Tx) -> Answer:
        plan = await service.create_plan(tx, caller.who, body.facts())
        headers = {"Location": f"/v1/admin/plans/{plan.id}", "ETag": etag(plan.version)}
        return Answer(PlanOut.of(plan), status=201, headers=headers)

    return await once.run(db, act)


@router.get("/admin/plans/{plan_id}", response_model=PlanOut, summary="Read a plan", responses=problems(PlanNotFound))
async def get_plan(
    plan_id: PlanId,
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
    response: Response,
) -> PlanOut:
    """One plan."""
    async with db.transaction(readonly=True) as tx:
        return _shown(response, await service.get_plan(tx, plan_id))


@router.patch(
    "/admin/plans/{plan_id}",
    response_model=PlanOut,
    summary="Change a plan",
    responses=problems(PlanNameTaken, PlanInvalid, *_CHANGE),
)
async def change_plan(
    plan_id: PlanId, body: PlanChangeIn, caller: Admin, db: Db, expected: ExpectedVersion, response: Response
) -> PlanOut:
    """Change the named fields. Earlier orders and entitlements keep the former values."""
    async with db.transaction() as tx:
        plan = await service.change_plan(tx, caller.who, plan_id, body.changes(), expected=expected)
    return _shown(response, plan)


@router.delete(
    "/admin/plans/{plan_id}", status_code=204, summary="Delete a plan", responses=problems(PlanInUse, *_CHANGE)
)
async def delete_plan(plan_id: PlanId, caller: Admin, db: Db, expected: ExpectedVersion) -> None:
    """Remove a plan that was never used. For a used one, set `is_active` to false instead."""
    async with db.transaction() as tx:
        await service.delete_plan(tx, caller.who, plan_id, expected=expected)


def _shown(response: Response, plan: Plan) -> PlanOut:
    response.headers["ETag"] = etag(plan.version)
    return PlanOut.of(plan)
