"""Cursors: complete under inserts, and good for nothing but the list they come from."""

import base64
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import ids
from headrace.database import Database
from headrace.edge.errors import InvalidCursor
from headrace.edge.paging import PageRequest, seal, unseal

KEY = b"k" * 32
LIST = b"thelist1"
AT = datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)


async def _add(db: Database, count: int, *, at: datetime) -> list[str]:
    made = [ids.new("u") for _ in range(count)]
    async with db.transaction() as tx:
        for user_id in made:
            await tx.execute(
                "INSERT INTO headrace.users (id, username, password_hash, created_at) VALUES ($1, $1, '!', $2)",
                user_id,
                at,
            )
    return made


async def test_pages_show_every_row_once_while_rows_are_added(client: httpx2.AsyncClient, db: Database) -> None:
    # All at the same instant: only the id tells them apart.
    made = await _add(db, 25, at=AT + timedelta(days=100_000))
    seen: list[str] = []
    page = (await client.get("/v1/things", params={"limit": 7})).json()
    while True:
        seen += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        page = (await client.get("/v1/things", params={"limit": 7, "cursor": page["next_cursor"]})).json()
        await _add(db, 3, at=AT + timedelta(days=200_000))  # newer: they belong before the first page
    assert seen == [*made[::-1], ids.SYSTEM_USER]


async def test_the_last_page_has_no_cursor(client: httpx2.AsyncClient, db: Database) -> None:
    await _add(db, 4, at=AT)  # and the system user
    full = (await client.get("/v1/things", params={"limit": 5})).json()
    assert (len(full["items"]), full["next_cursor"]) == (5, None)
    short = (await client.get("/v1/things", params={"limit": 4})).json()
    rest = (await client.get("/v1/things", params={"limit": 4, "cursor": short["next_cursor"]})).json()
    assert (len(rest["items"]), rest["next_cursor"]) == (1, None)


@pytest.mark.parametrize("limit", ["0", "101", "-1", "x", "9" * 5000])
async def test_limits_have_limits(client: httpx2.AsyncClient, limit: str) -> None:
    answer = await client.get("/v1/things", params={"limit": limit})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.limit")


async def test_a_cursor_is_bound_to_its_list_its_filters_and_its_user(client: httpx2.AsyncClient, db: Database) -> None:
    await _add(db, 2, at=AT)
    cursor = (await client.get("/v1/things", params={"limit": 1})).json()["next_cursor"]
    elsewhere = [
        await client.get("/v1/other-things", params={"cursor": cursor}),
        await client.get("/v1/things", params={"cursor": cursor, "prefix": "a"}),
        await client.get("/v1/things", params={"cursor": cursor}, headers={"Authorization": f"Bearer {ids.new('u')}"}),
    ]
    for answer in elsewhere:
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")
        assert "another list" in answer.json()["detail"]
    # How many at a time is not what the list is: it may change from page to page.
    assert (await client.get("/v1/things", params={"cursor": cursor, "limit": 50})).status_code == 200


def test_every_altered_byte_is_noticed() -> None:
    cursor = seal(KEY, LIST, (AT, "tsk_1"))
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=="))
    for position in range(len(raw)):
        altered = bytearray(raw)
        altered[position] ^= 1
        with pytest.raises(InvalidCursor):
            unseal(KEY, LIST, base64.urlsafe_b64encode(altered).rstrip(b"=").decode())


@given(st.text(max_size=80))
def test_what_is_no_cursor_is_refused_and_never_breaks(text: str) -> None:
    with pytest.raises(InvalidCursor):
        unseal(KEY, LIST, text)


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2900, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - their zone is given beside
    st.text(max_size=64),
)
def test_a_cursor_keeps_the_microsecond_and_the_id(at: datetime, row_id: str) -> None:
    assert unseal(KEY, LIST, seal(KEY, LIST, (at, row_id))) == (at, row_id)


def test_another_secret_means_another_cursor() -> None:
    with pytest.raises(InvalidCursor):
        unseal(b"other" * 8, LIST, seal(KEY, LIST, (AT, "tsk_1")))


def test_filters_that_were_not_asked_for_do_not_count() -> None:
    request = PageRequest(20, None, KEY)
    assert request.of("tasks", status=None).list_id == request.of("tasks").list_id
    assert request.of("tasks", status="a").list_id != request.of("tasks", state="a").list_id
    assert request.of("tasks", b=1, a=2).list_id == request.of("tasks", a=2, b=1).list_id
