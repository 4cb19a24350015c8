"""What is killed, when, and what comes back."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from headrace.embedded_postgres import EmbeddedConfig, attach, flocks
from headrace.embedded_postgres import account as accounts
from headrace.embedded_postgres.errors import ForeignServer
from headrace.embedded_postgres.model import Layout
from tests.embedded_postgres.conftest import (
    IS_ROOT,
    User,
    ask,
    end,
    eventually,
    is_over,
    keeper_of,
    postmaster_of,
    reserved_port,
    running,
)


def test_a_killed_postmaster_comes_back_on_the_same_port_with_its_data(config: EmbeddedConfig, layout: Layout) -> None:
    with attach(config) as server:
        ask(server.owner_url, "CREATE TABLE kept AS SELECT 1 AS n")
        killed = postmaster_of(layout)
        os.kill(killed, signal.SIGKILL)
        assert ask(server.owner_url, "SELECT count(*) FROM kept") == 1
        assert postmaster_of(layout) != killed


def test_a_killed_backend_costs_no_data(config: EmbeddedConfig) -> None:
    with attach(config) as server:
        ask(server.owner_url, "CREATE TABLE kept AS SELECT 1 AS n")
        with pytest.raises((OSError, asyncpg.PostgresError)):
            ask(server.superuser_url, "COPY (SELECT 1) TO PROGRAM 'kill -9 $PPID'", within=0)
        assert ask(server.owner_url, "SELECT count(*) FROM kept") == 1


def test_a_backend_that_does_not_notice_its_orphanhood_is_ended(config: EmbeddedConfig, layout: Layout) -> None:
    with attach(config) as server:
        busy = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import asyncio, asyncpg, sys\n"
                "async def main():\n"
                "    connection = await asyncpg.connect(sys.argv[1])\n"
                "    await connection.execute('DO $$ BEGIN LOOP END LOOP; END $$')\n"
                "asyncio.run(main())",
                server.owner_url,
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            is_busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'"
            assert eventually(lambda: ask(server.superuser_url, is_busy) == 1)
            os.kill(postmaster_of(layout), signal.SIGKILL)
            assert ask(server.app_url, "SELECT 1", within=60) == 1
        finally:
            busy.kill()
            busy.wait()


def test_without_its_keeper_the_server_goes_on_and_a_user_puts_up_another(
    config: EmbeddedConfig, layout: Layout
) -> None:
    with attach(config) as server:
        before, killed = postmaster_of(layout), keeper_of(layout)
        os.kill(killed, signal.SIGKILL)
        assert ask(server.app_url, "SELECT 1") == 1
        assert eventually(lambda: flocks.is_held(layout.keeper_lock))
        assert keeper_of(layout) != killed
        assert postmaster_of(layout) == before
        os.kill(before, signal.SIGKILL)  # the new one does what the old one did
        assert ask(server.app_url, "SELECT 1") == 1
        assert postmaster_of(layout) != before
    assert running(layout) == []


def test_the_next_attacher_adopts_a_server_that_lost_its_keeper_and_its_users(
    user: Callable[..., User], config: EmbeddedConfig, layout: Layout
) -> None:
    lost = user()
    port = lost.said["port"]
    os.kill(keeper_of(layout), signal.SIGKILL)
    lost.kill()
    before = postmaster_of(layout)
    with attach(config) as server:
        assert server.port == port
        assert server.version == lost.said["version"]
        assert postmaster_of(layout) == before
        assert ask(server.app_url, "SELECT 1") == 1
    assert running(layout) == []


def test_the_last_user_stops_a_server_that_has_no_keeper(config: EmbeddedConfig, layout: Layout) -> None:
    server = attach(config)
    os.kill(keeper_of(layout), signal.SIGKILL)
    server.close()
    assert running(layout) == []


@pytest.mark.parametrize("after", [0.05, 0.2, 0.5])
def test_a_first_start_that_is_killed_leaves_nothing_half_made(
    user: Callable[..., User], fresh: EmbeddedConfig, layout: Layout, after: float
) -> None:
    killed = user()
    assert eventually(lambda: flocks.is_held(layout.keeper_lock))
    time.sleep(after)
    for pid in [killed.process.pid, keeper_of(layout)]:
        os.kill(pid, signal.SIGKILL)
    assert not layout.cluster.exists() or (layout.cluster / "global" / "pg_control").exists()
    with attach(fresh) as server:
        assert ask(server.app_url, "SELECT 1") == 1
        assert ask(server.owner_url, "SELECT 1") == 1
    assert list(layout.home.glob("cluster.new*")) == []


def test_a_user_does_not_mind_the_keeper_of_one_that_was_killed(
    user: Callable[..., User], config: EmbeddedConfig, layout: Layout
) -> None:
    # The other keeper takes its lock only after the second user has looked for one.
    taken = flocks.open_lock(layout.keeper_lock)
    first = user()
    assert eventually(lambda: flocks.is_held(layout.start_lock))
    if flocks.try_lock(taken):  # before the user's own keeper, as a rule
        time.sleep(2.5)  # longer than that one tries
    os.close(taken)
    assert ask(first.said["app_url"], "SELECT 1") == 1
    first.close()


def test_a_user_killed_in_its_first_start_leaves_nothing_running(user: Callable[..., User], layout: Layout) -> None:
    killed = user()
    assert eventually(lambda: flocks.is_held(layout.keeper_lock))
    killed.kill()
    assert is_over(layout, within=60)


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(config: EmbeddedConfig, layout: Layout) -> None:
    with attach(config) as server:
        for pid in (keeper_of(layout), postmaster_of(layout)):
            assert os.getsid(pid) != os.getsid(0)
        os.kill(keeper_of(layout), signal.SIGINT)
        time.sleep(0.3)
        assert ask(server.app_url, "SELECT 1") == 1


def test_a_keeper_that_is_told_to_stop_does_so_and_stays_away(config: EmbeddedConfig, layout: Layout) -> None:
    config = replace(config, port=reserved_port())  # while it is down, nobody is to be given its port
    server = attach(config)
    os.kill(keeper_of(layout), signal.SIGTERM)
    assert is_over(layout, within=60)
    time.sleep(1.5)  # longer than a user takes to miss its keeper
    assert running(layout) == []
    with attach(config) as again:
        assert again.port == server.port
        assert ask(server.app_url, "SELECT 1") == 1
        server.close()
        assert ask(again.app_url, "SELECT 1") == 1


def test_a_removed_folder_takes_its_processes_along(config: EmbeddedConfig, layout: Layout) -> None:
    with attach(config) as server:
        # Not from above: the server writes while we remove.
        layout.home.rename(layout.home.with_name("trash"))
        shutil.rmtree(layout.home.with_name("trash"), ignore_errors=True)
        assert is_over(layout, within=60)
        with attach(config) as fresh:
            assert ask(fresh.app_url, "SELECT 1") == 1
            server.close()
            assert ask(fresh.app_url, "SELECT 1") == 1


@pytest.mark.parametrize("now", [["sleep", "60"], ["true"]], ids=["somebody else", "dead but never reaped"])
def test_a_stale_pid_file_whose_id_is_still_in_use_is_no_obstacle(
    config: EmbeddedConfig, layout: Layout, now: list[str]
) -> None:
    server = attach(config)
    pid_file = layout.cluster / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    with server:
        owner = layout.cluster.stat()
        end(layout)  # the power cut
    other = subprocess.Popen(now, user=owner.st_uid if IS_ROOT else None)
    try:
        pid_file.write_text("\n".join([str(other.pid), *lines[1:], ""]))
        if IS_ROOT:
            os.chown(pid_file, owner.st_uid, owner.st_gid)
        with attach(config) as again:
            assert ask(again.app_url, "SELECT 1") == 1
        assert other.poll() in (None, 0)
    finally:
        other.kill()
        other.wait()


def test_a_server_that_somebody_started_by_hand_is_left_alone(config: EmbeddedConfig, layout: Layout) -> None:
    with attach(config) as server:
        binary = Path(f"/proc/{postmaster_of(layout)}/exe").readlink()
    account = accounts.choose(layout, run_as=None)
    if account is not None:  # which may not be able to enter the folder of this checkout by itself
        account = accounts.with_reach(account, home=layout.home, programs=[binary])
    by_hand = subprocess.Popen(
        [binary, "-D", str(layout.cluster), "-p", str(server.port), "-k", ""],
        stderr=subprocess.DEVNULL,
        preexec_fn=accounts.become(account),
    )
    pid_file = layout.cluster / "postmaster.pid"
    try:
        assert eventually(lambda: pid_file.exists() and pid_file.read_text().startswith(f"{by_hand.pid}\n"))
        with pytest.raises(ForeignServer, match=str(by_hand.pid)):
            attach(config)
        assert by_hand.poll() is None
    finally:
        by_hand.send_signal(signal.SIGQUIT)
        by_hand.wait(timeout=60)


def test_another_port_is_taken_when_the_kept_one_is_not_free(config: EmbeddedConfig) -> None:
    with attach(config) as server:
        kept = server.port
    with socket.create_server(("127.0.0.1", kept)), attach(config) as server:
        assert server.port != kept
        moved = server.port
    with attach(replace(config, port=None)) as server:
        assert server.port == moved
