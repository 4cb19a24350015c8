"""What well-behaved clients notice of thousands of slow ones. See README.md.

``python -m benchmarks.slow_clients`` measures; with ``--attack`` it is the attacker, in a process of its own, so that
its work does not get into what the others measure.
"""

import argparse
import asyncio
import errno
import heapq
import json
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil
import uvloop

from benchmarks.ours import as_app
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import scratch_server

CLIENTS = 50
PACE_S = 1.0
FRESH_EVERY = 5  # every so many requests a client opens a new connection: whoever is kept out there is seen
DRIP_S = 5.0
SECRET = "a secret of the benchmarks, long enough"
HEADRACE = (sys.executable, "-m", "headrace")

TARGETS: Targets = {
    "many_p99": ("p99 beside slow clients of 50 addresses, against without", -3),
    "one_p99": ("p99 beside slow clients of one address, against without", -3),
    "served": ("share of the well-behaved clients' requests that were answered well", 1),
}


@dataclass(frozen=True)
class Sizes:
    rounds: int
    sockets: int
    seconds: float


FULL = Sizes(3, 5_000, 20)
QUICK = Sizes(1, 2_000, 5)


# -- the attacker: as slow as it can be, and back as soon as it notices that it was thrown out

KINDS = (
    (b"", b""),  # says nothing at all
    (b"GET /readyz HT", b""),
    (b"GET /readyz HTTP/1.1\r\nHost: t\r\n", b"X: y\r\n"),
    (b"POST /v1/auth/login HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n{", b" "),
)


class Attack:
    def __init__(self, port: int, sockets: int, addresses: int) -> None:
        self._port, self._addresses = port, addresses
        self._selector = selectors.DefaultSelector()
        # (when to say or open something, which one)
        self._due = [(time.monotonic() + 4 * n / sockets, n) for n in range(sockets)]
        self._sockets: dict[int, socket.socket] = {}
        self.counted: Counter[str] = Counter()

    def run(self) -> None:
        """Until standard input is closed."""
        self._selector.register(sys.stdin, selectors.EVENT_READ, -1)
        while True:
            for key, _ in self._selector.select(max(0.0, self._due[0][0] - time.monotonic())):
                if key.data == -1:
                    print(json.dumps({**self.counted, "open": len(self._sockets)}), flush=True)
                    return
                self._hear(key.data)
            while self._due[0][0] <= time.monotonic():
                _, number = heapq.heappop(self._due)
                self._act(number)
                heapq.heappush(self._due, (time.monotonic() + DRIP_S, number))

    def _hear(self, number: int) -> None:
        try:
            data = self._sockets[number].recv(4096)
        except OSError:
            data = b""
        if data:
            self.counted[f"answered {data[9:12].decode()}"] += 1
        else:
            self.counted["closed"] += 1
            self._close(number)

    def _act(self, number: int) -> None:
        opening, drip = KINDS[number % len(KINDS)]
        try:
            if number in self._sockets:
                self._sockets[number].send(drip)
                return
            self.counted["opened"] += 1
            made = socket.socket()
            made.bind((f"127.0.1.{number % self._addresses + 1}", 0))
            made.connect(("127.0.0.1", self._port))
            made.setblocking(False)
            self._sockets[number] = made
            self._selector.register(made, selectors.EVENT_READ, number)
            made.send(opening)
        except OSError as exc:
            self.counted[errno.errorcode.get(exc.errno or 0, "error")] += 1
            if number in self._sockets:
                self._close(number)

    def _close(self, number: int) -> None:
        gone = self._sockets.pop(number)
        self._selector.unregister(gone)
        gone.close()


@contextmanager
def attacked(port: int, sockets: int, addresses: int) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.slow_clients", "--attack", str(port), str(sockets), str(addresses)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
        time.sleep(6)  # until all of them are there
        yield
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        attacker.stdin.close()
        console.print(f"  the attacker: {attacker.stdout.read().strip()}", highlight=False)


# -- the well-behaved


@dataclass
class Seen:
    times: list[float]
    failed: Counter[str]


async def behave(port: int, token: str, seconds: float) -> Seen:
    seen = Seen([], Counter())
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(_one(port, token, number, until, seen))
    return seen


async def _one(port: int, token: str, number: int, until: float, seen: Seen) -> None:
    await asyncio.sleep(PACE_S * number / CLIENTS)
    request = f"GET /v1/me HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    count = number  # so that not all of them open a new one at the same time
    while time.monotonic() < until:
        started = time.perf_counter()
        count += 1
        try:
            if connection is None or count % FRESH_EVERY == 0:
                if connection is not None:
                    connection[1].close()
                connection = await asyncio.open_connection("127.0.0.1", port)
            status = await asyncio.wait_for(_ask(*connection, request), 30)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as exc:
            status, connection = type(exc).__name__, None
        seen.times.append(time.perf_counter() - started)
        if status != "200":
            seen.failed[status] += 1
        await asyncio.sleep(max(0.0, PACE_S - (time.perf_counter() - started)))
    if connection is not None:
        connection[1].close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> str:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
    await reader.readexactly(length)
    if b"connection: close" in head.lower():
        writer.close()
    return head[9:12].decode()


# -- the server between them


@dataclass(frozen=True)
class Api:
    port: int
    token: str
    process: psutil.Process

    @property
    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system


@contextmanager
def api(url: str) -> Iterator[Api]:
    """A `headrace api` with a session."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    environment = os.environ | {
        "HEADRACE_DATABASE_URL": as_app(url).url,
        "HEADRACE_SECRET_KEY": SECRET,
        "HEADRACE_API_PORT": str(port),
        "HEADRACE_API_RATE_LIMIT": "1000000",
        "HEADRACE_API_RATE_BURST": "1000000",
        "HEADRACE_LOG_LEVEL": "WARNING",
    }
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder, Path(folder, "log").open("w") as log:
        made = subprocess.run(
            [*HEADRACE, "admin", "create", "bench", "--json"],
            env=environment,
            cwd=folder,
            capture_output=True,
            check=True,
        )
        password = json.loads(made.stdout)["password"]
        process = subprocess.Popen([*HEADRACE, "api"], env=environment, cwd=folder, stderr=log)
        try:
            yield Api(port, _log_in(f"http://127.0.0.1:{port}", password), psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait(30)


def _log_in(base: str, password: str) -> str:
    for _ in range(300):
        try:
            if httpx2.get(f"{base}/readyz").is_success:
                break
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
    reply = httpx2.post(f"{base}/v1/auth/login", json={"username": "bench", "password": password}, timeout=30)
    return str(reply.raise_for_status().json()["token"])


def measure(run: Run[Sizes], name: str, server: Api) -> tuple[int, int]:
    """How many requests there were, and how many of them failed."""
    before = server.cpu_s
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seen = runner.run(behave(server.port, server.token, run.sizes.seconds))
    times = statistics.quantiles((each * 1000 for each in seen.times), n=100)
    run.note(f"{name}-p50", times[49])
    run.note(f"{name}-p99", times[98])
    # What the machine does besides is not in this one.
    run.note(f"{name}-cpu-per-request", 1000 * (server.cpu_s - before) / len(seen.times))
    failed = seen.failed.total()
    if failed:
        console.print(f"  of {len(seen.times)} requests {failed} failed: {dict(seen.failed)}", highlight=False)
    return len(seen.times), failed


def rounds(run: Run[Sizes], server: Api) -> float:
    """Each case beside a quiet one of its own, so that a bad minute hits both; gives the share that was served."""
    measure(run, "warm-up", server)
    run.figures.clear()
    counts = []
    for number in range(run.sizes.rounds):
        console.print(f"round {number + 1} of {run.sizes.rounds}")
        for name, addresses in (("many", 50), ("one", 1)):
            counts.append(measure(run, f"quiet-{name}", server))
            with attacked(server.port, run.sizes.sockets, addresses):
                counts.append(measure(run, name, server))
            time.sleep(1)
    return 1 - sum(failed for _, failed in counts) / sum(asked for asked, _ in counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sockets, one round")
    parser.add_argument("--json", action="store_true", help="print one flat object last")
    parser.add_argument("--attack", nargs=3, type=int, metavar=("PORT", "SOCKETS", "ADDRESSES"), help="be the attacker")
    chosen = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if chosen.attack:
        Attack(*chosen.attack).run()
        return
    with scratch_server() as url, api(url) as server:
        run = Run(url, QUICK if chosen.quick else FULL, digits=1)
        served = rounds(run, server)
    print_rounds(run, title="milliseconds", digits=1)
    figures = {
        "many_p99": run.paired("many-p99", "quiet-many-p99"),
        "one_p99": run.paired("one-p99", "quiet-one-p99"),
        "served": served,
    }
    print_targets(figures, TARGETS)
    if chosen.json:
        print_json(figures, medians=run.medians(), digits=1)


if __name__ == "__main__":
    main()
