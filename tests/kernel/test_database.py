"""Transactions, notifications that come back, and errors a person can act on."""

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from itertools import pairwise
from typing import Any

import anyio
import asyncpg
import pytest

from headrace import logs
from headrace.database import Database, DatabaseConfig, Tx
from headrace.database_errors import DatabaseBusy, DatabaseRefused, DatabaseUnavailable
from headrace.transactions import Borrowed
from tests.closing import all_closed
from tests.conftest import TestServer


async def test_a_transaction_commits_at_its_end_and_rolls_back_on_any_error(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('a', now())")
    with pytest.raises(KeyError):
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('b', now())")
            raise KeyError
    async with db.transaction() as tx:
        assert [row["bucket"] for row in await tx.fetch("SELECT bucket FROM headrace.rate_limits")] == ["a"]


async def test_count_says_how_many_rows_a_write_touched(tx: Tx) -> None:
    await tx.execute(
        "INSERT INTO headrace.rate_limits (bucket, tat) SELECT 'x' || n, now() FROM generate_series(1, 3) n"
    )
    assert await tx.count("UPDATE headrace.rate_limits SET tat = now() WHERE bucket <> 'x1'") == 2
    assert await tx.count("DELETE FROM headrace.rate_limits WHERE bucket = 'nobody'") == 0


async def test_json_goes_in_and_out_as_objects(tx: Tx) -> None:
    assert await tx.fetchval("SELECT $1::jsonb", {"名": [1, None, "é"]}) == {"名": [1, None, "é"]}


async def test_the_connection_says_who_it_is(tx: Tx) -> None:
    assert (await tx.fetchval("SELECT current_setting('application_name')")).startswith("headrace test ")
    assert await tx.fetchval("SELECT current_user") == "headrace_app"


async def test_a_statement_that_takes_too_long_is_ended(database_url: str) -> None:
    config = DatabaseConfig(database_url, statement_timeout=timedelta(milliseconds=50))
    async with await Database.connect(config) as db:
        with pytest.raises(DatabaseBusy):
            async with db.transaction() as tx:
                await tx.execute("SELECT pg_sleep(5)")


async def test_a_full_disk_is_something_that_passes(db: Database) -> None:
    """Not a bug of ours: the API says 503, and a worker keeps what it has to write until there is room."""
    with pytest.raises(DatabaseUnavailable, match="disk space"):
        async with db.transaction() as tx:
            await tx.execute("DO $$ BEGIN RAISE 'no space left on device' USING ERRCODE = 'disk_full'; END $$")


async def test_a_full_pool_says_so_instead_of_waiting_for_ever(database_url: str) -> None:
    config = DatabaseConfig(database_url, pool_max=1, connect_timeout=timedelta(milliseconds=300))
    async with await Database.connect(config) as db, db.transaction():
        with pytest.raises(DatabaseBusy, match="free"):
            async with db.transaction():
                pass


async def test_a_lost_connection_is_unavailable_and_the_next_one_works(db: Database, server: TestServer) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with db.transaction() as tx:
            pid = await tx.fetchval("SELECT pg_backend_pid()")
            await server.run("SELECT pg_terminate_backend($1)", pid)
            await tx.fetchval("SELECT 1")
    async with db.transaction() as tx:
        assert await tx.fetchval("SELECT 1") == 1


async def test_a_connection_that_was_cut_off_while_nobody_used_it_is_replaced(db: Database, server: TestServer) -> None:
    for _ in range(3):
        (row,) = await db.fetch_alone("SELECT pg_backend_pid() AS pid")
        await server.run("SELECT pg_terminate_backend($1, 5000)", row["pid"])
        await asyncio.sleep(0.05)  # until its end is noticed here
    assert len(await db.fetch_alone("SELECT 1")) == 1


async def test_whoever_waits_for_a_connection_comes_before_keeping_it(database_url: str) -> None:
    config = DatabaseConfig(database_url, pool_max=2, connect_timeout=timedelta(seconds=5))
    async with await Database.connect(config) as db:

        async def ask(number: int) -> None:
            if number % 3:
                await db.fetch_alone("SELECT 1")
            else:
                async with db.transaction() as tx:
                    await tx.fetchval("SELECT pg_sleep(0.001)")

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(ask(number))
        pids = {(await db.fetch_alone("SELECT pg_backend_pid() AS pid"))[0]["pid"] for _ in range(5)}
        assert len(pids) == 1


async def test_closing_waits_for_what_is_under_way_and_no_longer(database_url: str) -> None:
    db = await Database.connect(DatabaseConfig(database_url))
    asked = asyncio.create_task(db.fetch_alone("SELECT pg_sleep(0.2)"))
    while db._pool.get_idle_size():
        await asyncio.sleep(0.005)
    await db.close()
    assert len(await asked) == 1  # kept by us, the connection would be waited for until it is cut off


async def test_a_question_that_is_called_off_leaves_nothing_behind(db: Database) -> None:
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await db.fetch_alone("SELECT pg_sleep(5)")
        assert [dict(row) for row in await db.fetch_alone("SELECT 7 AS n")] == [{"n": 7}]


async def test_connecting_that_is_called_off_is_no_error_in_the_log(
    database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    logs.configure(format="json", level="ERROR")
    for turns in range(1, 10):  # of the loop; it is in the fourth or fifth that asyncpg leaves an error to nobody
        async with await Database.connect(DatabaseConfig(database_url, pool_min=0)) as db:
            asked = asyncio.create_task(db.fetch_alone("SELECT 1"))
            for _ in range(turns):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])
        await asyncio.sleep(0.005)  # the socket is closed in a later turn
        gc.collect()
    assert capfd.readouterr().err == ""


@pytest.fixture
async def own(database_url: str) -> AsyncIterator[Database]:
    """As one user, who may end sessions of their own; the other fixtures log in as another user than they act as."""
    config = DatabaseConfig(database_url.partition("?")[0], statement_timeout=timedelta(minutes=10))
    async with await Database.connect(config) as db:
        yield db


async def test_a_rollback_that_is_given_up_leaves_no_error_in_the_log(
    own: Database, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a process that was stopped for longer than a rollback may take, and whose session has not ended yet."""
    logs.configure(format="json", level="ERROR")

    async def too_late(_: Borrowed) -> None:
        raise TimeoutError

    async def not_yet(*_: object) -> None: ...

    monkeypatch.setattr(Borrowed, "roll_back", too_late)
    monkeypatch.setattr(Database, "_end_session", not_yet)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with own.transaction() as tx:
                await tx.execute("SELECT 1")
                raise ZeroDivisionError
    assert [dict(row) for row in await own.fetch_alone("SELECT 7 AS n")] == [{"n": 7}]
    assert capfd.readouterr().err == ""


async def test_a_transaction_that_is_canceled_again_and_again_is_rolled_back_without_an_error_in_the_log(
    own: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    """As when the client of a stream leaves: "Resetting connection with an active transaction", 72 errors an hour."""
    logs.configure(format="json", level="ERROR")
    db = own

    async def insert(asked: asyncio.Event) -> None:
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('a', now())")
            asked.set()
            await tx.execute("SELECT pg_sleep(30)")

    for turns in range(12):
        async with anyio.create_task_group() as group:
            group.start_soon(insert, asked := asyncio.Event())
            await asked.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            group.cancel_scope.cancel()
        assert not await db.fetch_alone("SELECT FROM headrace.rate_limits")
    async with asyncio.timeout(60):
        while db._ending:
            await asyncio.sleep(0.01)
    assert capfd.readouterr().err == ""


# Ignores the first cancellation, as PostgreSQL does where it overtakes its statement.
STUBBORN = """
DO $$ BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(600); END $$
"""


async def test_a_canceled_transaction_whose_statement_goes_on_keeps_no_locks(own: Database) -> None:
    async def insert(asked: asyncio.Event) -> None:
        async with own.transaction() as tx:
            await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('a', now())")
            asked.set()
            await tx.execute(STUBBORN)

    inserting = asyncio.create_task(insert(asked := asyncio.Event()))
    await asked.wait()
    await asyncio.sleep(0.05)
    inserting.cancel()
    async with asyncio.timeout(120):
        await asyncio.wait([inserting])
        await own.fetch_alone("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('a', now())")


def test_a_pool_that_cannot_connect_says_so_in_plain_words(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(format="json", level="WARNING")
    try:
        raise ConnectionRefusedError
    except ConnectionRefusedError:
        logging.getLogger("asyncpg.pool").warning(
            "Failed to restore the pool connection floor; retrying", exc_info=True
        )
    (line,) = capfd.readouterr().err.splitlines()
    assert "PostgreSQL cannot be reached; trying again (ConnectionRefusedError)" in line
    assert "floor" not in line


async def cut_listeners(db: Database, server: TestServer) -> None:
    await server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'headrace listener%' "
        "AND datname = $1",
        db.config.url.rpartition("/")[2].partition("?")[0],
    )


async def test_listening_survives_the_loss_of_its_connection(db: Database, server: TestServer) -> None:
    async with asyncio.timeout(60), aclosing(db.listen("news")) as notes:
        assert (await anext(notes)).resumed
        async with db.transaction() as tx:
            await tx.execute("SELECT pg_notify('news', 'first')")
        assert (await anext(notes)).payload == "first"
        await cut_listeners(db, server)
        assert (await anext(notes)).resumed
        async with db.transaction() as tx:
            await tx.execute("SELECT pg_notify('news', 'second')")
        assert (await anext(notes)).payload == "second"


async def test_listening_survives_a_refusal_to_listen(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    listen, refusals = asyncpg.Connection.add_listener, [asyncpg.QueryCanceledError("too slow")]

    async def refuse_once(connection: Any, *args: Any) -> None:
        if refusals:
            raise refusals.pop()
        await listen(connection, *args)

    monkeypatch.setattr(asyncpg.Connection, "add_listener", refuse_once)
    with all_closed():
        async with asyncio.timeout(60), aclosing(db.listen("news")) as notes:
            assert (await anext(notes)).resumed
    assert not refusals


async def test_a_line_that_breaks_at_once_each_time_is_tried_in_growing_pauses(
    db: Database, server: TestServer
) -> None:
    resumed_at: list[float] = []
    async with asyncio.timeout(60), aclosing(db.listen("news")) as notes:
        while len(resumed_at) < 4:
            assert (await anext(notes)).resumed
            resumed_at.append(time.monotonic())
            await cut_listeners(db, server)
    pauses = [after - before for before, after in pairwise(resumed_at)]
    assert all(pause >= least for pause, least in zip(pauses, (0.1, 0.2, 0.4), strict=True)), pauses


@pytest.mark.parametrize(
    ("url", "kind", "said"),
    [
        ("postgresql://nobody:wrong@{host}/postgres", DatabaseRefused, "user or the password"),
        ("postgresql://{user}@{host}/nowhere_at_all", DatabaseRefused, "no such database"),
        ("postgresql://u:geheim@127.0.0.1:1/x", DatabaseUnavailable, "cannot be reached"),
        ("mysql://u:geheim@h/x", DatabaseRefused, "not a PostgreSQL address"),
    ],
)
async def test_a_connection_that_cannot_be_made_is_explained_in_a_line(
    server: TestServer, url: str, kind: type[Exception], said: str
) -> None:
    user, _, host = server.superuser_url.removeprefix("postgresql://").partition("/")[0].rpartition("@")
    with pytest.raises(kind, match=said) as caught:
        await Database.connect(DatabaseConfig(url.format(user=user, host=host)))
    assert "geheim" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_unique_violation_stays_what_it_is(tx: Tx) -> None:
    with pytest.raises(asyncpg.UniqueViolationError):
        await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('a', now()), ('a', now())")


async def test_a_rollback_that_a_late_cancellation_hits_is_repeated() -> None:
    """At the end of streams asyncpg logged "Resetting connection with an active transaction"."""
    executed: list[str] = []

    class Hit:
        """The first ROLLBACK is canceled instead of the statement before it."""

        def is_in_transaction(self) -> bool:
            return executed.count("ROLLBACK") < 2

        async def execute(self, sql: str) -> None:
            executed.append(sql)
            if executed.count("ROLLBACK") == 1:
                raise asyncpg.QueryCanceledError("canceling statement due to user request")

    borrowed = Borrowed(Hit())  # type: ignore[arg-type]
    await borrowed.begin(isolation="read_committed", readonly=False, opening="")
    await borrowed.roll_back()
    assert executed[1:] == ["ROLLBACK", "ROLLBACK"]


async def test_a_begin_that_arrives_after_its_cancellation_is_rolled_back() -> None:
    """asyncpg logged "Resetting connection with an active transaction" where the answer to BEGIN came late."""
    executed: list[str] = []

    class Late:
        """Its canceled BEGIN is answered with the next statement."""

        open = False

        def is_in_transaction(self) -> bool:
            return self.open

        async def execute(self, sql: str) -> None:
            executed.append(sql)
            if sql.startswith("BEGIN"):
                raise asyncio.CancelledError
            self.open = sql != "ROLLBACK"

    borrowed = Borrowed(Late())  # type: ignore[arg-type]
    with pytest.raises(asyncio.CancelledError):
        await borrowed.begin(isolation="read_committed", readonly=False, opening="")
    await borrowed.roll_back()
    assert executed[1:] == ["SELECT", "ROLLBACK"]


async def test_what_is_deferred_runs_with_the_commit_and_never_in_a_savepoint(db: Database) -> None:
    add = "INSERT INTO headrace.rate_limits (bucket, tat) SELECT {given} ->> 'name', now()"

    def never(_: asyncpg.PostgresError) -> None: ...

    name = "'; DROP TABLE headrace.rate_limits; --\\"
    async with db.transaction(defers=True, opening="SAVEPOINT first") as tx:
        assert tx.defer(add, {"name": "undone"}, refused=never)
        await tx.roll_back_to("first")
        assert tx.defer(add, {"name": name}, refused=never)
        with pytest.raises(KeyError):
            async with tx.savepoint():
                # The caller of a savepoint handles a refusal there: it must not come later.
                assert not tx.defer(add, {"name": "at once"}, refused=never)
                raise KeyError
        assert await tx.fetch("SELECT bucket FROM headrace.rate_limits") == []
    async with db.transaction() as tx:
        assert not tx.defer(add, {"name": "now"}, refused=never)
        assert [row["bucket"] for row in await tx.fetch("SELECT bucket FROM headrace.rate_limits")] == [name]


async def test_a_deferred_statement_that_is_refused_rolls_everything_back(db: Database) -> None:
    with pytest.raises(LookupError, match="division"):
        async with db.transaction(defers=True) as tx:
            await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ('a', now())")
            tx.defer("SELECT 1 / ({given})::integer", 0, refused=lambda exc: LookupError(str(exc)))
    async with db.transaction() as tx:
        assert await tx.fetch("SELECT bucket FROM headrace.rate_limits") == []


async def test_a_savepoint_in_an_undone_one_leaves_the_outer_one_usable(tx: Tx) -> None:
    add = "INSERT INTO headrace.rate_limits (bucket, tat) VALUES ($1, now())"
    with pytest.raises(KeyError):
        async with tx.savepoint():
            await tx.execute(add, "outer")
            with pytest.raises(ValueError, match="inner"):
                async with tx.savepoint():
                    raise ValueError("inner")
            raise KeyError
    assert await tx.fetch("SELECT bucket FROM headrace.rate_limits") == []
