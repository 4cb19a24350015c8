"""Those who buy, use what they bought, and are given their money back, while the site is harmed."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from headrace import ids
from headrace.billing.payments.local.book import LocalOrder, Refused
from tests.chaos.load import OF_QUOTA, Load, use
from tests.chaos.world import PLANS, Person

NOTIFY = "/v1/payments/wechat/notify"


@use("buy")
async def buy(load: Load, choice: random.Random) -> None:
    """Order, pay, and let WeChat Pay tell of it: at once, twice, or not at all, and then a schedule has to ask."""
    client = load.client(choice, choice.choice(load.world.buyers).token)
    wish = {"plan": choice.choice(PLANS)["name"]}
    answer = await client.insist("POST", "/v1/subscriptions", wish, key=ids.new("req"), step="order")
    if not answer.is_success:
        return
    number = answer.json()["order"]["id"]
    load.promises.orders.add(number)
    await asyncio.sleep(choice.uniform(0, 2))
    if choice.random() < 0.1:
        return  # thinks better of it
    try:
        order = load.world.shop.pay(number, notify=False)
    except Refused:  # paid by another order of the same month, or closed
        return
    load.promises.done["orders paid"] += 1
    for _ in range(choice.choice([0, 1, 1, 1, 1, 2])):
        await tell(load, choice, "TRANSACTION.SUCCESS", order)
    await asyncio.sleep(choice.uniform(0, 3))


async def tell(load: Load, choice: random.Random, kind: str, order: LocalOrder) -> None:
    """As WeChat Pay does: again until it is taken, to whichever API is there."""
    async with httpx2.AsyncClient(timeout=10, trust_env=False) as http:
        for _ in range(20):
            body, headers = load.world.shop.notice(kind, order)
            if urls := list(load.site.apis()):
                url = choice.choice(urls)
                load.site.spring("notice", url)
                try:
                    if (await http.post(url + NOTIFY, content=body, headers=headers)).status_code == 204:
                        load.promises.done["notices taken"] += 1
                        return
                except httpx2.TransportError:
                    pass
            await asyncio.sleep(0.5)


def metered(choice: random.Random, *, later: float = 0.0) -> dict[str, Any]:
    units = choice.randrange(1, 6)
    task: dict[str, Any] = {
        "type": "metered",
        "payload": {"units": units, "used": choice.randrange(units + 1), "seconds": round(choice.uniform(0, 1), 2)},
    }
    if later:
        task["run_at"] = (datetime.now(UTC) + timedelta(seconds=later)).isoformat()
    return task


async def submit_metered(load: Load, choice: random.Random, person: Person, tasks: list[dict[str, Any]]) -> list[str]:
    answer = await load.client(choice, person.token).insist(
        "POST", "/v1/tasks/batch", {"tasks": tasks}, key=(key := ids.new("req")), refusals=OF_QUOTA
    )
    if answer.status_code != 201:
        load.promises.done["refused for want of units"] += 1
        return []
    made: list[str] = answer.json()["ids"]
    for number, task_id in enumerate(made):
        load.promises.keep(f"metered {key} {number}", task_id)
    return made


@use("use units")
async def use_units(load: Load, choice: random.Random) -> None:
    person = choice.choice([*load.world.buyers, *load.world.senders])
    tasks = [
        metered(choice, later=choice.choice([0, 0, 0, choice.uniform(1, 10)])) for _ in range(choice.randrange(1, 6))
    ]
    made = await submit_metered(load, choice, person, tasks)
    if made and choice.random() < 0.2:
        await asyncio.sleep(choice.uniform(0, 1))
        await load.client(choice, person.token).send("POST", f"/v1/tasks/{choice.choice(made)}/cancel")


@use("refund with waiting work")
async def refund(load: Load, choice: random.Random) -> None:
    """The money goes back while tasks that it paid for wait: they must not be done for nothing."""
    await asyncio.sleep(choice.uniform(2, 6))
    person = choice.choice(load.world.buyers)
    client = load.client(choice, person.token)
    found = await client.send("GET", "/v1/payments?limit=50")
    paid = [each["id"] for each in found.json()["items"] if each["status"] == "PAID"] if found is not None else []
    if not paid:
        return
    await submit_metered(load, choice, person, [metered(choice, later=choice.uniform(8, 15)) for _ in range(4)])
    number = choice.choice(paid)
    answer = await load.client(choice).insist(
        "POST", f"/v1/admin/payments/{number}/refund", {"reason": "chaos"}, key=ids.new("req"), step="refund"
    )
    if answer.is_success:
        load.promises.done["refunds asked for"] += 1
        if choice.random() < 0.7:
            await tell(load, choice, "REFUND.SUCCESS", load.world.shop.book.find(number))
