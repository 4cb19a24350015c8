"""Whatever is sent to whichever route: never a 500, refusals as problem+json, nothing written by what was refused.

``HEADRACE_TEST_SEED=7 make test args=tests/attack/test_hostile.py`` sends others; a failure names what it sent."""

import os

import httpx2
import pytest

from tests.attack import invariants
from tests.attack.hostile import Hostile, hostile
from tests.attack.routes import Route, needs, routes_of
from tests.attack.stand import Attacked, Contents, attacked, prepared
from tests.web.recipes import Sent

pytestmark = pytest.mark.long

SEED = int(os.environ.get("HEADRACE_TEST_SEED", "1"))


async def send(stand: Attacked, route: Route, sent: Sent, request: Hostile) -> httpx2.Response:
    token = sent.token or stand.world.client.headers["Authorization"].removeprefix("Bearer ")
    url = httpx2.URL("http://headrace.test").copy_with(
        raw_path=(route.path.format(**request.path) + (f"?{request.query}" if request.query else "")).encode()
    )
    headers = [(b"Authorization", f"Bearer {token}".encode())] if needs(route) is not None else []
    headers += [(name.encode(), value.encode("latin-1")) for name, value in request.headers.items()]
    if request.body is not None and "Content-Type" not in request.headers:
        headers.append((b"Content-Type", b"application/json"))
    return await stand.client.request(route.method, url, content=request.body, headers=headers)


# Whose refusals are read by somebody who knows no problems.
OTHER_FORMS = {"/v1/payments/wechat/notify": "application/json"}


def offence(answer: httpx2.Response) -> str | None:
    if answer.status_code >= 500 and answer.status_code != 503:
        return "an error of ours"
    form = OTHER_FORMS.get(answer.request.url.path, "application/problem+json")
    if answer.status_code >= 400 and not answer.headers.get("content-type", "").startswith(
        (form, "application/problem")
    ):
        return "no problem+json"
    return None


async def attack(database_url: str, *, seed: int, most: int) -> None:
    offences: list[str] = []
    async with attacked(database_url) as stand:
        contents = Contents(stand.world.db)
        for route in routes_of(stand.app):
            sent = await prepared(stand.world, route)
            before, accepted = await contents.read(), False
            for request in hostile(route, sent.path, sent.body, seed=seed, most=most):
                if route.streams and request.path == sent.path:
                    continue  # the stream itself would go on for ever
                answer = await send(stand, route, sent, request)
                accepted |= answer.status_code < 400
                if found := offence(answer):
                    offences.append(f"{route.name} {request.what}: {found}: {answer.status_code} {answer.text[:200]}")
            if not accepted and (after := await contents.read()) != before:
                changed = [table for table in after if after[table] != before[table]]
                offences.append(f"{route.name}: all were refused, and yet they changed {changed}")
        offences += [str(each) for each in await invariants.broken(stand.world.db, at_rest=False)]
    assert not offences, "\n".join([f"with seed {seed}:", *offences])


@pytest.mark.timeout(900)  # hundreds of requests, on a machine that is busy with other things
async def test_no_input_makes_an_error_of_ours_or_a_half_written_row(database_url: str) -> None:
    await attack(database_url, seed=SEED, most=8)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 8))
async def test_nor_does_much_more_of_it(database_url: str, seed: int) -> None:
    await attack(database_url, seed=seed, most=120)
