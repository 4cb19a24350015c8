"""``headrace plans``: what can be bought."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import ValidationError

from headrace.billing.plans import service
from headrace.billing.plans.model import Plan
from headrace.billing.plans.schemas import PlanChangeIn, PlanIn, PlanOut
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.errors import Invalid

app = typer.Typer(help="Plans: what can be bought, for how much.", no_args_is_help=True)

PlanName = Annotated[str, typer.Argument(metavar="PLAN", help="The plan's id, or its name.")]
Price = Annotated[int | None, typer.Option("--price-cents", min=0, help="For a month, in hundredths: 2900 is 29.00.")]
Units = Annotated[int | None, typer.Option("--units", min=0, help="How many a month.")]
Features = Annotated[
    Path | None,
    typer.Option("--features", dir_okay=False, help="A JSON file with the array of features; in place of all of them."),
]
Place = Annotated[int | None, typer.Option("--sort-order", help="Its place in the price list.")]


@app.command("list")
def list_(
    offered: Annotated[bool, typer.Option("--offered", help="Only those that can be bought.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")] = 100,
    json: Json = False,
) -> None:
    """List plans."""

    async def act(session: OperatorSession) -> Sequence[Plan]:
        async with session.db.transaction(readonly=True) as tx:
            return await service.list_plans(tx, is_active=True if offered else None, limit=limit)

    found = sorted(as_operator("plans list", act), key=lambda plan: (plan.sort_order, plan.price_cents))
    if json:
        print_json([PlanOut.of(plan).model_dump(mode="json") for plan in found])
        return
    print_table(
        ("id", "name", "price", "units a month", "offered"),
        [
            (each.id, each.name, f"{each.price_cents / 100:.2f} {each.currency}", each.monthly_quota, each.is_active)
            for each in found
        ],
    )


@app.command()
def show(plan: PlanName, json: Json = False) -> None:
    """Everything about one plan."""

    async def act(session: OperatorSession) -> Plan:
        async with session.db.transaction(readonly=True) as tx:
            return await service.get_by_id_or_name(tx, plan)

    _print(as_operator("plans show", act), json=json)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    price_cents: Annotated[int, typer.Option("--price-cents", min=0, help="For a month, in hundredths.")],
    units: Annotated[int, typer.Option("--units", min=0, help="How many a month.")],
    features: Features = None,
    sort_order: Place = None,
    json: Json = False,
) -> None:
    """Offer a plan."""
    given = {"name": name, "price_cents": price_cents, "monthly_quota": units, "sort_order": sort_order}
    facts = _checked(PlanIn, {**given, "features": _read(features)}).facts()

    async def act(session: OperatorSession) -> Plan:
        async with session.db.transaction() as tx:
            return await service.create_plan(tx, session.caller.who, facts)

    _print(as_operator("plans add", act), json=json)


@app.command()
def change(
    plan: PlanName,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    price_cents: Price = None,
    units: Units = None,
    features: Features = None,
    offered: Annotated[bool | None, typer.Option("--offered/--not-offered", help="Whether it can be bought.")] = None,
    sort_order: Place = None,
    json: Json = False,
) -> None:
    """Change a plan; what is not named stays, and so does what was ordered or granted before."""
    given = {
        "name": name,
        "price_cents": price_cents,
        "monthly_quota": units,
        "features": _read(features),
        "is_active": offered,
        "sort_order": sort_order,
    }
    changes = _checked(PlanChangeIn, given).changes()

    async def act(session: OperatorSession) -> Plan:
        async with session.db.transaction() as tx:
            found = await service.get_by_id_or_name(tx, plan)
            return await service.change_plan(tx, session.caller.who, found.id, changes)

    _print(as_operator("plans change", act), json=json)


@app.command()
def remove(plan: PlanName) -> None:
    """Delete a plan that nobody ever had; `change --not-offered` for one that somebody had."""

    async def act(session: OperatorSession) -> None:
        async with session.db.transaction() as tx:
            found = await service.get_by_id_or_name(tx, plan)
            await service.delete_plan(tx, session.caller.who, found.id)

    as_operator("plans remove", act)
    out.print(f"{plan} is deleted")


def _read(file: Path | None) -> Any:
    if file is None:
        return None
    try:
        return orjson.loads(file.read_bytes())
    except OSError as exc:
        raise Invalid(f"{file} cannot be read: {exc.strerror}.") from exc
    except ValueError as exc:
        raise Invalid(f"{file} is not JSON: {exc}.") from exc


def _checked(schema: Any, given: Mapping[str, Any]) -> Any:
    """By the same rules as the API."""
    try:
        return schema.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Invalid(f"{where}: {first['msg']}" if where else str(first["msg"])) from None


def _print(plan: Plan, *, json: bool) -> None:
    shown = PlanOut.of(plan).model_dump(mode="json")
    if json:
        print_json(shown)
    else:
        print_table(("field", "value"), list(shown.items()))
