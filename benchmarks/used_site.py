"""The API, waiting, idle workers and child processes, as a site has them."""

import asyncio
import operator
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

import asyncpg
import httpx2
import orjson

from benchmarks import ours
from benchmarks.files import free_port
from benchmarks.processes import Worker
from benchmarks.report import Run
from benchmarks.scratch import reset
from benchmarks.usage import cpu_seconds, rss_mb, server_pid, tree_cpu_seconds
from benchmarks.used_queues import TASK, clear, drain, settle
from headrace import Headrace
from headrace.tasks.model import TaskSpec

if TYPE_CHECKING:
    from benchmarks.used import Sizes

PASSWORD = "correct horse battery"
BODY = orjson.dumps({"type": TASK, "payload": {"n": 1}})
OFFERED_PER_S = 250


def _environment(url: str, folder: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        **os.environ,
        "HEADRACE_DATABASE_URL": ours.as_app(url).url,
        "HEADRACE_SECRET_KEY": "0" * 64,
        "HEADRACE_DATA_DIR": folder,
        "HEADRACE_LOG_LEVEL": "ERROR",
        **(more or {}),
    }


# -- REST


def _start(command: list[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@asynccontextmanager
async def server(command: list[str], address: str, environment: Mapping[str, str]) -> AsyncIterator[int]:
    process = _start(command, environment)
    try:
        async with httpx2.AsyncClient() as client:
            for _ in range(300):
                try:
                    await client.get(address)
                    break
                except httpx2.TransportError:
                    assert process.poll() is None, f"{command} has ended"
                    await asyncio.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 20)


async def measure_rest(run: "Run[Sizes]") -> None:
    """``POST /v1/tasks`` with a key beside a bare route that inserts one row; the limit of requests is raised."""
    async with Headrace(ours.as_app(run.url).url, ours.registry):
        pass  # declares the types
    postgres_pid = await server_pid(run.url)
    with tempfile.TemporaryDirectory() as folder:
        port, other = free_port(), free_port()
        api = f"http://127.0.0.1:{port}"
        environment = _environment(
            run.url,
            folder,
            {
                "HEADRACE_API_PORT": str(port),
                "HEADRACE_API_RATE_LIMIT": "1000000",
                "HEADRACE_API_RATE_BURST": "1000000",
                "HEADRACE_REGISTRATION": "open",
                "HEADRACE_USER_OPEN_TASKS": "1000000",
            },
        )
        bare = [sys.executable, "-m", "benchmarks.raw_route", run.url, str(other)]
        async with (
            server([sys.executable, "-m", "headrace", "api"], f"{api}/healthz", environment) as api_pid,
            server(bare, f"http://127.0.0.1:{other}/", os.environ) as bare_pid,
        ):
            head = {"Authorization": f"Bearer {await _api_key(api)}"}
            for connections in (1, 8):
                count = run.sizes.requests * (1 if connections == 1 else 2)
                for name, pid, target, headers in (
                    ("headrace", api_pid, (port, "/v1/tasks"), head),
                    ("bare", bare_pid, (other, "/tasks"), {}),
                ):
                    await _post(*target, 30, connections, headers)
                    before = cpu_seconds(pid), tree_cpu_seconds(postgres_pid)
                    rate = count / await _post(*target, count, connections, headers)
                    after = cpu_seconds(pid), tree_cpu_seconds(postgres_pid)
                    run.note(f"rest{connections}-{name}", rate)
                    for side, seconds in zip(("api", "postgres"), map(operator.sub, after, before), strict=True):
                        run.note(f"rest{connections}-{name}-{side}-us", seconds * 1e6 / count)
    await reset(run.url)


async def _api_key(api: str) -> str:
    async with httpx2.AsyncClient(base_url=api) as client:
        person = {"username": f"bench-{time.time_ns()}", "password": PASSWORD}
        (await client.post("/v1/auth/register", json=person)).raise_for_status()
        token = (await client.post("/v1/auth/login", json=person)).json()["token"]
        asked = {"name": "bench", "scopes": ["tasks:write", "tasks:read"]}
        made = await client.post("/v1/api-keys", json=asked, headers={"Authorization": f"Bearer {token}"})
        return str(made.json()["key"])


async def _post(port: int, path: str, count: int, connections: int, headers: Mapping[str, str]) -> float:
    """Seconds for so many requests over these connections. A client of few lines: a library's would take as long as
    the server."""
    left = iter(range(count))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with closing(writer):
            for number in left:
                lines = [f"POST {path} HTTP/1.1", "Host: bench", "Content-Type: application/json"]
                lines += [f"Content-Length: {len(BODY)}", f"Idempotency-Key: k{time.time_ns()}-{number}"]
                lines += [f"{name}: {value}" for name, value in headers.items()]
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + BODY)
                answer = await reader.readuntil(b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 201"), answer
                length = int(answer.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                await reader.readexactly(length)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    return time.perf_counter() - started


# -- waiting


async def measure_waiting(run: "Run[Sizes]") -> None:
    """submit and wait in one program, at a given rate; how long after its end each task is seen."""
    await clear(run.url)
    late: list[float] = []
    with Worker("headrace", run.url) as worker:
        worker.go()
        await asyncio.sleep(1.5)
        async with Headrace(ours.as_app(run.url).url, ours.registry) as headrace, asyncio.TaskGroup() as group:

            async def one(n: int) -> None:
                task = await headrace.wait(await headrace.submit(TASK, {"n": n}))
                assert task.finished_at is not None
                late.append((time.time() - task.finished_at.timestamp()) * 1000)

            started = time.perf_counter()
            for n in range(run.sizes.waited):
                await asyncio.sleep(max(0.0, started + n / OFFERED_PER_S - time.perf_counter()))
                group.create_task(one(n))
    late.sort()
    run.note("wait_p50_ms", statistics.median(late))
    run.note("wait_p99_ms", late[int(len(late) * 0.99)])
    await clear(run.url)


# -- idle workers


async def measure_idle(run: "Run[Sizes]") -> None:
    """``headrace worker`` as ``scripts/setup`` leaves it, with nothing to do."""
    sizes, url = run.sizes, run.url
    server_id = await server_pid(url)
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(url, folder)
        command = [sys.executable, "-m", "headrace", "worker", "benchmarks.ours:registry", "--json"]
        workers = [_start(command, environment) for _ in range(sizes.idle_workers)]
        try:
            connection = await asyncpg.connect(url)
            before = await connection.fetchval(_CONNECTIONS)
            while await connection.fetchval(_PIDS) < sizes.idle_workers:
                assert all(worker.poll() is None for worker in workers), "a worker has ended"
                await asyncio.sleep(0.2)
            await asyncio.sleep(min(15.0, sizes.idle_seconds))
            used = tree_cpu_seconds(server_id) + sum(cpu_seconds(worker.pid) for worker in workers)
            await asyncio.sleep(sizes.idle_seconds)
            used = tree_cpu_seconds(server_id) + sum(cpu_seconds(worker.pid) for worker in workers) - used
            run.note("idle_cpu", used * 60 / sizes.idle_seconds)
            run.note("idle_connections", await connection.fetchval(_CONNECTIONS) - before)
            run.note("idle_rss_mb", statistics.median(rss_mb(worker.pid) for worker in workers))
            await connection.close()
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                await asyncio.to_thread(worker.wait, 60)


_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_PIDS = "SELECT count(DISTINCT pid) FROM headrace.workers WHERE ended_at IS NULL"


# -- child processes


async def measure_isolated(run: "Run[Sizes]") -> None:
    count, url = run.sizes.isolated, run.url
    await clear(url)
    async with Headrace(ours.as_app(url).url, ours.registry) as headrace:
        await headrace.submit_many([TaskSpec("noop.isolated", {"n": n}) for n in range(count)])
    await settle(url)
    run.note("iso_per_s", (await drain(url, "headrace", count)).rate)
    await clear(url)
