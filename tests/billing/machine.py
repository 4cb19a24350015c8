"""Everything that can be done to a quota, in any order and several at a time, against the database and a plain model.

After each step the balance is rebuilt from the ledger's rows alone, and compared with the entitlements and the model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.assembly.followers import followers
from headrace.audit import Who
from headrace.billing import adjusting
from headrace.billing.errors import QuotaTooSmall
from headrace.billing.verifying import verify
from headrace.database import Database
from headrace.errors import QuotaExhausted
from headrace.tasks import service
from headrace.tasks.catalog import RegistryCatalog, declare_types
from headrace.tasks.errors import LeaseLost, UnitsRefused
from headrace.tasks.model import Claimed, Ending, Outcome, TaskSpec
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.claiming import Claimer, Room
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.endings import Writer
from headrace.tasks.worker.feeding import _claimed
from headrace.tasks.worker.reporting import LeaseReporter
from headrace.tasks.worker.store import Identity
from tests.billing import stand
from tests.edge.stand import user
from tests.open_types import OpenRegistry
from tests.tasks import sql
from tests.tasks.people import caller_of, enter

Run = Callable[[Awaitable[Any]], Any]
FAR = timedelta(hours=1)
# What is drawn must not depend on how a race came out: a number, and which of those that are there it means.
PICKS = st.integers(0, 10**6)
T = TypeVar("T")


def _picked(among: Sequence[T], pick: int) -> T | None:
    return among[pick % len(among)] if among else None


async def nothing(context: object, payload: object) -> None: ...


class Shop:
    """The real thing, on a database of its own."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.registry = OpenRegistry()
        self.registry.task("render", units="payload.units", events=False)(nothing)
        self.followers = followers()
        self.catalog = RegistryCatalog(self.registry)
        self.submitter = Submitter(self.catalog, self.followers)
        self.tasks = Tasks(self.submitter, self.catalog, self.followers)
        self.writer = Writer(db, self.registry, self.followers)
        self.worker: Identity

    async def prepare(self) -> None:
        async with self.db.transaction() as tx:
            await declare_types(tx, self.registry)
            self.worker = await enter(tx, self.registry.names, lease=FAR)
        self.reporter = LeaseReporter(self.db, self.worker, self.registry, self.followers, self.writer, WorkerConfig())

    async def submit(self, user_id: str, units: list[int]) -> list[str] | None:
        try:
            async with self.db.transaction() as tx:
                specs = [TaskSpec("render", {"units": each}) for each in units]
                return await self.submitter.submit_many(tx, specs, user_id=user_id)
        except QuotaExhausted:
            return None

    async def submit_in_sql(self, user_id: str, units: int) -> list[str] | None:
        try:
            return [await sql.submit(self.db, "render", {"units": units}, user_id=user_id)]
        except Exception as exc:
            if getattr(exc, "sqlstate", None) == "HR006":
                return None
            raise

    async def claim(self) -> list[Claimed]:
        claimer = Claimer(self.db, queues=None, types={"async": self.registry.names}, labels={})
        return [_claimed(row) for row in await claimer.claim(self.worker, {"async": Room(100, 100)})]

    async def retry(self, user_id: str, task_id: str) -> bool:
        try:
            async with self.db.transaction() as tx:
                await service.retry_task(tx, self.tasks, caller_of(user_id), task_id)
        except QuotaExhausted:
            return False
        return True

    async def cancel(self, user_id: str, task_id: str) -> None:
        async with self.db.transaction() as tx:
            await service.cancel_task(tx, self.tasks, caller_of(user_id), task_id)

    async def adjust(self, entitlement: str, units: int, key: str) -> bool:
        try:
            async with self.db.transaction() as tx:
                await adjusting.adjust(tx, Who.system(), entitlement, units, reason="a test", key=key)
        except QuotaTooSmall:
            return False
        return True


@dataclass
class Quota:
    total: int
    left: int
    spendable: bool = True


@dataclass
class Task:
    units: int
    parts: dict[str, int] = field(default_factory=dict)  # open holds, what is spent first at the front
    claim: Claimed | None = None
    used: int | None = None
    over: str | None = None


BALANCES = """
SELECT entitlement.id, quota_total, quota_left, (
  SELECT coalesce(sum(CASE WHEN status = 'COMMITTED' AND hold_id IS NULL AND direction = 'CREDIT' THEN consume_unit
                           WHEN status = 'COMMITTED' AND hold_id IS NULL THEN -consume_unit
                           WHEN status = 'HELD' THEN -consume_unit
                           WHEN status = 'RELEASED' THEN consume_unit
                           ELSE 0 END), 0)
  FROM headrace.usage_ledger AS entry WHERE entry.entitlement_id = entitlement.id
) AS rebuilt
FROM headrace.entitlements AS entitlement
WHERE user_id = $1
"""
OPEN_PARTS = """
SELECT held.task_id, held.entitlement_id, held.consume_unit
FROM headrace.usage_ledger AS held
JOIN headrace.entitlements AS entitlement ON entitlement.id = held.entitlement_id
WHERE held.user_id = $1 AND held.status = 'HELD'
  AND NOT EXISTS (SELECT FROM headrace.usage_ledger AS settled WHERE settled.hold_id = held.id)
ORDER BY held.task_id, entitlement.period_end, entitlement.id
"""


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self, run: Run, shop: Shop) -> None:
        super().__init__()
        self.run, self.shop = run, shop
        self.user: str = run(_new_user(shop.db))
        self.quotas: dict[str, Quota] = {}  # in the order in which they are spent
        self.tasks: dict[str, Task] = {}
        self.claims: list[Claimed] = []  # never forgotten: any of them may be used by a late worker
        self.keys: dict[str, tuple[str, int]] = {}

    # -- the model

    @property
    def left(self) -> int:
        return sum(quota.left for quota in self.quotas.values() if quota.spendable)

    def _hold(self, task: Task) -> None:
        wanted, task.parts = task.units, {}
        for name, quota in self.quotas.items():
            if quota.spendable and quota.left and wanted:
                part = min(quota.left, wanted)
                quota.left, wanted, task.parts[name] = quota.left - part, wanted - part, part
        assert wanted == 0

    def _settle(self, task: Task, ending: str) -> None:
        used = 0 if ending != "SUCCEEDED" else task.units if task.used is None else task.used
        for name, part in task.parts.items():
            charged = min(used, part)
            used -= charged
            self.quotas[name].left += part - charged
        task.parts, task.over, task.claim, task.used = {}, ending, None, None

    def _made(self, ids: list[str] | None, units: list[int]) -> None:
        assert (ids is not None) == (sum(units) <= self.left), (units, self.left)
        for task_id, each in zip(ids or (), units, strict=False):
            task = self.tasks[task_id] = Task(each)
            self._hold(task)

    # -- what can be done

    @rule(units=st.integers(1, 12))
    def grant(self, units: int) -> None:
        # Those that come later end later: the model spends them in this order.
        ends = timedelta(days=1 + len(self.quotas))
        self.quotas[self.run(stand.grant_alone(self.shop.db, self.user, units, ends_in=ends))] = Quota(units, units)

    @rule(units=st.lists(st.integers(1, 5), min_size=1, max_size=4))
    def submit(self, units: list[int]) -> None:
        self._made(self.run(self.shop.submit(self.user, units)), units)

    @rule(units=st.integers(1, 5))
    def submit_in_sql(self, units: int) -> None:
        self._made(self.run(self.shop.submit_in_sql(self.user, units)), [units])

    @rule(units=st.lists(st.integers(1, 4), min_size=2, max_size=5), in_sql=st.booleans())
    def submit_at_once(self, units: list[int], in_sql: bool) -> None:
        """Several clients race: in some order each got what was left for it."""

        async def race() -> list[list[str] | None]:
            way = self.shop.submit_in_sql if in_sql else lambda who, each: self.shop.submit(who, [each])
            return await asyncio.gather(*(way(self.user, each) for each in units))

        before, found = self.left, self.run(race())
        spent = sum(each for each, ids in zip(units, found, strict=True) if ids)
        assert spent <= before
        for each, ids in zip(units, found, strict=True):
            assert ids or each > before - spent, "refused, though it was left in whatever order they came"
        for each, ids in zip(units, found, strict=True):
            if ids:
                self.tasks[ids[0]] = Task(each)
        for quota in self.quotas.values():  # who got which part is the database's to say
            if quota.spendable:
                part = min(quota.left, spent)
                quota.left, spent = quota.left - part, spent - part
        self._learn_parts()

    def _learn_parts(self) -> None:
        for task in self.tasks.values():
            task.parts = {}
        for row in self.run(self.shop.db.fetch_alone(OPEN_PARTS, self.user)):
            self.tasks[row["task_id"]].parts[row["entitlement_id"]] = row["consume_unit"]

    @rule()
    def claim(self) -> None:
        for claim in self.run(self.shop.claim()):
            if claim.task_id in self.tasks:
                self.tasks[claim.task_id].claim = claim
                self.claims.append(claim)

    @rule(pick=PICKS, units=st.integers(0, 4))
    def use(self, pick: int, units: int) -> None:
        if (claim := _picked(self.claims, pick)) is None:
            return
        task = self.tasks[claim.task_id]
        if task.claim is not claim or units > task.units:
            with pytest.raises((LeaseLost, UnitsRefused)):
                self.run(self.shop.reporter.used(claim, units))
        else:
            self.run(self.shop.reporter.used(claim, units))
            task.used = units

    @rule(pick=PICKS, outcome=st.sampled_from([Outcome.SUCCEEDED, Outcome.FAILED, Outcome.RETRIED]))
    def end(self, pick: int, outcome: Outcome) -> None:
        """The end of an attempt, perhaps by a worker that lost it, and perhaps twice at once."""
        if (claim := _picked(self.claims, pick)) is None:
            return
        task = self.tasks[claim.task_id]

        async def twice() -> list[int]:
            endings = [[Ending(claim, outcome)] for _ in range(2)]
            written = [self.shop.writer.write(self.shop.worker, each) for each in endings]
            return [each for each in await asyncio.gather(*written, return_exceptions=True) if isinstance(each, int)]

        written = sum(self.run(twice()))
        assert written == (1 if task.claim is claim else 0)
        if task.claim is claim and outcome is Outcome.RETRIED:
            task.claim = task.used = None
        elif task.claim is claim:
            self._settle(task, outcome.value)

    def _some(self, pick: int, *, over: bool) -> str | None:
        fit = [
            name
            for name, task in self.tasks.items()
            if (task.over in ("FAILED", "CANCELED") if over else task.over is None and task.claim is None)
        ]
        return _picked(fit, pick)

    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        if (name := self._some(pick, over=False)) is not None:
            self.run(self.shop.cancel(self.user, name))
            self._settle(self.tasks[name], "CANCELED")

    @rule(pick=PICKS)
    def retry(self, pick: int) -> None:
        if (name := self._some(pick, over=True)) is not None:
            task = self.tasks[name]
            assert self.run(self.shop.retry(self.user, name)) == (task.units <= self.left)
            if task.units <= self.left:
                task.over = None
                self._hold(task)

    @rule(pick=PICKS, units=st.sampled_from([-6, -3, -2, -1, 1, 2, 3, 6]), key=st.sampled_from("abcdefgh"))
    def adjust(self, pick: int, units: int, key: str) -> None:
        if key in self.keys:  # sent again: it changes nothing
            before, units = self.keys[key]
            assert self.run(self.shop.adjust(before, units, key))
            return
        if (name := _picked(list(self.quotas), pick)) is None:
            return
        quota = self.quotas[name]
        assert self.run(self.shop.adjust(name, units, key)) == (quota.left + units >= 0)
        if quota.left + units >= 0:
            quota.left, quota.total, self.keys[key] = quota.left + units, quota.total + units, (name, units)

    @rule(pick=PICKS)
    def expire(self, pick: int) -> None:
        if (name := _picked(list(self.quotas), pick)) is None:
            return
        self.quotas[name].spendable = False
        self.run(self.shop.db.fetch_alone("UPDATE headrace.entitlements SET status = 'EXPIRED' WHERE id = $1", name))

    # -- what is true after each of them

    @invariant()
    def the_ledger_alone_explains_every_balance(self) -> None:
        for row in self.run(self.shop.db.fetch_alone(BALANCES, self.user)):
            quota = self.quotas[row["id"]]
            assert 0 <= row["quota_left"] <= row["quota_total"]
            assert (row["quota_total"], row["quota_left"]) == (quota.total, quota.left), row["id"]
            assert row["rebuilt"] == row["quota_left"]

    def teardown(self) -> None:
        found = self.run(verify(self.shop.db, Who.system()))
        assert found.is_clean, found.faults


async def _new_user(db: Database) -> str:
    return await user(db, f"u{id(object())}{asyncio.get_running_loop().time()}".replace(".", ""))
