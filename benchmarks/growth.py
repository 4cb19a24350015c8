"""What grows with the rows: every list and count beside a year of tasks and beside ten thousand. See README.md."""

import argparse
import asyncio
import json
import re
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import httpx2
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table
from starlette.types import Receive, Scope, Send

from benchmarks import clockwork
from benchmarks.growth_cases import SAMPLES, Case, cases
from benchmarks.growth_rows import ADMIN, SCHEDULES, fill
from benchmarks.ours import as_app
from benchmarks.report import Targets, console, print_json, print_targets
from benchmarks.scratch import scratch_server
from headrace.access import Caller, Credentials, Role
from headrace.assembly.inprocess import AppByNoun, Parts
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.billing.usage import add_up_days
from headrace.cli.inprocess import LocalServices
from headrace.cli.transport import InProcess
from headrace.database import Database
from headrace.notifications import routes as notifications
from headrace.notifications.live import Inbox
from headrace.settings import Settings
from headrace.transactions import Tx
from headrace.web.inprocess import create_inprocess_app

SMALL = 10_000
# Below these a case is as good as any: both sides of a ratio count as at least so much.
FLOOR_MS = 5.0
FLOOR_ROWS = SMALL
TABLE_WIDTH = 180  # columns
TARGETS: Targets = {
    "list_growth": (f"largest ratio of p95s, each at least {FLOOR_MS:g} ms", -3),
    "list_growth_rows": (f"largest ratio of rows read, each at least {FLOOR_ROWS:,}", -3),
    "fire_growth": (f"ratio of medians of firing {SCHEDULES} schedules", -2),
}


@dataclass(frozen=True)
class Sizes:
    calls: int
    fires: int


FULL, QUICK = Sizes(21, 21), Sizes(11, 11)


class Reads:
    """What statements read, by EXPLAIN: counted instead of timed, so that a busy machine changes nothing."""

    def __init__(self) -> None:
        self.blocks = 0
        self.rows = 0

    def add(self, plan: Mapping[str, Any]) -> None:
        self.blocks += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        self._add_rows(plan)

    def _add_rows(self, node: Mapping[str, Any]) -> None:
        if "Relation Name" in node:
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            self.rows += round((read + node.get("Rows Removed by Index Recheck", 0)) * node["Actual Loops"])
        for child in node.get("Plans", ()):
            self._add_rows(child)


_WRITES = re.compile(
    r"\b(INSERT INTO|UPDATE headrace|DELETE FROM|FOR (NO KEY )?UPDATE|pg_advisory\w*|headrace\.\w+\s*\()"
)


@asynccontextmanager
async def explained() -> AsyncIterator[Reads]:
    """Explain each statement that only reads, before it is run."""
    reads = Reads()
    plain = {name: getattr(Tx, name) for name in ("fetch", "fetchrow", "fetchval")}

    def explaining(name: str) -> Any:
        async def run(self: Tx, sql: str, *args: object) -> Any:
            if not _WRITES.search(sql):
                found = await self.connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *args)
                reads.add((json.loads(found) if isinstance(found, str) else found)[0]["Plan"])
            return await plain[name](self, sql, *args)

        return run

    for name in plain:
        setattr(Tx, name, explaining(name))
    try:
        yield reads
    finally:
        for name, method in plain.items():
            setattr(Tx, name, method)


@dataclass
class Site:
    """The API of one database, in this process."""

    db: Database
    client: httpx2.AsyncClient
    samples: Mapping[str, str]

    async def get(self, case: Case) -> int:
        """Ask once; gives the number of items."""
        query = [(name, value.format_map(self.samples)) for name, value in case.query]
        reply = await self.client.get(
            case.path.format_map(self.samples), params=query, headers={"Authorization": f"Bearer {case.caller}"}
        )
        found = reply.raise_for_status().json()
        return len(found.get("items", ())) if isinstance(found, dict) else 0


async def _authenticate(_db: Database, anonymous: Who, credentials: Credentials, _changes: bool) -> Caller:
    assert credentials.bearer is not None
    principal = Principal(credentials.bearer, credentials.bearer, PrincipalType.USER)
    role = Role.ADMIN if credentials.bearer == ADMIN else Role.USER
    return Caller(replace(anonymous, principal=principal, actor_type=ActorType(role)), credentials.bearer, role)


@asynccontextmanager
async def site(url: str) -> AsyncIterator[Site]:
    settings = Settings(secret_key=SecretStr("x" * 43))
    async with (
        await Database.connect(replace(as_app(url), statement_timeout=timedelta(minutes=10))) as db,
        Parts(settings, db, embedded=False, notify=lambda _: None) as parts,
    ):
        services = LocalServices(
            db=db, authenticate=_authenticate, secret=parts.process_secret, stored_secret=parts.stored_secret
        )
        commands = AppByNoun(parts, services)
        inbox = create_inprocess_app(services, [notifications.create_router(Inbox(db))])  # no command reads it

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            by_path = inbox if scope["path"].startswith("/v1/notifications") else commands
            await by_path(scope, receive, send)

        transport = InProcess(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://headrace", timeout=600) as client:
            rows = {name: await db.fetch_alone(sql) for name, sql in SAMPLES.items()}
            yield Site(db, client, {name: found[0][0] for name, found in rows.items()})


@dataclass
class Found:
    """One case in both databases."""

    case: Case
    small_ms: list[float] = field(default_factory=list)
    large_ms: list[float] = field(default_factory=list)
    small: Reads = field(default_factory=Reads)
    large: Reads = field(default_factory=Reads)
    items: tuple[int, int] = (0, 0)

    @property
    def growth(self) -> float:
        return max(p95(self.large_ms), FLOOR_MS) / max(p95(self.small_ms), FLOOR_MS)

    @property
    def median_growth(self) -> float:
        """Of medians, which a busy machine disturbs less."""
        small, large = statistics.median(self.small_ms), statistics.median(self.large_ms)
        return max(large, FLOOR_MS) / max(small, FLOOR_MS)

    @property
    def rows_growth(self) -> float:
        return max(self.large.rows, FLOOR_ROWS) / max(self.small.rows, FLOOR_ROWS)


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[18]


async def ask(small: Site, large: Site, case: Case, calls: int) -> Found:
    """Ask both in turns, so that what disturbs disturbs both."""
    found = Found(case)
    found.items = (await small.get(case), await large.get(case))
    for number in range(calls):
        turns = ((small, found.small_ms), (large, found.large_ms))
        for which, times in reversed(turns) if number % 2 else turns:
            began = time.perf_counter()
            await which.get(case)
            times.append((time.perf_counter() - began) * 1000)
    async with explained() as found.small:
        await small.get(case)
    async with explained() as found.large:
        await large.get(case)
    return found


WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'"


async def fire(site: Site) -> tuple[float, float]:
    """Fire all schedules once and take it back; gives milliseconds and bytes of WAL."""

    class Undone(Exception):
        pass

    async with site.db.transaction() as tx:
        at: datetime = await tx.fetchval("SELECT date_trunc('minute', now())")
    wal = float(await _alone(site, WAL))
    took = 0.0
    try:
        async with site.db.transaction() as tx:
            await tx.execute("UPDATE headrace.scheduled_tasks SET next_run = $1 WHERE type = 'tick'", at)
            began = time.perf_counter()
            fired = await clockwork.fire_due(tx, clockwork.submitter(), clockwork.MisfireConfig(), now=at, limit=1000)
            took = (time.perf_counter() - began) * 1000
            assert fired.executions == SCHEDULES, fired
            raise Undone
    except Undone:
        pass
    return took, float(await _alone(site, WAL)) - wal


async def fire_all(small: Site, large: Site, superuser_url: str, rounds: int) -> dict[str, float]:
    """Fire in turns: right after a checkpoint, when each page that is touched is written whole, and once more."""
    figures: dict[str, list[float]] = {}
    superuser = await asyncpg.connect(superuser_url)
    try:
        for number in range(rounds):
            for name, which in (
                (("small", small), ("large", large)) if number % 2 else (("large", large), ("small", small))
            ):
                await superuser.execute("CHECKPOINT")
                for when in ("_cold", ""):
                    took, written = await fire(which)
                    figures.setdefault(f"fire{when}_{name}_ms", []).append(took)
                    figures.setdefault(f"fire{when}_{name}_wal_kb", []).append(written / 1024)
    finally:
        await superuser.close()
    medians = {name: statistics.median(values) for name, values in figures.items()}
    growth = {
        f"fire{when}{what}_growth": medians[f"fire{when}_large{unit}"] / medians[f"fire{when}_small{unit}"]
        for when in ("_cold", "")
        for what, unit in (("", "_ms"), ("_wal", "_wal_kb"))
    }
    return medians | growth


async def _alone(site: Site, sql: str) -> Any:
    return (await site.db.fetch_alone(sql))[0][0]


async def measure(
    small_url: str, large_url: str, sizes: Sizes, only: str | None
) -> tuple[list[Found], dict[str, float]]:
    found: list[Found] = []
    figures: dict[str, float] = {}
    async with site(small_url) as small, site(large_url) as large:
        for each in (small, large):
            await add_up_days(each.db)  # as the schedule does
        for case in [each for each in cases() if only is None or only in str(each)]:
            found += [await ask(small, large, case, sizes.calls)]
        await clockwork.declare(small.db)
        await clockwork.declare(large.db)
        figures |= await fire_all(small, large, small_url, sizes.fires)
    if found:
        figures["list_growth"] = max(each.growth for each in found)
        figures["list_growth_rows"] = max(each.rows_growth for each in found)
        figures["list_growth_median"] = max(each.median_growth for each in found)
        figures["most_rows"] = max(each.large.rows for each in found)
        figures["most_blocks"] = max(each.large.blocks for each in found)
    return found, figures


def print_cases(found: Sequence[Found]) -> None:
    table = Table("case", "items", "p50 ms", "p95 ms", "ratio", "rows read", "ratio", "blocks")
    for each in sorted(found, key=lambda one: -max(one.growth, one.rows_growth)):
        table.add_row(
            str(each.case),
            f"{each.items[0]} {each.items[1]}",
            f"{statistics.median(each.small_ms):.1f} {statistics.median(each.large_ms):.1f}",
            f"{p95(each.small_ms):.1f} {p95(each.large_ms):.1f}",
            f"{each.growth:.1f}",
            f"{each.small.rows:,} {each.large.rows:,}",
            f"{each.rows_growth:.1f}",
            f"{each.small.blocks:,} {each.large.blocks:,}",
        )
    Console(stderr=True, width=TABLE_WIDTH).print(table)


async def _copy(url: str, name: str) -> str:
    connection = await asyncpg.connect(url.rpartition("/")[0] + "/postgres")
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE headrace")
    finally:
        await connection.close()
    return f"{url.rpartition('/')[0]}/{name}"


async def _load(url: str, rows: int) -> tuple[str, str]:
    """The address of a small database and of a large one."""
    large = await _copy(url, "large")
    await fill(url, SMALL)
    began = time.perf_counter()
    await fill(large, rows)
    console.print(f"{rows:,} tasks loaded in {time.perf_counter() - began:.0f} s", highlight=False)
    return url, large


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=10_000_000, help="tasks of the large database (10,000,000)")
    arguments.add_argument("--quick", action="store_true", help="a million tasks and fewer calls: a few minutes")
    arguments.add_argument("--only", help="cases whose name contains this")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        small, large = asyncio.run(_load(url, 1_000_000 if chosen.quick else chosen.rows))
        sizes = QUICK if chosen.quick else FULL
        found, figures = asyncio.run(measure(small, large, sizes, chosen.only))
    print_cases(found)
    print_targets(figures, TARGETS)
    if chosen.json:
        print_json(figures, digits=1)


if __name__ == "__main__":
    main()
