"""A-07: events are found by what, to what, by whom, from where and when; newest first; at any depth."""

import csv
import io
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace import audit
from headrace.audit import Action, Principal, PrincipalType, Resource, ResourceType, Who, errors, events, exporting
from headrace.audit.events import _PAGE, EventFilter
from headrace.audit.exporting import ExportFormat
from headrace.database import Database, Tx
from tests.audit.conftest import ADA, NOW, Fill
from tests.conftest import may_date_events

BEA = Principal("u_bea", "bea", PrincipalType.USER)
FILTERS: list[tuple[EventFilter, str]] = [
    (EventFilter(), "fedcba"),
    (EventFilter(action=Action.CREATED), "ca"),
    (EventFilter(resource_type=ResourceType.TASK), "dcb"),
    (EventFilter(resource_type=ResourceType.TASK, action=Action.DELETED), "d"),
    (EventFilter(resource_id="tsk_1"), "db"),
    (EventFilter(user_id="u_ada"), "fba"),
    (EventFilter(user_id="u_ada", action=Action.UPDATED), "b"),
    (EventFilter(client_ip="2001:db8::1"), "e"),
    (EventFilter(request_id="req-2"), "dc"),
    (EventFilter(since=NOW + timedelta(seconds=2), until=NOW + timedelta(seconds=4)), "dc"),
    (EventFilter(since=NOW + timedelta(seconds=2, microseconds=1), until=NOW + timedelta(seconds=3)), ""),
    (EventFilter(resource_type=ResourceType.TASK, since=NOW + timedelta(seconds=2)), "dc"),
    (EventFilter(text="tsk_1"), "db"),
    (EventFilter(text="u_ada"), "fba"),
    (EventFilter(text="bea"), "edc"),
    (EventFilter(text="2001:db8::1"), "e"),
    (EventFilter(text="req-2"), "dc"),
    (EventFilter(text="trace-9"), "f"),
    (EventFilter(text=" bea \t tsk_1 "), "d"),
    (EventFilter(text="bea", action=Action.DELETED), "ed"),
    (EventFilter(text="nobody"), ""),
]


@pytest.fixture
async def known(tx: Tx, who: Who) -> dict[str, str]:
    """Six events a second apart, by letter."""
    ada, bea = who.acting_as(ADA), who.acting_as(BEA)
    user, task = Resource(ResourceType.USER, "u_ada"), Resource(ResourceType.TASK, "tsk_1")
    done = [
        ("a", ada, Action.CREATED, user),
        ("b", ada, Action.UPDATED, task),
        ("c", replace(bea, request_id="req-2"), Action.CREATED, Resource(ResourceType.TASK, "tsk_2")),
        ("d", replace(bea, request_id="req-2"), Action.DELETED, task),
        ("e", replace(bea, client_ip="2001:db8::1"), Action.DELETED, Resource(ResourceType.QUEUE, "q")),
        ("f", replace(ada, trace_id="trace-9"), Action.LOGIN, user),  # found twice by u_ada, and shown once
    ]
    found: dict[str, str] = {}
    await may_date_events(tx)
    for at, (letter, by, action, resource) in enumerate(done):
        found[str(await audit.record(tx, by, action, resource, now=NOW + timedelta(seconds=at)))] = letter
    return found


@pytest.mark.parametrize(("wanted", "letters"), FILTERS)
async def test_every_filter_newest_first_in_pages_of_any_size(
    tx: Tx, known: dict[str, str], wanted: EventFilter, letters: str
) -> None:
    assert "".join(known[event.id] for event in await events.list_events(tx, wanted, limit=10)) == letters
    assert await events.count_events(tx, wanted) == len(letters)
    found, mark = "", None
    while page := await events.list_events(tx, wanted, older_than=mark, limit=1):
        found, mark = found + known[page[0].id], page[0].mark
    assert found == letters


async def test_events_of_one_millisecond_are_paged_without_loss(tx: Tx, who: Who) -> None:
    await may_date_events(tx)
    made = {await audit.record(tx, who, Action.READ, Resource(ResourceType.TASK, "t"), now=NOW) for _ in range(9)}
    for wanted in (EventFilter(), EventFilter(action=Action.READ), EventFilter(text="t")):
        found: list[str] = []
        mark = None
        while page := await events.list_events(tx, wanted, older_than=mark, limit=2):
            found += [event.id for event in page]
            mark = page[-1].mark
        assert len(found) == 9
        assert set(found) == made


@pytest.mark.parametrize("text", ["", "  ", "a b c d e f"])
async def test_a_search_is_for_one_to_five_words(tx: Tx, text: str) -> None:
    with pytest.raises(errors.SearchInvalid):
        await events.list_events(tx, EventFilter(text=text), limit=1)


async def test_an_event_that_is_not_there(tx: Tx, known: dict[str, str]) -> None:
    event = next(iter(known))
    assert (await events.get_event(tx, event, user_id="u_ada")).id == event
    for wanted, owner in ((event, "u_eve"), ("aud_nothing", None)):
        with pytest.raises(errors.EventNotFound):
            await events.get_event(tx, wanted, user_id=owner)


async def test_an_export_has_every_event_once_in_either_form(db: Database, fill: Fill) -> None:
    made = await fill(_PAGE + 5)
    for chosen in ExportFormat:
        parts = [chosen.heading, *[exporting.render(page, chosen) async for page in events.pages(db, EventFilter())]]
        assert len(parts) == 3
        text = b"".join(parts).decode()
        rows: list[Any] = (
            [json.loads(line) for line in text.splitlines()]
            if chosen is ExportFormat.JSONL
            else list(csv.DictReader(io.StringIO(text)))
        )
        assert [row["id"] for row in rows] == made[::-1]
    assert rows[-1]["resource_id"] == "u_0"
    assert json.loads(rows[-1]["new_object"]) == {"id": "u_0", "status": "SUSPENDED"}


async def test_a_spreadsheet_finds_no_formula(tx: Tx, who: Who) -> None:
    await audit.record(
        tx, replace(who, user_agent='=HYPERLINK("http://evil")'), Action.READ, Resource(ResourceType.TASK, "+1")
    )
    (row,) = csv.DictReader(
        io.StringIO(
            (
                ExportFormat.CSV.heading
                + exporting.render(await events.list_events(tx, EventFilter(), limit=1), ExportFormat.CSV)
            ).decode()
        )
    )
    assert row["user_agent"] == '\'=HYPERLINK("http://evil")'
    assert row["resource_id"] == "'+1"
