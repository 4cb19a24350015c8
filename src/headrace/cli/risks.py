"""``headrace risks``: the ledger of known risks."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, path, perform
from headrace.cli.output import Json, print_done, print_json, print_table
from headrace.cli.showing import when
from headrace.cli.words import one_of
from headrace.errors import Invalid
from headrace.risks.model import Category, RiskStatus, Severity

app = typer.Typer(help="The ledger of known risks.", no_args_is_help=True)

RiskId = Annotated[str, typer.Argument(metavar="RISK_ID", help="The risk's id.")]
Trigger = Annotated[str, typer.Option("--trigger", help="The event that would cause it.")]
Plan = Annotated[str, typer.Option("--plan", help="The countermeasures.")]
Owner = Annotated[str, typer.Option("--owner", help="The person responsible.")]

_RISKS = path("admin", "risks")


@app.command("list")
def list_(
    status: Annotated[list[str] | None, one_of(offered=[*RiskStatus], help="Only these; may be repeated.")] = None,
    severity: Annotated[list[str] | None, one_of(offered=[*Severity], help="Only these; may be repeated.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None,
    trace: Annotated[str | None, typer.Option(help="Only those that refer to this trace id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of risks.")] = 50,
    json: Json = False,
) -> None:
    """List risks, newest first."""
    filters = drop_none(status=status or None, severity=severity or None, owner=owner, trace_id=trace)
    rows = perform("risks list", lambda api: api.list(_RISKS, filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "severity", "status", "category", "owner", "trigger"),
        [
            tuple(each[name] for name in ("risk_id", "severity", "status", "category", "owner", "trigger_condition"))
            for each in rows
        ],
    )


@app.command()
def board(owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None, json: Json = False) -> None:
    """How many risks are not closed, the gravest first."""
    filters = drop_none(owner=owner)
    rows = perform("risks board", lambda api: api.ask("GET", path("admin", "risks", "board"), params=filters))
    if json:
        print_json(rows)
        return
    print_table(
        ("severity", "status", "owner", "risks"),
        [(each["severity"], each["status"], each["owner"], each["count"]) for each in rows["squares"]],
    )


@app.command()
def show(risk_id: RiskId, json: Json = False) -> None:
    """Everything about one risk."""
    _print(perform("risks show", lambda api: api.ask("GET", path("admin", "risks", risk_id))), json=json)


@app.command()
def add(
    category: Annotated[str, one_of("--category", offered=[*Category], help="What kind it is.")],
    severity: Annotated[str, one_of("--severity", offered=[*Severity], help="How grave it is.")],
    trigger: Trigger,
    plan: Plan,
    owner: Owner,
    risk_id: Annotated[str | None, typer.Option("--id", help="Your own name for it; without it one is made.")] = None,
    traces: Annotated[list[str] | None, typer.Option("--trace", help="A trace id it refers to. Repeatable.")] = None,
    json: Json = False,
) -> None:
    """Enter a risk."""
    body = drop_none(
        risk_id=risk_id,
        category=category,
        severity=severity,
        trigger_condition=trigger,
        mitigation_plan=plan,
        owner=owner,
        refs={"trace_ids": traces or [], "links": []},
    )
    _print(perform("risks add", lambda api: api.ask("POST", _RISKS, body=body)), json=json)


@app.command()
def change(
    risk_id: RiskId,
    status: Annotated[str | None, one_of(offered=[*RiskStatus], help="Its status.")] = None,
    severity: Annotated[str | None, one_of(offered=[*Severity], help="Its severity.")] = None,
    category: Annotated[str | None, one_of(offered=[*Category], help="Its category.")] = None,
    trigger: Annotated[str | None, typer.Option(help="The event that would cause it.")] = None,
    plan: Annotated[str | None, typer.Option(help="The countermeasures.")] = None,
    owner: Annotated[str | None, typer.Option(help="The person responsible.")] = None,
    json: Json = False,
) -> None:
    """Change a risk; omitted fields stay."""
    changes = drop_none(
        status=status,
        severity=severity,
        category=category,
        trigger_condition=trigger,
        mitigation_plan=plan,
        owner=owner,
    )
    if not changes:
        raise Invalid("Nothing to change: name at least one of the options.")
    where = path("admin", "risks", risk_id)
    _print(perform("risks change", lambda api: api.ask("PATCH", where, body=changes)), json=json)


@app.command()
def remove(risk_id: RiskId, json: Json = False) -> None:
    """Strike out a risk that was entered in error; close one that is over."""
    perform("risks remove", lambda api: api.ask("DELETE", path("admin", "risks", risk_id)))
    print_done({"risk_id": risk_id, "deleted": True}, f"{risk_id} is struck out", json=json)


@app.command()
def traces(risk_id: RiskId, json: Json = False) -> None:
    """The newest hundred audit events that a risk refers to."""
    where = path("admin", "risks", risk_id, "traces")
    rows: Sequence[Any] = perform("risks traces", lambda api: api.list(where, limit=None))
    if json:
        print_json(rows)
        return
    print_table(
        ("when", "trace", "action", "what", "by"),
        [
            (
                when(each["created_at"]),
                each["trace_id"],
                each["action"],
                f"{each['resource_type']} {each['resource_id']}",
                each["actor_id"],
            )
            for each in rows
        ],
    )


def _print(risk: Mapping[str, Any], *, json: bool) -> None:
    if json:
        print_json(risk)
    else:
        print_table(("field", "value"), list(risk.items()))
