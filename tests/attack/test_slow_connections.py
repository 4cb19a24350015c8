"""Slow and half-open connections against the real program: they are closed, and nobody else is kept out by them."""

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.program import CHEAP, HEADRACE, SECRET_KEY, Program, eventually

pytestmark = pytest.mark.long

SMALL = {
    "HEADRACE_API_HEAD_TIMEOUT": "2s",
    "HEADRACE_API_KEEP_ALIVE_TIMEOUT": "2s",
    "HEADRACE_API_MAX_CONNECTIONS": "64",
    "HEADRACE_API_MAX_CONNECTIONS_PER_ADDRESS": "16",
    "HEADRACE_API_MAX_REQUESTS": "24",
}
KINDS = (
    b"",
    b"GET /readyz HT",
    b"GET /readyz HTTP/1.1\r\nHost: t\r\nX: y\r\n",
    b"POST /v1/auth/login HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n{",
    b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n",
)

Start = Callable[..., Program]


@pytest.fixture
def start_api(database_url: str, tmp_path: Path) -> Iterator[Start]:
    started: list[Program] = []

    def start(*, files: int | None = None, **changes: str) -> Program:
        settings = {**CHEAP, **SECRET_KEY, **SMALL, "HEADRACE_DATABASE_URL": database_url, **changes}
        limited = ("bash", "-c", f'ulimit -n {files}; exec "$0" "$@"', *HEADRACE)
        command = HEADRACE if files is None else limited
        started.append(Program("api", folder=tmp_path, settings=settings, command=command))
        started[-1].until_ready()
        return started[-1]

    yield start
    for program in started:
        program.close()


@pytest.fixture
def opened() -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    yield sockets
    for each in sockets:
        each.close()


def connect(api: Program, *, source: str) -> socket.socket:
    made = socket.socket()
    made.settimeout(30)
    made.bind((source, 0))
    made.connect(("127.0.0.1", httpx2.URL(api.url()).port))
    return made


def attack(api: Program, opened: list[socket.socket], number: int, *, addresses: int) -> None:
    for n in range(number):
        opened.append(connect(api, source=f"127.0.1.{n % addresses + 1}"))
        opened[-1].sendall(KINDS[n % len(KINDS)])


def let_in(api: Program) -> int:
    port = httpx2.URL(api.url()).port
    return sum(
        each.laddr.port == port and each.status == "ESTABLISHED" for each in api.process_info.net_connections("tcp4")
    )


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def served(api: Program, path: str = "/readyz") -> int:
    """What somebody new is answered."""
    return httpx2.get(api.url() + path, timeout=30).status_code


@pytest.mark.parametrize("addresses", [pytest.param(1, marks=pytest.mark.slow), 40])
def test_slow_clients_are_closed_and_keep_nobody_out(
    start_api: Start, opened: list[socket.socket], addresses: int
) -> None:
    api = start_api()
    for _ in range(6):
        attack(api, opened, 50, addresses=addresses)
        assert served(api, "/readyz") == 200
        assert served(api, "/healthz") == 200
        # Slow bodies are requests under way: the first of them must have waited a second before it makes way.
        assert eventually(lambda: served(api, "/v1/me") == 401, within=30)
    # Bodies have half a minute; everybody else is out much sooner, and most are out for want of room.
    slow = [each for n, each in enumerate(opened) if n % len(KINDS) != 3]
    assert eventually(lambda: all(map(is_closed, slow)), within=60)
    figures = httpx2.get(api.url() + "/metrics", timeout=30).text
    assert 'headrace_http_connections{phase="head"} 0.0' in figures
    assert 'headrace_http_connections_closed_total{reason="made_room"}' in figures
    assert api.stop() == 0


@pytest.mark.slow
def test_with_few_descriptors_it_is_the_same(start_api: Start, opened: list[socket.socket]) -> None:
    api = start_api(files=128, HEADRACE_API_MAX_CONNECTIONS="10000", HEADRACE_API_MAX_CONNECTIONS_PER_ADDRESS="1000")
    for _ in range(4):
        attack(api, opened, 100, addresses=40)
        assert served(api) == 200
    assert api.process_info.num_fds() < 128
    spent = sum(api.process_info.cpu_times()[:2])
    time.sleep(1)
    assert sum(api.process_info.cpu_times()[:2]) - spent < 0.7  # it waits, and does not turn round in a circle
    assert "Too many open files" not in api.err


def test_the_soft_limit_is_raised_as_far_as_is_needed_and_allowed() -> None:
    script = """
import resource
from headrace.assembly.serving import allow_descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))
for number in (50, 200, 1000):
    print(allow_descriptors(number), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:3] == ["50 100 300", "200 200 300", "300 300 300"]


def test_out_of_descriptors_it_closes_quiet_connections_and_goes_on(
    start_api: Start, opened: list[socket.socket]
) -> None:
    patient = {"HEADRACE_API_HEAD_TIMEOUT": "1h", "HEADRACE_API_KEEP_ALIVE_TIMEOUT": "1h"}
    api = start_api(HEADRACE_API_MAX_CONNECTIONS_PER_ADDRESS="64", **patient)
    kept = connect(api, source="127.0.0.1")
    opened.append(kept)
    for _ in range(40):
        opened.append(connect(api, source="127.0.1.1"))
        opened[-1].sendall(b"GET /readyz HT")
    assert eventually(lambda: let_in(api) >= len(opened), within=60)
    # As if something else in the process had taken all that were left.
    before = api.process_info.rlimit(resource.RLIMIT_NOFILE)
    api.process_info.rlimit(resource.RLIMIT_NOFILE, (api.process_info.num_fds(), before[1]))

    def lets_somebody_in() -> bool:
        try:
            return served(api) == 200
        except httpx2.TransportError:
            return False

    assert eventually(lets_somebody_in, within=60)
    assert eventually(lambda: any(map(is_closed, opened)), within=60)
    assert api.running
    api.process_info.rlimit(resource.RLIMIT_NOFILE, before)
    assert served(api) == 200
