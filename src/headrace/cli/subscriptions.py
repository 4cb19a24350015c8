"""``headrace subscriptions``: subscriptions, and the orders behind them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from headrace.billing.payments.model import OrderStatus
from headrace.billing.subscriptions.model import SubscriptionStatus
from headrace.cli.calls import drop_none, owner_of, path, perform
from headrace.cli.output import Json, print_json, print_table
from headrace.cli.requests import Api
from headrace.cli.showing import minute
from headrace.cli.words import one_of

app = typer.Typer(help="Subscriptions and their orders: list, cancel and refund them.", no_args_is_help=True)

SubscriptionId = Annotated[str, typer.Argument(metavar="ID", help="The subscription's id: sub_….")]
OrderId = Annotated[str, typer.Argument(metavar="ORDER", help="The order's id: ord_….")]
User = Annotated[
    str | None,
    typer.Option("--user", help="Only this user's: a username, or an id. Over an API your own by default."),
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows.")]


@app.command("list")
def list_(
    user: User = None,
    status: Annotated[str | None, one_of(offered=[*SubscriptionStatus], help="Only those in this state.")] = None,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List subscriptions, newest first."""

    async def act(api: Api) -> Sequence[Any]:
        return await api.list(
            path("subscriptions"), {**drop_none(status=status), **await owner_of(api, user)}, limit=limit
        )

    rows = perform("subscriptions list", act)
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "user", "plan", "status", "until", "renews"),
        [
            (
                each["id"],
                each["user_id"],
                each["plan_id"],
                each["status"],
                minute(each["expire_at"]),
                each["auto_renew"],
            )
            for each in rows
        ],
    )


@app.command()
def show(subscription_id: SubscriptionId, json: Json = False) -> None:
    """Everything about one subscription."""
    _ask("show", "GET", path("subscriptions", subscription_id), json=json)


@app.command()
def cancel(subscription_id: SubscriptionId, json: Json = False) -> None:
    """Let a subscription end with its period; one that is not paid for ends at once."""
    _ask("cancel", "POST", path("subscriptions", subscription_id, "cancel"), json=json)


@app.command()
def resume(subscription_id: SubscriptionId, json: Json = False) -> None:
    """Undo a cancellation, as long as the period runs."""
    _ask("resume", "POST", path("subscriptions", subscription_id, "resume"), json=json)


@app.command()
def orders(
    user: User = None,
    status: Annotated[str | None, one_of(offered=[*OrderStatus], help="Only those in this state.")] = None,
    problem: Annotated[bool, typer.Option("--problem", help="Only those that need an operator's attention.")] = False,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List orders, newest first. A `problem` needs an operator's attention."""

    async def act(api: Api) -> Sequence[Any]:
        wanted = drop_none(status=status, problem=problem or None)
        return await api.list(path("payments"), {**wanted, **await owner_of(api, user)}, limit=limit)

    rows = perform("subscriptions orders", act)
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "user", "for", "amount", "status", "problem", "ordered"),
        [
            (
                each["id"],
                each["user_id"],
                each["description"],
                f"{each['amount_cents'] / 100:.2f} {each['currency']}",
                each["status"],
                each["problem"],
                minute(each["created_at"]),
            )
            for each in rows
        ],
    )


@app.command()
def check(order_id: OrderId, json: Json = False) -> None:
    """Ask WeChat Pay what became of an order."""
    _ask("check", "POST", path("payments", order_id, "check"), json=json)


@app.command()
def refund(
    order_id: OrderId,
    reason: Annotated[str, typer.Option(help="Shown to the payer by WeChat; up to 80 characters.")],
    json: Json = False,
) -> None:
    """Give an order's money back, all of it, and take back the units that are left of it."""
    _ask("refund", "POST", path("admin", "payments", order_id, "refund"), {"reason": reason[:80]}, json=json)


@app.command()
def resolve(
    order_id: OrderId,
    reason: Annotated[str, typer.Option(help="The finding and the action, for the audit trail.")],
    json: Json = False,
) -> None:
    """Say that an order's `problem` was looked at: it raises no alarm any more."""
    _ask("resolve", "POST", path("admin", "payments", order_id, "resolve"), {"reason": reason}, json=json)


def _ask(command: str, method: str, where: str, body: Mapping[str, Any] | None = None, *, json: bool) -> None:
    result = perform(f"subscriptions {command}", lambda api: api.ask(method, where, body=body))
    if json:
        print_json(result)
    else:
        print_table(("field", "value"), list(result.items()))
