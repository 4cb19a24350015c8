"""``headrace subscriptions``: who has what, and the orders behind it."""

from collections.abc import Sequence
from typing import Annotated

import typer

from headrace.billing.payments import checking, ordering, refunding, settlement
from headrace.billing.payments import service as payments_service
from headrace.billing.payments.model import Order, OrderStatus
from headrace.billing.payments.schemas import OrderOut
from headrace.billing.payments.service import open_payments
from headrace.billing.subscriptions import service
from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus
from headrace.billing.subscriptions.schemas import SubscriptionOut
from headrace.billing.subscriptions.store import Filter
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, print_json, print_table
from headrace.cli.paying import order_config, wechatpay_config
from headrace.cli.people import user_id_of

app = typer.Typer(help="Subscriptions and their orders: look at them, cancel them, refund them.", no_args_is_help=True)

SubscriptionId = Annotated[str, typer.Argument(metavar="ID", help="The subscription's id: sub_….")]
OrderId = Annotated[str, typer.Argument(metavar="ORDER", help="The order's id: ord_….")]
User = Annotated[str | None, typer.Option("--user", help="Only this user's: a username, or an id.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")]


@app.command("list")
def list_(
    user: User = None,
    status: Annotated[
        SubscriptionStatus | None, typer.Option(case_sensitive=False, help="Only those in this state.")
    ] = None,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List subscriptions, newest first."""

    async def act(session: OperatorSession) -> Sequence[Subscription]:
        owner = None if user is None else await user_id_of(session, user)
        async with session.db.transaction() as tx:
            return await service.list_subscriptions(tx, session.caller, Filter(owner, status), limit=limit)

    found = as_operator("subscriptions list", act)
    if json:
        print_json([SubscriptionOut.of(each).model_dump(mode="json") for each in found])
        return
    print_table(
        ("id", "user", "plan", "status", "until", "renews"),
        [(each.id, each.user_id, each.plan_id, each.status, each.expire_at, each.auto_renew) for each in found],
    )


@app.command()
def show(subscription_id: SubscriptionId, json: Json = False) -> None:
    """Everything about one subscription."""

    async def act(session: OperatorSession) -> Subscription:
        async with session.db.transaction() as tx:
            return await service.get_subscription(tx, session.caller, subscription_id)

    _print(SubscriptionOut.of(as_operator("subscriptions show", act)), json=json)


@app.command()
def cancel(subscription_id: SubscriptionId, json: Json = False) -> None:
    """Let a subscription end with its period; one that is not paid for ends at once."""

    async def act(session: OperatorSession) -> Subscription:
        async with session.db.transaction() as tx:
            subscription, closed = await ordering.cancel(tx, session.caller, subscription_id)
        async with open_payments(wechatpay_config(session.settings), order_config(session.settings)) as payments:
            await settlement.close_at_wechatpay(session.db, payments, closed)
        return subscription

    _print(SubscriptionOut.of(as_operator("subscriptions cancel", act)), json=json)


@app.command()
def orders(
    user: User = None,
    status: Annotated[OrderStatus | None, typer.Option(case_sensitive=False, help="Only those in this state.")] = None,
    problem: Annotated[bool, typer.Option("--problem", help="Only those that somebody has to look at.")] = False,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List orders, newest first. A `problem` is for an operator to look at."""

    async def act(session: OperatorSession) -> Sequence[Order]:
        owner = None if user is None else await user_id_of(session, user)
        async with session.db.transaction() as tx:
            return await payments_service.list_orders(
                tx, session.caller, user_id=owner, status=status, has_problem=problem, limit=limit
            )

    found = as_operator("subscriptions orders", act)
    if json:
        print_json([OrderOut.of(each).model_dump(mode="json") for each in found])
        return
    print_table(
        ("id", "user", "for", "amount", "status", "problem", "ordered"),
        [
            (
                each.id,
                each.user_id,
                each.description,
                f"{each.amount_cents / 100:.2f} {each.currency}",
                each.status,
                each.problem,
                f"{each.created_at:%Y-%m-%d %H:%M} UTC",
            )
            for each in found
        ],
    )


@app.command()
def check(order_id: OrderId, json: Json = False) -> None:
    """Ask WeChat Pay what became of an order."""

    async def act(session: OperatorSession) -> Order:
        async with session.db.transaction() as tx:
            order = await payments_service.get_order(tx, session.caller, order_id)
        async with open_payments(wechatpay_config(session.settings), order_config(session.settings)) as payments:
            _ = payments.wechatpay
            return await checking.check(session.db, payments, order)

    _print(OrderOut.of(as_operator("subscriptions check", act)), json=json)


@app.command()
def refund(
    order_id: OrderId,
    reason: Annotated[str, typer.Option(help="Shown to the payer by WeChat; up to 80 characters.")],
    json: Json = False,
) -> None:
    """Give an order's money back, all of it, and take back the units that are left of it."""

    async def act(session: OperatorSession) -> Order:
        async with open_payments(wechatpay_config(session.settings), order_config(session.settings)) as payments:
            async with session.db.transaction() as tx:
                order = await refunding.begin_refund(tx, session.caller, payments, order_id, reason=reason[:80])
            return await refunding.send_refund(session.db, payments, session.caller, order)

    _print(OrderOut.of(as_operator("subscriptions refund", act)), json=json)


@app.command()
def resolve(
    order_id: OrderId,
    reason: Annotated[str, typer.Option(help="What was found and done, for the audit trail.")],
    json: Json = False,
) -> None:
    """Say that an order's `problem` was looked at: it raises no alarm any more."""

    async def act(session: OperatorSession) -> Order:
        async with session.db.transaction() as tx:
            return await payments_service.resolve_problem(tx, session.caller, order_id, reason=reason)

    _print(OrderOut.of(as_operator("subscriptions resolve", act)), json=json)


def _print(shown: SubscriptionOut | OrderOut, *, json: bool) -> None:
    fields = shown.model_dump(mode="json")
    if json:
        print_json(fields)
    else:
        print_table(("field", "value"), list(fields.items()))
