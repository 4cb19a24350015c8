"""``headrace plans``: plans and their prices."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from headrace.cli.calls import drop_none, path, perform
from headrace.cli.output import Json, print_done, print_json, print_table
from headrace.cli.requests import Answer, Api
from headrace.errors import Invalid

app = typer.Typer(help="Plans: the offers and their prices.", no_args_is_help=True)

PlanName = Annotated[str, typer.Argument(metavar="PLAN", help="The plan's id, or its name.")]
Price = Annotated[int | None, typer.Option("--price-cents", min=0, help="For a month, in hundredths: 2900 is 29.00.")]
Units = Annotated[int | None, typer.Option("--units", min=0, help="How many a month.")]
Features = Annotated[
    Path | None,
    typer.Option("--features", dir_okay=False, help="A JSON file with the array of features; in place of all of them."),
]
Place = Annotated[int | None, typer.Option("--sort-order", help="Its place in the price list.")]

_PLANS = path("admin", "plans")
_MAX_PLANS = 10_000


@app.command("list")
def list_(
    offered: Annotated[bool, typer.Option("--offered", help="Only those that can be bought.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of plans.")] = 100,
    json: Json = False,
) -> None:
    """List plans."""
    filters = drop_none(is_active=True if offered else None)
    rows = sorted(
        perform("plans list", lambda api: api.list(_PLANS, filters, limit=limit)),
        key=lambda plan: (plan["sort_order"], plan["price_cents"]),
    )
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "name", "price", "units a month", "offered"),
        [
            (
                each["id"],
                each["name"],
                f"{each['price_cents'] / 100:.2f} {each['currency']}",
                each["monthly_quota"],
                each["is_active"],
            )
            for each in rows
        ],
    )


@app.command()
def show(plan: PlanName, json: Json = False) -> None:
    """Everything about one plan."""
    _print(perform("plans show", lambda api: _find(api, plan)), json=json)


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
    body = drop_none(
        name=name, price_cents=price_cents, monthly_quota=units, sort_order=sort_order, features=_read(features)
    )
    _print(perform("plans add", lambda api: api.ask("POST", _PLANS, body=body)), json=json)


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
    """Change a plan; omitted fields stay, and so do earlier orders and grants."""
    changes = drop_none(
        name=name,
        price_cents=price_cents,
        monthly_quota=units,
        features=_read(features),
        is_active=offered,
        sort_order=sort_order,
    )

    async def act(api: Api) -> Any:
        result = await _find(api, plan)
        return await api.ask("PATCH", path("admin", "plans", result["id"]), body=changes)

    _print(perform("plans change", act), json=json)


@app.command()
def remove(plan: PlanName, json: Json = False) -> None:
    """Delete a plan without subscriptions, now and before; `change --not-offered` for others."""

    async def act(api: Api) -> None:
        result = await _find(api, plan)
        await api.ask("DELETE", path("admin", "plans", result["id"]))

    perform("plans remove", act)
    print_done({"plan": plan, "deleted": True}, f"{plan} is deleted", json=json)


async def _find(api: Api, plan: str) -> Answer:
    """The plan of this id or name."""
    known = await api.list(_PLANS, limit=_MAX_PLANS)
    named = [each for each in known if each["id"] == plan] or [each for each in known if each["name"] == plan]
    return named[0] if named else dict(await api.ask("GET", path("admin", "plans", plan)))  # refused: not found


def _read(file: Path | None) -> Any:
    if file is None:
        return None
    try:
        return orjson.loads(file.read_bytes())
    except OSError as exc:
        raise Invalid(f"{file} cannot be read: {exc.strerror}.") from exc
    except ValueError as exc:
        raise Invalid(f"{file} is not JSON: {exc}.") from exc


def _print(plan: Mapping[str, Any], *, json: bool) -> None:
    if json:
        print_json(plan)
    else:
        print_table(("field", "value"), list(plan.items()))
