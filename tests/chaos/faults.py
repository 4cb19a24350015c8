"""What is done to the site. The whole plan is drawn from the seed before anything runs, to be done again."""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.chaos.site import LEASE, Ambush, Site

Act = Callable[[Site, random.Random], Awaitable[str]]
FAULTS: dict[str, tuple[float, Act]] = {}


def fault(name: str, weight: float) -> Callable[[Act], Act]:
    def note(act: Act) -> Act:
        FAULTS[name] = (weight, act)
        return act

    return note


@dataclass(frozen=True, slots=True)
class Planned:
    at: float
    name: str
    seed: int


def plan(seed: int, seconds: float) -> list[Planned]:
    """Faults one after the other, a few seconds apart, until the time is over. Each has a seed of its own."""
    choice, at, planned = random.Random(seed), 5.0, list[Planned]()
    names, weights = list(FAULTS), [weight for weight, _ in FAULTS.values()]
    while at < seconds:
        planned.append(Planned(at, choice.choices(names, weights)[0], choice.randrange(2**32)))
        at += choice.uniform(0.5, 4.5)
    return planned


async def do(site: Site, planned: Planned) -> str:
    """Do it; gives what was done in words."""
    return await FAULTS[planned.name][1](site, random.Random(planned.seed))


def _kill(role_name: str) -> Act:
    async def act(site: Site, choice: random.Random) -> str:
        role = choice.choice(site.each(role_name))
        if not role.awake:
            return "nobody there"
        victim = choice.choice(role.awake)
        await asyncio.to_thread(role.kill, victim)
        return f"process {victim.process.pid}"

    return act


def _freeze(role_name: str) -> Act:
    async def act(site: Site, choice: random.Random) -> str:
        role, seconds = choice.choice(site.each(role_name)), choice.uniform(0.2, 2.5 * LEASE)
        if not role.awake:
            return "nobody there"
        role.freeze(choice.choice(role.awake), seconds)
        return f"for {seconds:.1f} s"

    return act


for _name, _weight in (("worker", 4.0), ("api", 1.5), ("scheduler", 1.5), ("relay", 1.5), ("media", 1.0)):
    fault(f"kill {_name}", _weight)(_kill(_name))
    fault(f"freeze {_name}", _weight / 2)(_freeze(_name))


@fault("kill a media child", 2)
async def kill_media_child(site: Site, choice: random.Random) -> str:
    """Of a worker for removal: the process that has the file."""
    role = choice.choice(site.each("media"))
    children = [child for program in role.awake for child in program.process_info.children(recursive=True)]
    if not children:
        return "nobody there"
    victim = choice.choice(children)
    victim.kill()
    return f"process {victim.pid}"


STEPS = (
    *("upload in one request", "upload: begin", "upload: part", "upload: complete", "upload: complete"),
    *("order", "notice", "refund", "order a removal"),
)


@fault("kill api at a step", 4)
async def kill_api_at_step(site: Site, choice: random.Random) -> str:
    """The API that serves an upload, a payment or an order, in the middle of it."""
    if site.ambush is not None:
        return "nobody there"
    site.ambush = ambush = Ambush(choice.choice(STEPS), choice.choice([0.0, 0.005, 0.02, 0.06]))
    try:
        for _ in range(800):
            if ambush.victim is not None:
                break
            await asyncio.sleep(0.01)
    finally:
        site.ambush = None
    if ambush.victim is None:
        return f"nothing was sent: {ambush.step}"
    await asyncio.sleep(ambush.delay)
    for role in site.each("api"):
        if ambush.victim in role.programs:
            await asyncio.to_thread(role.kill, ambush.victim)
    return f"{ambush.step}, process {ambush.victim.process.pid}"


def _stop_postgres(how: signal.Signals) -> Act:
    async def act(site: Site, choice: random.Random) -> str:
        await asyncio.to_thread(site.mortal.kill, how)
        return how.name

    return act


fault("restart postgres fast", 0.5)(_stop_postgres(signal.SIGINT))
fault("restart postgres at once", 0.5)(_stop_postgres(signal.SIGQUIT))
fault("kill postgres", 0.5)(_stop_postgres(signal.SIGKILL))

TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE usename = 'headrace_app' AND pid <> pg_backend_pid() AND {which}
"""


@fault("cut connections", 3)
async def cut_connections(site: Site, choice: random.Random) -> str:
    await site.mortal.run(TERMINATE.format(which=f"random() < {choice.uniform(0.1, 1):.2f}"))
    return "by the server"


@fault("cut transactions", 3)
async def cut_transactions(site: Site, choice: random.Random) -> str:
    for _ in range(choice.randrange(5, 30)):
        await site.mortal.run(TERMINATE.format(which="xact_start IS NOT NULL"))
        await asyncio.sleep(0.05)
    return "while they are open"


@fault("cut commits", 3)
async def cut_commits(site: Site, choice: random.Random) -> str:
    """Commits take a while, and those that do are cut off in it: half of them before they count, half behind."""
    await site.mortal.run(f"UPDATE books.switches SET share = {choice.uniform(0.02, 0.3):.2f}, seconds = 0.2")
    for _ in range(choice.randrange(5, 20)):
        await asyncio.sleep(0.15)
        await site.mortal.run(TERMINATE.format(which="wait_event = 'PgSleep'"))
    await site.mortal.run("UPDATE books.switches SET share = 0")
    return "in the middle of COMMIT"


@fault("slow commits", 1)
async def slow_commits(site: Site, choice: random.Random) -> str:
    seconds = choice.uniform(1, 6)
    await site.mortal.run(f"UPDATE books.switches SET share = {choice.uniform(0.01, 0.1):.2f}, seconds = 0.3")
    await asyncio.sleep(seconds)
    await site.mortal.run("UPDATE books.switches SET share = 0")
    return f"for {seconds:.1f} s"


@fault("cut line", 2)
async def cut_line(site: Site, choice: random.Random) -> str:
    return f"{site.line.cut()} connections"


@fault("dead line", 1)
async def dead_line(site: Site, choice: random.Random) -> str:
    """Half open: nothing arrives, and nobody is told."""
    seconds = choice.uniform(0.5, 4 * LEASE)
    site.line.dead = True
    await asyncio.sleep(seconds)
    site.line.dead = False
    return f"for {seconds:.1f} s"


@fault("slow line", 1)
async def slow_line(site: Site, choice: random.Random) -> str:
    seconds, site.line.delay = choice.uniform(1, 8), choice.uniform(0.02, 0.3)
    await asyncio.sleep(seconds)
    site.line.delay = 0.0
    return f"for {seconds:.1f} s"


@fault("disk full", 0.5)
async def disk_full(site: Site, choice: random.Random) -> str:
    if site.disk is None:
        return "skipped: no file system of its own could be mounted (root may)"
    seconds = choice.uniform(1, 5)
    await asyncio.to_thread(_fill, str(site.disk / "ballast"))
    await asyncio.sleep(seconds)
    (site.disk / "ballast").unlink(missing_ok=True)
    return f"for {seconds:.1f} s"


def _fill(path: str) -> None:
    """Take all the room that is left."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(file, bytes(1 << 20)):
            pass
    except OSError:
        pass
    finally:
        os.close(file)
