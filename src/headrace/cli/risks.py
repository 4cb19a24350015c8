"""``headrace risks``: the ledger of known risks."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.errors import Invalid
from headrace.risks import service
from headrace.risks.model import Category, Facts, Risk, RiskStatus, Severity, Square, Trace
from headrace.risks.schemas import BoardOut, RiskOut, TraceOut

app = typer.Typer(help="The ledger of known risks.", no_args_is_help=True)

RiskId = Annotated[str, typer.Argument(metavar="RISK_ID", help="The risk's id.")]
CategoryOption = Annotated[Category, typer.Option("--category", case_sensitive=False, help="What kind it is.")]
SeverityOption = Annotated[Severity, typer.Option("--severity", case_sensitive=False, help="How grave it is.")]
Trigger = Annotated[str, typer.Option("--trigger", help="What would set it off.")]
Plan = Annotated[str, typer.Option("--plan", help="What is done about it.")]
Owner = Annotated[str, typer.Option("--owner", help="Who sees to it.")]


@app.command("list")
def list_(
    status: Annotated[
        list[RiskStatus] | None,
        typer.Option(case_sensitive=False, help="Only these; say it several times for several."),
    ] = None,
    severity: Annotated[
        list[Severity] | None,
        typer.Option(case_sensitive=False, help="Only these; say it several times for several."),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None,
    trace: Annotated[str | None, typer.Option(help="Only those that refer to this trace id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")] = 50,
    json: Json = False,
) -> None:
    """List risks, newest first."""

    async def act(session: OperatorSession) -> Sequence[Risk]:
        async with session.db.transaction(readonly=True) as tx:
            return await service.list_risks(
                tx, statuses=status or None, severities=severity or None, owner=owner, trace_id=trace, limit=limit
            )

    _print_all(as_operator("risks list", act), json=json)


@app.command()
def board(owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None, json: Json = False) -> None:
    """How many risks are not closed, the gravest first."""

    async def act(session: OperatorSession) -> Sequence[Square]:
        async with session.db.transaction(readonly=True) as tx:
            return await service.board(tx, owner=owner)

    squares = as_operator("risks board", act)
    if json:
        print_json(BoardOut.of(squares).model_dump(mode="json"))
        return
    print_table(
        ("severity", "status", "owner", "risks"),
        [(each.severity, each.status, each.owner, each.count) for each in squares],
    )


@app.command()
def show(risk_id: RiskId, json: Json = False) -> None:
    """Everything about one risk."""

    async def act(session: OperatorSession) -> Risk:
        async with session.db.transaction(readonly=True) as tx:
            return await service.get_risk(tx, risk_id)

    _print(as_operator("risks show", act), json=json)


@app.command()
def add(
    category: CategoryOption,
    severity: SeverityOption,
    trigger: Trigger,
    plan: Plan,
    owner: Owner,
    risk_id: Annotated[str | None, typer.Option("--id", help="Your own name for it; without it one is made.")] = None,
    traces: Annotated[list[str] | None, typer.Option("--trace", help="A trace id it refers to. Repeatable.")] = None,
    json: Json = False,
) -> None:
    """Enter a risk."""
    refs = {"trace_ids": traces or [], "links": []}
    facts = Facts(category, severity, RiskStatus.OPEN, trigger, plan, owner, refs)

    async def act(session: OperatorSession) -> Risk:
        async with session.db.transaction() as tx:
            return await service.create_risk(tx, session.caller.who, facts, risk_id=risk_id)

    _print(as_operator("risks add", act), json=json)


@app.command()
def change(
    risk_id: RiskId,
    status: Annotated[RiskStatus | None, typer.Option(case_sensitive=False, help="Where it stands.")] = None,
    severity: Annotated[Severity | None, typer.Option(case_sensitive=False, help="How grave it is.")] = None,
    category: Annotated[Category | None, typer.Option(case_sensitive=False, help="What kind it is.")] = None,
    trigger: Annotated[str | None, typer.Option(help="What would set it off.")] = None,
    plan: Annotated[str | None, typer.Option(help="What is done about it.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who sees to it.")] = None,
    json: Json = False,
) -> None:
    """Change a risk; what is not named stays."""
    given: Mapping[str, Any] = {
        "status": status,
        "severity": severity,
        "category": category,
        "trigger_condition": trigger,
        "mitigation_plan": plan,
        "owner": owner,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise Invalid("Nothing to change: name at least one of the options.")

    async def act(session: OperatorSession) -> Risk:
        async with session.db.transaction() as tx:
            return await service.change_risk(tx, session.caller.who, risk_id, changes)

    _print(as_operator("risks change", act), json=json)


@app.command()
def remove(risk_id: RiskId) -> None:
    """Strike out a risk that was entered in error; close one that is over."""

    async def act(session: OperatorSession) -> None:
        async with session.db.transaction() as tx:
            await service.delete_risk(tx, session.caller.who, risk_id)

    as_operator("risks remove", act)
    out.print(f"{risk_id} is struck out")


@app.command()
def traces(risk_id: RiskId, json: Json = False) -> None:
    """The audit events that a risk refers to, newest first."""

    async def act(session: OperatorSession) -> Sequence[Trace]:
        async with session.db.transaction() as tx:
            return await service.list_traces(tx, session.caller.who, risk_id, limit=1000)

    found = as_operator("risks traces", act)
    if json:
        print_json([TraceOut.of(trace).model_dump(mode="json") for trace in found])
        return
    print_table(
        ("when", "trace", "action", "what", "by"),
        [
            (
                f"{each.created_at:%Y-%m-%d %H:%M:%S} UTC",
                each.trace_id,
                each.action,
                f"{each.resource_type} {each.resource_id}",
                each.actor_id,
            )
            for each in found
        ],
    )


def _print(risk: Risk, *, json: bool) -> None:
    shown = RiskOut.of(risk).model_dump(mode="json")
    if json:
        print_json(shown)
    else:
        print_table(("field", "value"), list(shown.items()))


def _print_all(found: Sequence[Risk], *, json: bool) -> None:
    if json:
        print_json([RiskOut.of(risk).model_dump(mode="json") for risk in found])
        return
    print_table(
        ("id", "severity", "status", "category", "owner", "trigger"),
        [
            (each.risk_id, each.severity, each.status, each.category, each.owner, each.trigger_condition)
            for each in found
        ],
    )
