"""Every route and every kind of caller: refused by rule, and somebody else's row looks like none at all."""

from collections.abc import AsyncIterator
from itertools import cycle, islice

import httpx2
import pytest

from headrace.access import Scope
from tests.attack.callers import Callers, bearer, everybody
from tests.attack.routes import ADMIN, BY_BODY, Route, check_names, needs, routes_of
from tests.attack.stand import NEEDS_A_BUCKET, UNREADABLE, Attacked, Contents, attacked, facts_of, neighbour, prepared
from tests.web.recipes import Sent

pytestmark = pytest.mark.long


@pytest.fixture
async def stand(database_url: str) -> AsyncIterator[Attacked]:
    async with attacked(database_url) as opened:
        yield opened


class Offences(list[str]):
    """What should not have been answered like this; all of it is told at once."""

    def expect(self, holds: bool, route: Route, who: str, answer: httpx2.Response) -> None:
        if not holds:
            self.append(f"{route.name} by {who}: {answer.status_code} {answer.text[:200]}")

    def refused(self, route: Route, who: str, answer: httpx2.Response, *statuses: int) -> None:
        problem = answer.headers.get("content-type", "").startswith("application/problem+json")
        self.expect(answer.status_code in statuses and problem, route, who, answer)


@pytest.mark.parametrize("some", [2, pytest.param(len(Scope), marks=pytest.mark.slow)])
@pytest.mark.timeout(900)  # thousands of requests, on a machine that is busy with other things
async def test_every_route_refuses_every_caller_that_it_should(stand: Attacked, some: int) -> None:
    """``some``: how many with a dead credential, and how many of the victim's own keys with another scope, try each
    route; few of them take turns. Somebody without any credential tries them all."""
    callers = await everybody(stand.world)
    contents = Contents(stand.world.db)
    offences = Offences()
    turns, dead = cycle(callers.of_victim), cycle(callers.unknown)
    for route in routes_of(stand.app):
        check_names(route)
        if needs(route) is None:
            continue
        sent = await prepared(stand.world, route)
        before = await contents.read()
        unknown = {"nobody", *islice(dead, some)}
        await try_everybody(stand, route, sent, callers, unknown, {*islice(turns, some)}, offences)
        if (after := await contents.read()) != before:
            changed = [table for table in after if after[table] != before[table]]
            offences.append(f"{route.name}: refused callers have changed {changed}")
        if not route.streams and route.name not in NEEDS_A_BUCKET and not UNREADABLE & {*route.parameters("path")}:
            # Otherwise the others may have been refused for what they sent, and not for who they are.
            answer = await stand.send(route, sent, owner_of(stand, sent))
            offences.expect(answer.is_success, route, "the victim, who may", answer)
    assert not offences, "\n".join(offences)


def owner_of(stand: Attacked, sent: Sent) -> dict[str, str]:
    return bearer(sent.token) if sent.token else {"Authorization": stand.world.client.headers["Authorization"]}


async def try_everybody(
    stand: Attacked,
    route: Route,
    sent: Sent,
    callers: Callers,
    unknown: set[str],
    scopes: set[str],
    offences: Offences,
) -> None:
    needed = needs(route)
    for who in unknown:
        offences.refused(route, who, await stand.send(route, sent, callers.unknown[who]), 401)
    if route.changes:
        answer = await stand.send(route, sent, callers.without_csrf)
        offences.refused(route, "a cookie without its CSRF token", answer, 403)
    if isinstance(needed, Scope) or needed == ADMIN:
        enough = Scope.ADMIN if needed == ADMIN else needed
        for scope in scopes - {enough}:
            answer = await stand.send(route, sent, callers.of_victim[scope])
            offences.refused(route, f"the victim's own key for {scope}", answer, 403)
    await try_foreign_rows(stand, route, sent, callers, offences)


async def try_foreign_rows(stand: Attacked, route: Route, sent: Sent, callers: Callers, offences: Offences) -> None:
    """Somebody else with every right of their own: with the victim's row, and with one that is not there."""
    needed = needs(route)
    scope = Scope.ADMIN if needed == ADMIN else needed
    others = {"another's session": callers.other_session}
    if isinstance(scope, Scope):
        others[f"another's key for {scope}"] = callers.of_other[scope]
    for who, headers in others.items():
        if needed == ADMIN:
            offences.refused(route, who, await stand.send(route, sent, headers), 403)
        elif route.owned or route.name in BY_BODY:
            absent = missing(route, sent)
            theirs, nobodys = await stand.send(route, sent, headers), await stand.send(route, absent, headers)
            offences.refused(route, who, theirs, 404, 409)
            names = [
                *(sent.path[name] for name in route.owned),
                *(absent.path[name] for name in route.owned),
                *(sent.body.get("key", "victim's") if isinstance(sent.body, dict) else "victim's", "nobody's"),
            ]
            same = facts_of(theirs, *names) == facts_of(nobodys, *names)
            offences.expect(
                same, route, f"{who} can tell it from a missing one, which gives {nobodys.text[:200]}", theirs
            )


def missing(route: Route, sent: Sent) -> Sent:
    if route.name in BY_BODY:
        if "asset_ids" in sent.body:
            return Sent(body={**sent.body, "asset_ids": [neighbour(each) for each in sent.body["asset_ids"]]})
        return Sent(body={**sent.body, "key": "nobody's"})
    return Sent(
        {name: neighbour(value) if name in route.owned else value for name, value in sent.path.items()}, sent.body
    )


async def test_no_list_shows_what_belongs_to_somebody_else(stand: Attacked) -> None:
    world = stand.world
    callers = await everybody(world)
    me = (await world.send("GET", "/v1/me")).json()["user"]
    victims = [await world.task(), await world.schedule(), await world.api_key(), me["id"], me["username"]]
    await world.send("POST", "/v1/locks", {"key": "victims/door"})
    offences = Offences()
    for route in routes_of(stand.app):
        if route.changes or route.owned or route.streams or needs(route) in (None, ADMIN):
            continue  # one's own stream goes on for as long as one listens
        queries = [
            {},
            *({name: value} for name in route.parameters("query") for value in (me["id"], victims[0], victims[1])),
        ]
        for query in queries:
            answer = await stand.send(route, Sent(), callers.other_session, query=query)
            shown = answer.is_success and any(each in answer.text for each in [*victims, "victims/door"])
            offences.expect(answer.status_code < 500 and not shown, route, f"another's session with {query}", answer)
    assert not offences, "\n".join(offences)
