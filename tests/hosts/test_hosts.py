"""Several hosts: a primary that becomes a black hole, a host that is cut off for longer than its lease, and clocks that
are minutes apart. S-11, S-14, D-08.

A way back of the schema under running workers is in tests/e2e/test_releases.py, which has two releases.
"""

import json
import logging
import os
import pwd
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.e2e.program import CHEAP, SECRET_KEY, environment, eventually
from tests.hosts.network import Host, hosts, why_not
from tests.hosts.postgres import BINARIES, Postgres

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(not BINARIES.exists(), reason="PostgreSQL 15 is not installed: apt-get install postgresql-15"),
]
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
HEADRACE = (sys.executable, "-m", "headrace")
log = logging.getLogger(__name__)  # `pytest --log-cli-level=INFO` shows the times
LEASE_SECONDS = 6
SHOP = """
import socket
import time
from datetime import timedelta

from headrace import BlockingTaskContext, Registry, TaskContext

registry = Registry()


@registry.task("quick")
async def quick(context: TaskContext, payload: dict) -> None: ...


@registry.task("slow", isolation="process", max_attempts=5, grace=timedelta(minutes=5))
def slow(context: BlockingTaskContext, payload: dict) -> None:
    # Deaf to being stopped: only a kill ends it.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect((payload["database"], 9))
        here = line.getsockname()[0]
    until = time.monotonic() + payload["seconds"]
    while time.monotonic() < until:
        with open(payload["journal"], "a") as journal:
            print(time.monotonic(), here, context.task_id, file=journal)
        time.sleep(0.1)
"""


class Site:
    """Programs on hosts, with one database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.journal = folder / "journal"
        (folder / "shop.py").write_text(SHOP)

    def environment(self, host: Host, **more: str) -> dict[str, str]:
        settings = {
            **CHEAP,
            **SECRET_KEY,
            "HEADRACE_DATABASE_URL": self.url,
            "HEADRACE_DATA_DIR": str(self.folder / f"home-{host.namespace}"),
            "HEADRACE_FILES_URL": f"file://{self.folder}/files",
            "HEADRACE_WORKER_LEASE": f"{LEASE_SECONDS}s",
            "HEADRACE_WORKER_PROCESSES": "4",
            "HEADRACE_API_HOST": host.address,
            "HEADRACE_API_PUBLIC_URL": f"http://{host.address}:8080",
            "PYTHONPATH": f"{self.folder}:{ROOT}",
        }
        return environment({**settings, **more})

    def run(self, host: Host, *words: str) -> str:
        return host.run(*HEADRACE, *words, env=self.environment(host))

    def start(self, host: Host, *words: str, **more: str) -> None:
        host.start(*HEADRACE, *words, env=self.environment(host, **more))

    def call(self, host: Host, method: str, path: str, *words: str, limit: float = 5) -> tuple[int, bytes]:
        """A request from this host's own network; 0 for no answer."""
        out = self.folder / "answer"
        command = [
            "curl",
            "-s",
            "-o",
            str(out),
            "-w",
            "%{http_code}",
            "-X",
            method,
            "--max-time",
            str(limit),
            *words,
            path,
        ]
        try:
            return int(host.run(*command)), out.read_bytes()
        except AssertionError:
            return 0, b""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hr") as made:
        postgres = pwd.getpwnam("postgres")
        os.chown(made, postgres.pw_uid, postgres.pw_gid)
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def primary_on(stack: ExitStack, host: Host, folder: Path) -> Postgres:
    server = Postgres(host, folder)
    server.begin()
    stack.callback(server.end)
    return server


def until_ready(site: Site, host: Host, *, within: float = 60) -> bool:
    return eventually(lambda: site.call(host, "GET", f"http://{host.address}:8080/readyz")[0] == 200, within=within)


def token(site: Site, host: Host) -> str:
    password = json.loads(site.run(host, "admin", "create", "root", "--json"))["password"]
    body = json.dumps({"username": "root", "password": password})
    url = f"http://{host.address}:8080/v1/auth/login"
    _, answer = site.call(host, "POST", url, "-H", "Content-Type: application/json", "-d", body)
    return str(json.loads(answer)["token"])


def test_a_failover_completes_though_the_old_primary_is_a_black_hole(folder: Path, stack: ExitStack) -> None:
    """No role came back in 4 minutes, although the promoted replica answered."""
    first, second, app = stack.enter_context(hosts(folder, 3))
    primary = primary_on(stack, first, folder)
    replica = Postgres(second, folder)
    replica.follow(primary)
    stack.callback(replica.end)
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.sql("SELECT pg_reload_conf()")
    site = Site(
        folder, f"postgresql://postgres@{primary.place},{replica.place}/postgres?target_session_attrs=read-write"
    )
    site.run(app, "migrate")
    for role in ("api", "scheduler", "relay"):
        site.start(app, role)
    site.start(app, "worker", "shop:registry")
    assert until_ready(site, app)
    known = token(site, app)

    def submit() -> bool:
        body = json.dumps({"type": "quick", "title": "quick"})
        words = ("-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {known}", "-d", body)
        return site.call(app, "POST", f"http://{app.address}:8080/v1/tasks", *words, limit=30)[0] == 201

    acknowledged = sum(submit() for _ in range(20))
    assert acknowledged == 20
    first.cut_off()
    began = time.monotonic()
    took = replica.promote()
    replica.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
    replica.sql("SELECT pg_reload_conf()")
    assert eventually(submit, within=120)
    log.info("%s", f"promoted after {took:.1f} s, first task taken {time.monotonic() - began:.1f} s after the cut")
    done = "SELECT count(*) FROM headrace.tasks WHERE task_type = 'quick' AND status = 'SUCCEEDED'"
    assert eventually(lambda: int(replica.sql(done)) >= acknowledged + 1, within=120), "the worker did not come back"
    log.info("%s", f"the worker had run it {time.monotonic() - began:.1f} s after the cut")
    first.reconnect()


def test_a_host_that_is_cut_off_stops_its_work_before_others_begin_it(folder: Path, stack: ExitStack) -> None:
    """51 of 58 tasks once ran on two hosts at once, by up to 25.7 s. Tasks that waited for a process kept others
    waiting, and spent an attempt when their host was lost. Its /readyz answered after 4.6 s."""
    database, one, two = stack.enter_context(hosts(folder, 3))
    server = primary_on(stack, database, folder)
    site = Site(folder, f"postgresql://postgres@{server.place}/postgres")
    site.run(one, "migrate")
    site.start(one, "worker", "shop:registry")
    site.start(one, "api")
    assert until_ready(site, one)
    known = "SELECT count(*) FROM headrace.task_types WHERE name = 'slow'"
    assert eventually(lambda: int(server.sql(known)) == 1), one.logs()

    def submit_slow(count: int, seconds: float) -> None:
        payload = {"seconds": seconds, "journal": str(site.journal), "database": database.address}
        server.sql(f"SELECT headrace.submit('slow', '{json.dumps(payload)}') FROM generate_series(1, {count})")

    submit_slow(4, seconds=25)
    started = eventually(lambda: len(running(site, one)) == 4)
    assert started, one.logs() + server.sql("SELECT error_message FROM headrace.tasks WHERE task_type = 'slow'")
    held = running(site, one).keys()
    submit_slow(60, seconds=0)  # more than there are slots of all kinds
    server.sql("SELECT headrace.submit('quick', '{}') FROM generate_series(1, 20)")
    quick = "SELECT count(*) FROM headrace.tasks WHERE task_type = 'quick' AND status = 'SUCCEEDED'"
    assert eventually(lambda: int(server.sql(quick)) == 20, within=20), "what waits for a process keeps others waiting"
    assert running(site, one).keys() == held
    cut = time.monotonic()
    one.cut_off()
    site.start(two, "worker", "shop:registry")
    ready = f"http://{one.address}:8080/readyz"
    assert eventually(lambda: site.call(one, "GET", ready, limit=4)[0] == 503), "it answers too late"
    asked = time.monotonic()
    assert site.call(one, "GET", ready, limit=4)[0] == 503
    log.info("%s", f"/readyz of the cut-off host answers within {time.monotonic() - asked:.2f} s")
    assert eventually(lambda: held <= running(site, two).keys(), within=60 + LEASE_SECONDS)
    last = {task: max(times) for task, times in running(site, one).items()}
    first = {task: min(times) for task, times in running(site, two).items() if task in held}
    overlaps = {task: last[task] - first[task] for task in last}
    log.info(
        "%s", f"ended {max(last.values()) - cut:.1f} s and taken over {min(first.values()) - cut:.1f} s after the cut"
    )
    one.reconnect()
    over = "SELECT count(*) FROM headrace.tasks WHERE task_type = 'slow' AND status = 'SUCCEEDED'"
    assert eventually(lambda: int(server.sql(over)) == 64, within=120)
    assert max(overlaps.values()) < 0, overlaps
    again = "SELECT string_agg(id, ' ') FROM headrace.tasks WHERE task_type = 'slow' AND retries > 0"
    assert set(server.sql(again).split()) == held, "an attempt was spent on a task that had not started"
    last = {task: max(times) for task, times in running(site, one).items() if task in held}
    assert max(last[task] - first[task] for task in held) < 0, "it went on when the host was back"


def running(site: Site, host: Host) -> dict[str, list[float]]:
    """The instants at which each task was seen running there."""
    found: dict[str, list[float]] = {}
    for line in site.journal.read_text().splitlines() if site.journal.exists() else ():
        at, where, task_id = line.split()
        if where == host.address:
            found.setdefault(task_id, []).append(float(at))
    return found


@pytest.mark.skipif(not FAKETIME.exists(), reason="faketime is not installed: apt-get install faketime")
@pytest.mark.parametrize("skew", ["+300s", "-300s"])
def test_links_and_webhooks_of_a_host_whose_clock_is_five_minutes_off(
    folder: Path, stack: ExitStack, skew: str
) -> None:
    """A link of 120 s made on the one was 404 on the other, and a webhook was stamped 300 s off."""
    database, right, wrong = stack.enter_context(hosts(folder, 3))
    server = primary_on(stack, database, folder)
    site = Site(folder, f"postgresql://postgres@{server.place}/postgres")
    site.run(right, "migrate")
    site.start(right, "api")
    fake = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    site.start(wrong, "api", **fake)
    site.start(wrong, "relay", HEADRACE_WEBHOOK_LOCAL_TARGETS="true", **fake)
    assert until_ready(site, right)
    assert until_ready(site, wrong)
    known = token(site, right)
    head = ("-H", f"Authorization: Bearer {known}")
    picture = folder / "picture.png"
    picture.write_bytes(PNG)
    url = f"http://{right.address}:8080/v1/assets?name=picture.png"
    words = ("-H", "Content-Type: application/octet-stream", "--data-binary", f"@{picture}", *head)
    code, answer = site.call(right, "POST", url, *words, limit=60)
    assert code == 201, answer
    asset = json.loads(answer)["id"]
    for maker, reader in ((right, wrong), (wrong, right)):
        path = f"http://{maker.address}:8080/v1/assets/{asset}/links"
        body = ("-H", "Content-Type: application/json", "-d", '{"expires_in": 120}')
        code, answer = site.call(maker, "POST", path, *body, *head)
        assert code in (200, 201), answer
        link = json.loads(answer)["url"].replace(maker.address, reader.address)
        assert site.call(reader, "GET", link) == (200, PNG), f"made on {maker.address}, read on {reader.address}"
    off_by = abs(int(webhook_timestamp(site, server, right, wrong)) - time.time())
    log.info("%s", f"a webhook of the host with {skew} is stamped {off_by:.1f} s off")
    assert off_by < 150, "it has the host's own time"


def webhook_timestamp(site: Site, server: Postgres, commands: Host, relay: Host) -> str:
    """The timestamp of an event that the relay on this host delivers there."""
    seen = site.folder / "timestamp"
    (site.folder / "receiver.py").write_text(RECEIVER)
    relay.start(sys.executable, site.folder / "receiver.py", seen, env=environment())
    words = ("webhooks", "create", "http://127.0.0.1:9000/", "--event", "task.created", "--every-user")
    environ = site.environment(commands, HEADRACE_WEBHOOK_LOCAL_TARGETS="true")
    commands.run(*HEADRACE, *words, env=environ)
    server.sql("SELECT headrace.submit('later', '{}', unknown_type => 'wait')")
    assert eventually(seen.exists), relay.logs()
    return seen.read_text()


RECEIVER = """
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[1] + ".draft", "w") as draft:
            draft.write(self.headers["webhook-timestamp"])
        os.replace(sys.argv[1] + ".draft", sys.argv[1])
        self.send_response(204)
        self.end_headers()


HTTPServer(("127.0.0.1", 9000), Receiver).serve_forever()
"""


def _png() -> bytes:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").save(out, "PNG")
    return out.getvalue()


PNG = _png()
