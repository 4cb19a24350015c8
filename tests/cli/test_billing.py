"""``headrace plans`` and ``headrace subscriptions``, beside a WeChat Pay on this machine. W-11."""

import asyncio
import json
from pathlib import Path
from typing import Any

from headrace import ids
from headrace.access import Caller, Role
from headrace.admin.figures import figures_of
from headrace.admin.health import read_health
from headrace.audit import Who
from headrace.billing.payments import ordering, store
from headrace.billing.payments.config import OrderConfig
from headrace.billing.payments.local.server import LocalPayments, local_payments
from headrace.billing.payments.model import PayMethod
from headrace.billing.payments.service import open_payments
from headrace.database import Database, DatabaseConfig
from tests.cli.conftest import Call, Place
from tests.web.world import merchant, merchant_keys


async def order(place: Place, local: LocalPayments) -> str:
    """What somebody has ordered and paid, of which nobody was told."""
    user_id = ids.new("u")
    caller = Caller(Who.system(), user_id, Role.USER)
    async with (
        await Database.connect(DatabaseConfig(place.app_url)) as db,
        open_payments(local.config("http://headrace.test/"), OrderConfig()) as payments,
    ):
        async with db.transaction() as tx:
            await tx.execute(
                "INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, 'ada', '!')", user_id
            )
            ordered = await ordering.order_plan(
                tx, caller, payments, plan="Pro", method=PayMethod.NATIVE, auto_renew=True
            )
        await ordering.prepare(db, payments, ordered.order.id)
    local.pay(ordered.order.id)
    return ordered.order.id


async def test_an_operator_sells_checks_and_refunds(call: Call, migrated: Place, tmp_path: Path) -> None:
    async with local_payments(merchant_keys()) as local:
        local.loses_notices = True
        paying = {f"HEADRACE_{name.upper()}": str(value) for name, value in merchant(local, str(tmp_path)).items()}

        async def run(*words: str) -> Any:
            # The server lives on this loop: a command must not keep it from answering.
            done = await asyncio.to_thread(call, *words, settings=migrated.settings | paying)
            assert done.code == 0, done.err
            return json.loads(done.out)

        features = tmp_path / "features.json"
        features.write_text('[{"feature": "concurrency", "tasks": 8}]')
        await run(
            "plans", "add", "Pro", "--price-cents", "2900", "--units", "500", "--features", str(features), "--json"
        )
        changed = await run("plans", "change", "Pro", "--units", "600", "--json")
        assert (changed["monthly_quota"], changed["features"]) == (600, [{"feature": "concurrency", "tasks": 8}])
        assert [plan["name"] for plan in await run("plans", "list", "--offered", "--json")] == ["Free", "Pro"]

        number = await order(migrated, local)
        assert (await run("subscriptions", "check", number, "--json"))["status"] == "PAID"
        (found,) = await run("subscriptions", "list", "--user", "ada", "--json")
        assert found["status"] == "ACTIVE"
        refunding = await run("subscriptions", "refund", number, "--reason", "as agreed", "--json")
        assert refunding["status"] == "REFUNDING"
        assert (await run("subscriptions", "check", number, "--json"))["status"] == "REFUNDED"
        (listed,) = await run("subscriptions", "orders", "--status", "refunded", "--json")
        assert listed["id"] == number


async def test_an_order_with_a_problem_raises_an_alarm_until_somebody_has_looked(
    call: Call, migrated: Place, tmp_path: Path
) -> None:  # W-11
    async def run(*words: str) -> Any:
        done = await asyncio.to_thread(call, *words, "--json", settings=migrated.settings)
        assert done.code == 0, done.err
        return json.loads(done.out)

    async def alarm() -> tuple[str, object]:
        (found,) = [each for each in await run("doctor") if each["check"] == "payments"]
        async with await Database.connect(DatabaseConfig(migrated.app_url)) as db:
            figures = {each.name: each.values for each in figures_of(await read_health(db))}
        return found["verdict"], figures["headrace_payment_order_problems"]

    await run("plans", "add", "Pro", "--price-cents", "2900", "--units", "500")
    async with local_payments(merchant_keys()) as local:
        local.loses_notices = True
        number = await order(migrated, local)
    assert await alarm() == ("ok", {})
    async with await Database.connect(DatabaseConfig(migrated.app_url)) as db, db.transaction() as tx:
        assert await store.note_problem(tx, number, "amount_mismatch")
    assert await alarm() == ("warning", {("amount_mismatch",): 1})
    assert [each["id"] for each in await run("subscriptions", "orders", "--problem")] == [number]
    for _ in range(2):
        assert (await run("subscriptions", "resolve", number, "--reason", "paid back by hand"))["problem"] is None
    assert await alarm() == ("ok", {})
    assert await run("subscriptions", "orders", "--problem") == []


def test_what_is_wrong_is_said(call: Call, migrated: Place, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text('[{"feature": "magic"}]')
    price = ("--price-cents", "1", "--units", "1")
    done = call("plans", "add", "Pro", *price, "--features", str(tmp_path / "wrong.json"), settings=migrated.settings)
    assert (done.code, "magic" in done.err) == (2, True)
    done = call("plans", "add", "Pro", *price, "--features", str(tmp_path / "none.json"), settings=migrated.settings)
    assert (done.code, "cannot be read" in done.err) == (2, True)
    done = call("plans", "show", "Pro", settings=migrated.settings)
    assert (done.code, "no such plan" in done.err) == (3, True)
    done = call("subscriptions", "refund", "ord_1", "--reason", "x", settings=migrated.settings)
    assert (done.code, "HEADRACE_WECHATPAY_MCH_ID" in done.err) == (5, True)
