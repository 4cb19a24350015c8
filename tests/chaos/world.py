"""Everybody around the site: an operator, users who buy, users who send files, WeChat Pay, receivers of webhooks."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from headrace.billing.payments.local.server import LocalPayments, local_payments
from tests.chaos.receivers import BAD, Receivers, all_receivers
from tests.e2e.program import Program, log_in, run_program
from tests.races.engine_stand import ROOT

BUYERS, SENDERS = 6, 3
PLANS = (
    {"name": "Pro", "price_cents": 2900, "monthly_quota": 40},
    {"name": "Team", "price_cents": 9900, "monthly_quota": 90},
)
PLENTY, NOTHING = 1_000_000, 0


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    token: str


@dataclass
class World:
    shop: LocalPayments
    receivers: Receivers
    samples: Mapping[str, Path]
    settings: Mapping[str, str]
    token: str = ""  # of the operator
    buyers: list[Person] = field(default_factory=list)
    senders: list[Person] = field(default_factory=list)  # of files; they have units in plenty
    endpoints: dict[str, str] = field(default_factory=dict)  # ids, by what their receiver does


@asynccontextmanager
async def world_in(folder: Path) -> AsyncIterator[World]:
    # Heavy, and only a run needs them: tests of the report load this module, too.
    from tests.chaos.samples import make_samples
    from tests.web.world import merchant, merchant_keys

    async with local_payments(merchant_keys()) as shop, all_receivers() as receivers:
        shop.loses_notices = True  # they are sent by those who pay, to whichever API is there
        folder.mkdir(parents=True, exist_ok=True)
        told = {f"HEADRACE_{name.upper()}": str(value) for name, value in merchant(shop, str(folder)).items()}
        yield World(shop, receivers, make_samples(folder / "samples"), told)


class _Api:
    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._http = httpx2.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, self._url + path, json=body)
        assert answer.is_success, answer.text
        return answer.json()


def settle(world: World, url: str, settings: Mapping[str, str]) -> None:
    """Make the people, plans and endpoints, with an API for this moment."""
    settings = {**settings, **world.settings, "HEADRACE_DATABASE_URL": url}
    made = run_program("admin", "create", "chaos", "--json", folder=ROOT, settings=settings)
    assert made.code == 0, made.err
    api = Program("api", folder=ROOT, settings=settings)
    try:
        api.until_ready()
        world.token = _token(api.url(), "chaos", json.loads(made.out)["password"])
        operator = _Api(api.url(), world.token)
        for plan in PLANS:
            operator.send("POST", "/v1/admin/plans", plan)
        free = next(each for each in operator.send("GET", "/v1/admin/plans")["items"] if each["price_cents"] == 0)
        for quota, people, names in (
            (PLENTY, world.senders, [f"sender{number}" for number in range(SENDERS)]),
            (NOTHING, world.buyers, [f"buyer{number}" for number in range(BUYERS)]),
        ):
            operator.send("PATCH", f"/v1/admin/plans/{free['id']}", {"monthly_quota": quota})
            for name in names:
                user = operator.send("POST", "/v1/admin/users", {"username": name})
                people.append(Person(user["user"]["id"], _token(api.url(), name, user["password"])))
                _Api(api.url(), people[-1].token).send("GET", "/v1/usage/balance")
        for name, at in world.receivers.urls().items():
            bad = {
                "timeout_ms": 1000,
                "max_retries": 1,
                "task_types": ["quick"],
                "subscribed_events": ["task.succeeded"],
            }
            well = {"max_retries": 10, "subscribed_events": ["*"]}
            body = {"name": name, "url": at, "every_user": True, **(bad if name in BAD else well)}
            world.endpoints[name] = operator.send("POST", "/v1/webhooks/endpoints", body)["id"]
    finally:
        api.stop()
        api.close()


def _token(url: str, name: str, password: str) -> str:
    answer = log_in(url, name, password)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])
