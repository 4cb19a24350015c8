"""The examples run as they stand in the README."""

import asyncio
import subprocess
import sys
from pathlib import Path

from headrace.database import Database
from headrace.webhooks.secrets import make_secret
from tests.e2e.program import Program, environment, run_program
from tests.webhooks import stand

ROOT = Path(__file__).parents[2]


async def test_the_quickstart(database_url: str, db: Database) -> None:
    ran = subprocess.run(
        [sys.executable, "examples/quickstart.py"],
        cwd=ROOT,
        env=environment({"HEADRACE_DATABASE_URL": database_url}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    first, *counting, last = ran.stdout.splitlines()
    assert first == "Hello, Ada, from attempt 1!"
    assert counting[-1] == "succeeded 100 %"
    assert "running 80 %" in counting
    assert last == "counted to 5"
    rows = await db.fetch_alone("SELECT status FROM headrace.tasks")
    assert [row["status"] for row in rows] == ["SUCCEEDED"] * 2


def test_its_registry_runs_under_the_command_line(database_url: str) -> None:
    settings = {"HEADRACE_DATABASE_URL": database_url}
    worker = Program("worker", "examples.quickstart:registry", folder=ROOT, settings=settings)
    try:
        # The first worker of a database must have come up: before, nobody knows the type.
        words = ("submit", "greet", "--payload", '{"name": "Grace"}', "--wait")
        while (done := run_program(*words, folder=ROOT, settings=settings)).code == 2 and worker.running:
            assert "No worker has ever registered" in done.complaint
        assert done.out == '"Hello, Grace, from attempt 1!"\n', worker.err
    finally:
        worker.close()


async def test_the_receiver_of_webhooks(db: Database) -> None:  # W-13
    secret = make_secret()
    receiver = await asyncio.create_subprocess_exec(
        *(sys.executable, "examples/receive_webhooks.py", "0"),
        cwd=ROOT,
        env=environment({"WEBHOOK_SECRET": secret.text}),
        stdout=asyncio.subprocess.PIPE,
    )
    assert receiver.stdout is not None
    try:
        async with asyncio.timeout(60):
            url = (await receiver.stdout.readline()).decode().split()[-1]
        ada = await stand.make_user(db, "ada")
        await stand.make_endpoint(db, ada, url, secret=secret.text)
        stranger, _ = await stand.make_endpoint(db, ada, f"{url}stranger", max_retries=0)  # signs with another secret
        (event,) = await stand.happen(db, ada, answer=42)
        await stand.relay(db)
        http = stand.http_client()
        while not await stand.is_empty(db):
            await stand.sender(db, http).run_once()
        for row in await stand.attempts(db):
            expected = 401 if row["endpoint_id"] == stranger.id else 204
            assert (row["response_status"], row["event_id"]) == (expected, event.id)
        async with asyncio.timeout(60):
            assert (await receiver.stdout.readline()).decode() == 'task.succeeded {"answer": 42, "number": 0}\n'
        await http.close()
    finally:
        receiver.kill()
        await receiver.wait()


def test_the_quickstart_is_short() -> None:
    code = (ROOT / "examples" / "quickstart.py").read_text().splitlines()
    assert len([line for line in code if line.strip()]) <= 30
