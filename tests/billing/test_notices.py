"""What WeChat Pay tells, in every order, any number of times, and by people who are not WeChat Pay. W-11, W-15."""

import asyncio
import time
from dataclasses import replace

import orjson
import pytest

from headrace import ids
from headrace.billing.payments.local.book import LocalOrder, transaction_of
from headrace.billing.payments.local.keys import make_keys
from headrace.billing.payments.local.signing import Signer
from headrace.database import Database
from headrace.settings.payments import PaymentsSettings
from tests.billing.shop import Shop, open_shop
from tests.web.world import whole_api


async def bought_once(shop: Shop) -> bool:
    """One grant, one credit, one payment."""
    (granted,) = await shop.grants()
    row = await shop.one(
        "SELECT (SELECT count(*) FROM headrace.usage_ledger WHERE entitlement_id = $1) AS credits,"
        " (SELECT count(*) FROM headrace.payment_orders WHERE status = 'PAID') AS paid",
        granted["id"],
    )
    return (row["credits"], row["paid"]) == (1, 1)


async def test_told_again_it_changes_nothing(shop: Shop) -> None:  # W-11, W-15
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    body, headers = shop.local.notice("TRANSACTION.SUCCESS", paid)
    for _ in range(3):  # the very same bytes: replayed
        assert (await shop.notify(body, headers)).status_code == 204
    assert (await shop.tell_paid(paid)).status_code == 204  # another notice of the same payment
    assert await bought_once(shop)
    assert await shop.events(answer["subscription"]["id"]) == ["activated"]


async def test_twice_at_once_it_is_granted_once(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    replies = await asyncio.gather(*(shop.tell_paid(paid) for _ in range(8)))
    assert {reply.status_code for reply in replies} == {204}
    assert await bought_once(shop)


async def test_a_notice_and_an_answer_at_once_grant_once(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    check = f"/v1/payments/{paid.number}/check"
    replies = await asyncio.gather(*(shop.tell_paid(paid) for _ in range(4)), *(shop.call("POST", check) for _ in "ab"))
    assert {reply.status_code for reply in replies} == {204, 200}
    assert await bought_once(shop)


HARMS = ["signature", "body", "serial", "type", "stranger", "unsigned", "old", "ahead", "other key"]


async def test_what_is_forged_is_refused(shop: Shop, subtests: pytest.Subtests) -> None:  # W-11
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    for harm in HARMS:
        with subtests.test(harm):
            reply = await shop.notify(*_forged(shop, paid, harm))
            assert reply.status_code == (400 if harm == "other key" else 401)
            assert reply.json()["code"] == "FAIL"
            assert await shop.status_of(answer) == ("PENDING", "PENDING")
            assert await shop.grants() == []


def _forged(shop: Shop, paid: LocalOrder, harm: str) -> tuple[bytes, dict[str, str]]:
    signer = shop.local.signer
    body, headers = shop.local.notice("TRANSACTION.SUCCESS", paid)
    match harm:
        case "signature":
            headers["Wechatpay-Signature"] = "AAAA" + headers["Wechatpay-Signature"][4:]
        case "body":
            body = body.replace(b"TRANSACTION.SUCCESS", b"TRANSACTION.SUCCEED")
        case "serial":
            headers["Wechatpay-Serial"] = "ABCDEF"
        case "type":
            headers["Wechatpay-Signature-Type"] = "WECHATPAY2-SM2-WITH-SM3"
        case "stranger":
            return _stranger(body)
        case "unsigned":
            return body, {"Content-Type": "application/json"}
        case "old" | "ahead":
            at = int(time.time()) + (-600 if harm == "old" else 600)
            return body, signer.headers(body, by_public_key=True, at=at)
        case "other key":  # signed by WeChat Pay, and encrypted for somebody else
            other = Signer(replace(shop.local.keys, api_v3_key="x" * 32))
            body = other.notice("TRANSACTION.SUCCESS", transaction_of(paid))
            return body, signer.headers(body, by_public_key=True)
    return body, headers


def _stranger(body: bytes) -> tuple[bytes, dict[str, str]]:
    """Somebody with keys of their own who says that they are WeChat Pay."""
    return body, Signer(make_keys()).headers(body, by_public_key=True)


async def test_what_cannot_be_read_is_refused(shop: Shop) -> None:
    for content in (b"", b"[]", b"{}", b"null", b"\xff", b'{"event_type":"x","resource":1}'):
        reply = await shop.notify(content, shop.local.signer.headers(content, by_public_key=True))
        assert (reply.status_code, reply.json()["code"]) == (400, "FAIL"), content


async def test_a_wrong_amount_buys_nothing(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    told = transaction_of(shop.local.pay(answer["order"]["id"]))
    changes: list[dict[str, object]] = [{"total": 1}, {"total": 2901}, {"currency": "USD"}, {"total": "2900"}]
    for change in changes:
        body = shop.local.signer.notice("TRANSACTION.SUCCESS", {**told, "amount": {**told["amount"], **change}})
        reply = await shop.notify(body, shop.local.signer.headers(body, by_public_key=True))
        assert (reply.status_code, reply.json()["code"]) == (400, "FAIL")
    assert await shop.status_of(answer) == ("PENDING", "PENDING")
    seen = (await shop.call("GET", f"/v1/payments/{answer['order']['id']}")).json()
    assert seen["problem"] == "amount_mismatch"
    noted = await shop.one("SELECT count(*) FROM headrace.audit_events WHERE data ->> 'problem' = 'amount_mismatch'")
    assert noted["count"] == 1


async def test_another_merchants_payment_buys_nothing(shop: Shop) -> None:
    answer = await shop.order()
    told = transaction_of(shop.local.pay(answer["order"]["id"]))
    body = shop.local.signer.notice("TRANSACTION.SUCCESS", {**told, "mchid": "1900009999"})
    reply = await shop.notify(body, shop.local.signer.headers(body, by_public_key=True))
    assert reply.status_code == 400
    assert await shop.status_of(answer) == ("PENDING", "PENDING")


async def test_an_unknown_order_is_to_be_told_again(shop: Shop) -> None:  # W-11
    told = transaction_of(shop.local.pay((await shop.order())["order"]["id"]))
    body = shop.local.signer.notice("TRANSACTION.SUCCESS", {**told, "out_trade_no": ids.new("ord")})
    reply = await shop.notify(body, shop.local.signer.headers(body, by_public_key=True))
    assert (reply.status_code, reply.json()["code"]) == (404, "FAIL")


async def test_before_the_orders_own_transaction_has_ended_it_is_to_be_told_again(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    async with shop.db.transaction() as tx:
        # As if its row were not there for others yet.
        late = ids.new("ord")
        await tx.execute("UPDATE headrace.payment_orders SET status = 'CLOSED' WHERE id = $1", paid.number)
        await tx.execute(
            "INSERT INTO headrace.payment_orders (id, user_id, plan_id, subscription_id, kind, method, status,"
            " description, amount_cents, currency, units, features_json, expires_at)"
            " SELECT $2, user_id, plan_id, subscription_id, kind, method, 'PENDING', description, amount_cents,"
            " currency, units, features_json, expires_at FROM headrace.payment_orders WHERE id = $1",
            paid.number,
            late,
        )
        body = shop.local.signer.notice("TRANSACTION.SUCCESS", {**transaction_of(paid), "out_trade_no": late})
        reply = await shop.notify(body, shop.local.signer.headers(body, by_public_key=True))
        assert (reply.status_code, reply.json()["code"]) == (404, "FAIL")
    assert (await shop.notify(body, shop.local.signer.headers(body, by_public_key=True))).status_code == 204
    assert (await shop.one("SELECT status FROM headrace.payment_orders WHERE id = $1", late))["status"] == "PAID"
    assert len(await shop.grants()) == 1


async def test_paid_before_the_answer_to_the_order_was_recorded(shop: Shop) -> None:  # W-11
    """WeChat Pay's notice overtakes its answer: the answer is recorded on a paid order, which stays paid."""
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    async with shop.db.transaction() as tx:
        await tx.execute("SELECT FROM headrace.payment_orders WHERE id = $1 FOR UPDATE", paid.number)
        telling = asyncio.create_task(shop.tell_paid(paid))
        await asyncio.sleep(0.05)
        assert not telling.done(), "it waits for whoever has the row"
        await tx.execute("UPDATE headrace.payment_orders SET code_url = 'x' WHERE id = $1", paid.number)
    assert (await telling).status_code == 204
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    assert await bought_once(shop)


async def test_a_refund_before_its_payment_grants_nothing_ever(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    number = answer["order"]["id"]
    paid = shop.local.pay(number)
    late = shop.local.notice("TRANSACTION.SUCCESS", paid)
    refunded = shop.local.refund(number)
    assert (await shop.tell_refunded(refunded)).status_code == 204
    assert await shop.status_of(answer) == ("REFUNDED", "REFUNDED")
    assert (await shop.notify(*late)).status_code == 204  # taken, and of no effect
    assert (await shop.tell_refunded(refunded)).status_code == 204
    assert await shop.status_of(answer) == ("REFUNDED", "REFUNDED")
    assert await shop.grants() == []
    assert await shop.events(answer["subscription"]["id"]) == ["refunded"]


async def test_payment_and_refund_told_at_once_end_refunded(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    told_paid = shop.local.notice("TRANSACTION.SUCCESS", paid)
    refunded = shop.local.refund(paid.number)
    told_refunded = shop.local.notice("REFUND.SUCCESS", refunded)
    replies = await asyncio.gather(
        shop.notify(*told_paid), shop.notify(*told_refunded), shop.notify(*told_paid), shop.notify(*told_refunded)
    )
    assert {reply.status_code for reply in replies} == {204}
    assert await shop.status_of(answer) == ("REFUNDED", "REFUNDED")
    assert {granted["status"] for granted in await shop.grants()} <= {"SUSPENDED"}


async def test_a_refund_in_part_is_left_to_a_person(shop: Shop) -> None:
    answer = await shop.buy()
    order = shop.local.book.find(answer["order"]["id"])
    asked = {"out_trade_no": order.number, "out_refund_no": "by-hand", "amount": {"refund": 100}}
    shop.local.book.ask_refund(asked)
    shop.local.book.end_refund(order)
    for _ in range(2):
        assert (await shop.tell_refunded(order)).status_code == 204
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    seen = (await shop.call("GET", f"/v1/payments/{order.number}")).json()
    assert seen["problem"] == "refunded_in_part"


async def test_certificates_count_where_there_is_no_public_key(db: Database) -> None:  # W-11
    async with open_shop(db, by_public_key=False) as shop:
        answer = await shop.buy()
        assert await shop.status_of(answer) == ("ACTIVE", "PAID")
        body, headers = _stranger(orjson.dumps({}))
        headers["Wechatpay-Serial"] = "ABCDEF"
        assert (await shop.notify(body, headers)).status_code == 401
        again = shop.local.book.find(answer["order"]["id"])
        assert (await shop.tell_paid(again)).status_code == 204, "a made-up serial number drops no certificate"


async def test_without_a_merchant_nothing_can_be_paid(database_url: str) -> None:
    off = dict.fromkeys(
        name for name in PaymentsSettings.model_fields if name.startswith("wechatpay_") and name != "wechatpay_base_url"
    )
    async with whole_api(database_url, **off) as (world, _):
        await world.send("POST", "/v1/admin/plans", {"name": "Pro", "price_cents": 2900, "monthly_quota": 500})
        reply = await world.client.post("/v1/subscriptions", json={"plan": "Pro"})
        assert (reply.status_code, reply.json()["code"]) == (403, "payments_off")
        assert "HEADRACE_WECHATPAY_MCH_ID" in reply.json()["detail"]
        reply = await world.client.post("/v1/payments/wechat/notify", content=b"{}")
        assert (reply.status_code, reply.json()["code"]) == (403, "FAIL")
