"""Routes of the risk ledger, for administrators."""

from typing import Annotated

from fastapi import Depends, Path, Query, Response

from headrace.access import PreconditionFailed
from headrace.database import Tx
from headrace.edge.authorization import Admin
from headrace.edge.errors import InvalidCursor, InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.text import Text
from headrace.risks import service
from headrace.risks.errors import RiskIdTaken, RiskNotFound
from headrace.risks.model import Category, Risk, RiskStatus, Severity
from headrace.risks.schemas import BoardOut, RiskChangeIn, RiskIn, RiskOut, TraceOut

router = Router(prefix="/v1/admin/risks", tags=["Risks"])

CreateOnce = Annotated[Once, Depends(idempotent("risks.create"))]
RiskId = Annotated[str, Path(min_length=1, max_length=64, examples=["R-7"])]
_CHANGE = (RiskNotFound, PreconditionFailed, InvalidIfMatch)
_MAX_TRACES = 100


@router.get("", response_model=Page[RiskOut], summary="List risks", responses=problems(InvalidCursor))
async def list_risks(
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
    paging: Paging,
    status: Annotated[list[RiskStatus] | None, Query(max_length=4)] = None,
    severity: Annotated[list[Severity] | None, Query(max_length=4)] = None,
    category: Category | None = None,
    owner: Annotated[Text | None, Query(max_length=64)] = None,
    trace_id: Annotated[Text | None, Query(max_length=64, description="Only risks that refer to this trace.")] = None,
) -> Page[RiskOut]:
    """Risks, newest first."""
    listing = paging.of("risks", status=status, severity=severity, category=category, owner=owner, trace_id=trace_id)
    async with db.transaction(readonly=True) as tx:
        rows = await service.list_risks(
            tx,
            statuses=status,
            severities=severity,
            category=category,
            owner=owner,
            trace_id=trace_id,
            older_than=listing.after,
            limit=listing.fetch,
        )
    return listing.page(rows, mark=lambda risk: (risk.created_at, str(risk.id)), item=RiskOut.of)


@router.get("/board", response_model=BoardOut, summary="The board of open risks")
async def get_risk_board(
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
    owner: Annotated[Text | None, Query(max_length=64)] = None,
) -> BoardOut:
    """Numbers of open risks by severity, owner and status."""
    async with db.transaction(readonly=True) as tx:
        return BoardOut.of(await service.board(tx, owner=owner))


@router.post(
    "",
    status_code=201,
    response_model=RiskOut,
    summary="Enter a risk",
    responses=problems(RiskIdTaken, *ONCE),
)
async def create_risk(body: RiskIn, caller: Admin, db: Db, once: CreateOnce) -> Response:
    """Enter a risk into the ledger."""

    async def act(tx: Tx) -> Answer:
        risk = await service.create_risk(tx, caller.who, body.facts(), risk_id=body.risk_id)
        headers = {"Location": f"/v1/admin/risks/{risk.risk_id}", "ETag": etag(risk.version)}
        return Answer(RiskOut.of(risk), status=201, headers=headers)

    return await once.run(db, act)


@router.get("/{risk_id}", response_model=RiskOut, summary="Read a risk", responses=problems(RiskNotFound))
async def get_risk(
    risk_id: RiskId,
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
    response: Response,
) -> RiskOut:
    """One risk."""
    async with db.transaction(readonly=True) as tx:
        return _shown(response, await service.get_risk(tx, risk_id))


@router.patch("/{risk_id}", response_model=RiskOut, summary="Change a risk", responses=problems(*_CHANGE))
async def change_risk(
    risk_id: RiskId, body: RiskChangeIn, caller: Admin, db: Db, expected: ExpectedVersion, response: Response
) -> RiskOut:
    """Change the named fields."""
    async with db.transaction() as tx:
        risk = await service.change_risk(tx, caller.who, risk_id, body.changes(), expected=expected)
    return _shown(response, risk)


@router.delete("/{risk_id}", status_code=204, summary="Delete a risk", responses=problems(*_CHANGE))
async def delete_risk(risk_id: RiskId, caller: Admin, db: Db, expected: ExpectedVersion) -> None:
    """Delete a risk that was entered in error. Close a resolved one instead: it stays in the ledger."""
    async with db.transaction() as tx:
        await service.delete_risk(tx, caller.who, risk_id, expected=expected)


@router.get(
    "/{risk_id}/traces",
    response_model=Page[TraceOut],
    summary="Read a risk's audit events",
    responses=problems(RiskNotFound),
)
async def list_risk_traces(risk_id: RiskId, caller: Admin, db: Db) -> Page[TraceOut]:
    """The newest audit events with the risk's trace ids, at most a hundred."""
    async with db.transaction() as tx:
        traces = await service.list_traces(tx, caller.who, risk_id, limit=_MAX_TRACES)
    return Page(items=[TraceOut.of(trace) for trace in traces])


def _shown(response: Response, risk: Risk) -> RiskOut:
    response.headers["ETag"] = etag(risk.version)
    return RiskOut.of(risk)
