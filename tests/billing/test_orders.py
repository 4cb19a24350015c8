"""How an order is paid and given back. W-11."""

import asyncio
from typing import Any

from headrace.billing.payments import checking
from headrace.billing.payments.platform_keys import SIGNATURE_TYPE
from tests.billing.shop import Shop
from tests.billing.test_subscriptions import path_of, renewed


async def refund(shop: Shop, number: str) -> dict[str, object]:
    reply = await shop.manage("POST", f"/v1/admin/payments/{number}/refund", {"reason": "as agreed"})
    seen: dict[str, object] = reply.json()
    return seen


async def test_the_code_is_a_picture(shop: Shop) -> None:
    answer = await shop.order()
    reply = await shop.call("GET", f"/v1/payments/{answer['order']['id']}/qr.png")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png")
    assert reply.content.startswith(b"\x89PNG")
    await shop.tell_paid(shop.local.pay(answer["order"]["id"]))
    reply = await shop.call("GET", f"/v1/payments/{answer['order']['id']}/qr.png")
    assert reply.json()["code"] == "order_not_payable"


async def test_within_wechat_the_parameters_are_signed(shop: Shop) -> None:  # W-11
    refused = await shop.call("POST", "/v1/subscriptions", {"plan": "Pro", "method": "JSAPI"})
    assert (refused.status_code, refused.json()["code"]) == (400, "payer_unknown")
    await shop.db.fetch_alone("UPDATE headrace.users SET wechat_openid = 'o-ada' WHERE id = $1", shop.user_id)
    answer = await shop.order(method="JSAPI")
    told = answer["order"]["jsapi"]
    assert (told["appId"], told["signType"]) == (shop.local.keys.app_id, "RSA")
    message = f"{told['appId']}\n{told['timeStamp']}\n{told['nonceStr']}\n{told['package']}\n"
    assert _is_merchants(shop, message, told["paySign"])
    assert shop.local.book.find(answer["order"]["id"]).request["payer"] == {"openid": "o-ada"}


def _is_merchants(shop: Shop, message: str, signature: str) -> bool:
    """By the server's own check, which signs a request's method, target, time, nonce and body."""
    from base64 import b64decode

    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(shop.local.keys.merchant_key.encode(), None).public_key()
    key.verify(b64decode(signature), message.encode(), PKCS1v15(), SHA256())  # type: ignore[union-attr, call-arg, arg-type]
    return SIGNATURE_TYPE.endswith("RSA2048")


async def test_a_refund_takes_back_what_is_left(shop: Shop) -> None:  # W-11
    answer = await shop.buy()
    number = answer["order"]["id"]
    asked = await refund(shop, number)
    assert asked["status"] == "REFUNDING"
    assert await shop.status_of(answer) == ("ACTIVE", "REFUNDING"), "until WeChat Pay says that it is done"
    order = shop.local.book.find(number)
    for _ in range(2):
        assert (await shop.tell_refunded(order)).status_code == 204
    assert await shop.status_of(answer) == ("REFUNDED", "REFUNDED")
    assert (await refund(shop, number))["refund_id"] == asked["refund_id"], "asked again, it is the same"
    (granted,) = await shop.grants()
    assert (granted["status"], granted["quota_left"]) == ("SUSPENDED", 500)
    assert await shop.events(answer["subscription"]["id"]) == ["activated", "refunded"]


async def test_a_refund_whose_notice_got_lost_is_asked_for(shop: Shop) -> None:  # W-11
    answer = await shop.buy()
    await refund(shop, answer["order"]["id"])
    await shop.db.fetch_alone("UPDATE headrace.payment_orders SET checked_at = now() - interval '1 hour'")
    assert await checking.run_once(shop.db, shop.payments) == {"refunded": 1}
    assert await shop.status_of(answer) == ("REFUNDED", "REFUNDED")


async def test_a_refund_that_never_arrived_is_sent_again(shop: Shop) -> None:
    answer = await shop.buy()
    await refund(shop, answer["order"]["id"])
    order = shop.local.book.find(answer["order"]["id"])
    order.refund, order.state = None, "SUCCESS"
    for expected in ("refunding", "refunded"):  # asked for anew, and then done
        await shop.db.fetch_alone("UPDATE headrace.payment_orders SET checked_at = now() - interval '1 hour'")
        assert await checking.run_once(shop.db, shop.payments) == {expected: 1}
    assert await shop.status_of(answer) == ("REFUNDED", "REFUNDED")


async def test_a_refund_that_is_refused_leaves_the_order_paid(shop: Shop) -> None:
    answer = await shop.buy()
    shop.local.book.find(answer["order"]["id"]).state = "REVOKED"
    reply = await shop.boss.post(f"/v1/admin/payments/{answer['order']['id']}/refund", json={"reason": "as agreed"})
    assert (reply.status_code, reply.json()["code"]) == (409, "wechat_pay_refused")
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    seen = (await shop.call("GET", f"/v1/payments/{answer['order']['id']}")).json()
    assert seen["problem"] == "refund_closed"


async def test_what_is_not_paid_cannot_be_refunded(shop: Shop) -> None:
    answer = await shop.order()
    reply = await shop.boss.post(f"/v1/admin/payments/{answer['order']['id']}/refund", json={"reason": "as agreed"})
    assert (reply.status_code, reply.json()["code"]) == (409, "order_not_paid")


async def test_refunding_the_month_to_come_leaves_the_present_one(shop: Shop) -> None:
    answer = await shop.buy()
    ahead = await renewed(shop, answer)
    await refund(shop, ahead["order"]["id"])
    await shop.tell_refunded(shop.local.book.find(ahead["order"]["id"]))
    first, second = await shop.grants()
    assert (first["status"], second["status"]) == ("ACTIVE", "SUSPENDED")
    row = await shop.one("SELECT status, expire_at FROM headrace.subscriptions")
    assert (row["status"], row["expire_at"]) == ("ACTIVE", first["period_end"])


async def test_somebody_elses_order_is_not_there(shop: Shop) -> None:
    answer = await shop.order()
    _, other = await shop.newcomer()
    for path in (f"/v1/payments/{answer['order']['id']}", f"/v1/subscriptions/{answer['subscription']['id']}"):
        assert (await shop.client.get(path, headers=other)).status_code == 404
    assert (await shop.client.get("/v1/payments?user_id=*", headers=other)).status_code == 403
    assert (await shop.client.get("/v1/payments", headers=other)).json()["items"] == []
    assert len((await shop.manage("GET", "/v1/payments?user_id=*")).json()["items"]) == 1


async def test_the_page_of_this_machine_pays(shop: Shop) -> None:
    import httpx2

    answer = await shop.order()
    async with httpx2.AsyncClient(base_url=shop.local.url, follow_redirects=True) as browser:
        page = (await browser.get(answer["order"]["code_url"])).text
        assert "29.00 CNY" in page
        token = page.split('name="token" value="')[1].split('"')[0]
        pay = f"/orders/{answer['order']['id']}/pay-unheard"
        assert (await browser.post(pay, data={"token": "guessed"})).status_code == 403
        assert "SUCCESS" in (await browser.post(pay, data={"token": token})).text
        unsigned = await browser.get(f"/v3/pay/transactions/out-trade-no/{answer['order']['id']}?mchid=x")
        assert (unsigned.status_code, unsigned.json()["code"]) == (401, "SIGN_ERROR")
    checked = await shop.call("POST", f"/v1/payments/{answer['order']['id']}/check")
    assert checked.json()["status"] == "PAID"


async def test_a_month_to_come_that_was_refunded_can_be_bought_again(shop: Shop) -> None:  # W-11
    answer = await shop.buy()
    for _ in range(2):
        ahead = await renewed(shop, answer)
        await refund(shop, ahead["order"]["id"])
        await shop.tell_refunded(shop.local.book.find(ahead["order"]["id"]))
    await renewed(shop, answer)
    first, *ahead_of_it = await shop.grants()
    assert {granted["period_start"] for granted in ahead_of_it} == {first["period_end"]}
    assert sorted(granted["status"] for granted in ahead_of_it) == ["ACTIVE", "SUSPENDED", "SUSPENDED"]
    row = await shop.one("SELECT expire_at FROM headrace.subscriptions")
    assert row["expire_at"] == ahead_of_it[0]["period_end"]


async def ask_for_renewal(shop: Shop, answer: dict[str, Any]) -> str:
    reply = await shop.call("POST", path_of(answer, "/renew"), {})
    assert reply.status_code == 201, reply.text
    number: str = reply.json()["order"]["id"]
    return number


async def test_a_renewal_of_which_only_the_refund_is_told_leaves_what_was_paid_for(shop: Shop) -> None:  # W-11
    answer = await shop.buy()
    told = await ask_for_renewal(shop, answer)
    shop.local.pay(told)
    assert (await shop.tell_refunded(shop.local.refund(told))).status_code == 204
    found = await ask_for_renewal(shop, answer)
    assert found != told
    shop.local.pay(found)
    shop.local.refund(found)
    reply = await shop.call("POST", f"/v1/payments/{found}/check")
    assert (reply.status_code, reply.json()["status"]) == (200, "REFUNDED")
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    (granted,) = await shop.grants()
    assert (granted["status"], granted["quota_left"]) == ("ACTIVE", 500)


async def a_minute_passes(shop: Shop) -> None:
    await shop.db.fetch_alone("UPDATE headrace.payment_orders SET checked_at = now() - interval '1 hour'")


async def test_a_refund_that_the_schedule_is_refused_is_not_waited_for(shop: Shop) -> None:
    answer = await shop.buy()
    await refund(shop, answer["order"]["id"])
    order = shop.local.book.find(answer["order"]["id"])
    order.refund, order.state = None, "REVOKED"  # it never heard of it, and does not want to
    await a_minute_passes(shop)
    assert await checking.run_once(shop.db, shop.payments) == {"unknown": 1}
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    assert await problem_of(shop, order.number) == "refund_closed"


async def problem_of(shop: Shop, number: str) -> str | None:
    problem: str | None = (await shop.call("GET", f"/v1/payments/{number}")).json()["problem"]
    return problem


async def test_a_wrong_sum_that_was_asked_for_is_noted_as_one_that_was_told(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    paid = shop.local.pay(answer["order"]["id"])
    paid.request = {**paid.request, "amount": {"total": 1, "currency": "CNY"}}
    await a_minute_passes(shop)
    assert await checking.run_once(shop.db, shop.payments) == {"unknown": 1}
    assert await problem_of(shop, paid.number) == "amount_mismatch"
    assert await shop.status_of(answer) == ("PENDING", "PENDING")


async def test_an_order_in_an_unknown_state_keeps_no_other_from_being_checked(shop: Shop) -> None:
    orders = [await shop.order(plan) for plan in ("Pro", "Team")]
    for answer in orders:
        shop.local.pay(answer["order"]["id"], notify=False)
    shop.local.book.find(orders[1]["order"]["id"]).state = "ACCEPT"
    await a_minute_passes(shop)
    assert await checking.run_once(shop.db, shop.payments) == {"paid": 1, "unknown": 1}


async def test_a_renewal_whose_time_is_over_is_ordered_anew(shop: Shop) -> None:
    answer = await shop.buy()
    old = await ask_for_renewal(shop, answer)
    await shop.db.fetch_alone("UPDATE headrace.payment_orders SET expires_at = now() WHERE id = $1", old)
    new = await ask_for_renewal(shop, answer)
    assert new != old
    assert (await shop.tell_paid(shop.local.pay(new))).status_code == 204
    assert len(await shop.grants()) == 2


async def test_what_is_noted_of_an_order_does_not_disturb_who_gives_it_up(shop: Shop) -> None:
    answer = await shop.order()
    async with shop.db.transaction() as tx:
        await tx.execute("UPDATE headrace.payment_orders SET version = version + 1")  # WeChat Pay's answer is noted
        giving_up = asyncio.create_task(shop.call("POST", path_of(answer, "/cancel")))
        await asyncio.sleep(0.2)
    assert (await giving_up).status_code == 200
    assert await shop.status_of(answer) == ("CANCELED", "CLOSED")
