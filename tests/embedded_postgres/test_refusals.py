"""What cannot be done is said in one line that tells what to do."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.embedded_postgres import EmbeddedConfig, attach, binaries, cluster, flocks, postmaster
from headrace.embedded_postgres import account as accounts
from headrace.embedded_postgres.account import Account
from headrace.embedded_postgres.errors import (
    BinariesMissing,
    DidNotStart,
    DiskFull,
    FolderNotWritable,
    FolderUnusable,
    OtherMajorVersion,
    PortTaken,
    RunsDifferently,
)
from headrace.embedded_postgres.model import Layout
from tests.embedded_postgres.conftest import QUICK, User, ask, needs_root, running


def test_a_port_that_was_asked_for_and_is_taken(config: EmbeddedConfig, layout: Layout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} is taken .*name another port"):
            attach(replace(config, port=port))
    assert running(layout) == []
    with attach(replace(config, port=port)) as server:
        assert server.port == port
        with pytest.raises(RunsDifferently, match=f"already runs on port {port}, not {port + 1}"):
            attach(replace(config, port=port + 1))
        assert ask(server.app_url, "SELECT 1") == 1


@pytest.mark.parametrize(
    "content", ["", '{"superuser": "a', "[]", '{"superuser": "a"}', '{"superuser":"","owner":"","app":""}']
)
def test_damaged_passwords_are_named_without_being_shown(layout: Layout, content: str) -> None:
    layout.home.mkdir(parents=True, exist_ok=True)
    layout.credentials.write_text(content)
    with pytest.raises(
        FolderUnusable, match=r"credentials\.json is damaged: stop .*, delete this file and start again"
    ):
        cluster.read_credentials(layout)


def test_what_the_error_about_damaged_passwords_says_helps(config: EmbeddedConfig, layout: Layout) -> None:
    with attach(config) as server:
        ask(server.superuser_url, "CREATE TABLE kept ()")
        whole = layout.credentials.read_text()
        layout.credentials.unlink()
        with pytest.raises(FolderUnusable, match="is gone: stop all of Headrace"):
            attach(config)
    layout.credentials.write_text(whole[:20])
    with pytest.raises(FolderUnusable, match="is damaged"):
        attach(config)
    assert flocks.wait_until_free(layout.keeper_lock, within=60)
    layout.credentials.unlink()
    with attach(config) as server:
        assert ask(server.superuser_url, "SELECT count(*) FROM kept") == 0
        assert ask(server.app_url, "SELECT 1") == 1


def test_a_port_that_is_taken_while_the_server_starts(config: EmbeddedConfig, layout: Layout) -> None:
    """As when a copy of the folder, which remembers the same port, is started beside it at the same moment."""
    attach(config).close()
    programs = binaries.choose(binaries.list_folders(None), data_major=cluster.data_major(layout), prefer_first=False)
    account = accounts.choose(layout, run_as=None)
    if account is not None:
        account = accounts.with_reach(account, home=layout.home, programs=[programs.bin / "postgres"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cluster.write_configuration(layout, port=taken.getsockname()[1], settings=QUICK)
        for _ in range(3):  # what it says comes from another process, sooner or later
            lock = flocks.open_lock(layout.server_lock)
            assert flocks.lock(lock, within=60)
            child = postmaster.start(layout, programs, account, lock=lock)
            os.close(lock)
            with pytest.raises(PortTaken):
                postmaster.wait_until_ready(layout, child, go_on=lambda: True)


def test_a_folder_that_is_not_ours_to_write(base: Path, user: Callable[..., User], ordinary: Account | None) -> None:
    base.chmod(0o555)
    refused = user(account=ordinary)
    assert refused.said["error"] == FolderNotWritable.code
    assert "chown" in refused.said["message"]
    assert list(base.iterdir()) == []


@pytest.mark.usefixtures("made")
@needs_root
def test_a_data_folder_that_root_made(home: Path, user: Callable[..., User], ordinary: Account) -> None:
    with user():
        refused = user(account=ordinary)
        assert refused.said["error"] == FolderNotWritable.code


def test_a_file_in_the_folders_place(fresh: EmbeddedConfig) -> None:
    fresh.data_dir.write_text("not a folder")
    with pytest.raises(FolderUnusable, match="is not a folder"):
        attach(fresh)
    with pytest.raises(FolderUnusable):
        attach(replace(fresh, data_dir=fresh.data_dir / "below"))
    fresh.data_dir.unlink()


def test_something_else_in_the_clusters_place(fresh: EmbeddedConfig, layout: Layout) -> None:
    layout.cluster.mkdir(parents=True)
    (layout.cluster / "letters").write_text("to be kept")
    with pytest.raises(FolderUnusable, match="holds files but no PostgreSQL data"):
        attach(fresh)
    assert (layout.cluster / "letters").exists()
    layout.cluster.rename(layout.home / "elsewhere")
    layout.cluster.symlink_to(layout.home / "elsewhere")
    with pytest.raises(FolderUnusable, match="is a link"):
        attach(fresh)


def test_data_of_a_version_that_is_not_here(config: EmbeddedConfig, layout: Layout) -> None:
    attach(config).close()
    (layout.cluster / "PG_VERSION").write_text("12\n")
    with pytest.raises(OtherMajorVersion, match=r"written by PostgreSQL 12, but only .*`headrace backup`"):
        attach(config)


def test_data_of_an_older_version_is_run_by_that_version(fresh: EmbeddedConfig) -> None:
    versions = {binaries.version_of(folder): folder for folder in binaries.list_folders(None)}
    if len(versions) < 2:
        pytest.skip("the wheel brings one version only")
    newest, oldest = max(versions), min(versions)
    with attach(replace(fresh, binaries=versions[oldest])) as server:
        assert server.version == oldest
        ask(server.owner_url, "CREATE TABLE kept (n int)")
    for given in (None, versions[newest]):
        with attach(replace(fresh, binaries=given)) as server:
            assert server.version == oldest
            assert ask(server.owner_url, "SELECT count(*) FROM kept") == 0


def test_no_programs(fresh: EmbeddedConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BinariesMissing, match="does not hold initdb and postgres"):
        attach(replace(fresh, binaries=Path("/usr/share")))
    monkeypatch.setattr(binaries, "_WHEEL", "not_installed_here")
    monkeypatch.setattr(binaries, "SYSTEM_FOLDERS", ())
    with pytest.raises(BinariesMissing, match="pip install"):
        attach(fresh)


def test_a_setting_that_the_server_does_not_take(config: EmbeddedConfig, layout: Layout) -> None:
    with pytest.raises(DidNotStart, match="invalid value for parameter") as refused:
        attach(replace(config, settings={**QUICK, "work_mem": "a lot"}))
    assert "\n" not in refused.value.message
    assert running(layout) == []


def _programs(folder: Path, *, initdb: str) -> Path:
    """Make programs that do as the test says."""
    folder.mkdir()
    for name, text in {"postgres": "echo 'postgres (PostgreSQL) 18.4'", "initdb": initdb}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_disk_that_fills_up_while_the_cluster_is_made(base: Path, fresh: EmbeddedConfig, layout: Layout) -> None:
    said = '[ "$1" = -V ] || { echo "could not write to file: No space left on device" >&2; exit 1; }'
    with pytest.raises(DiskFull, match="free some space"):
        attach(replace(fresh, binaries=_programs(base / "bin", initdb=said)))
    assert not layout.cluster.exists()
    with attach(fresh) as server:
        assert ask(server.app_url, "SELECT 1") == 1


def test_an_initdb_that_fails_is_quoted(base: Path, fresh: EmbeddedConfig) -> None:
    said = '[ "$1" = -V ] || { echo "initdb: error: the moon is full" >&2; exit 1; }'
    with pytest.raises(DidNotStart, match="initdb failed: initdb: error: the moon is full"):
        attach(replace(fresh, binaries=_programs(base / "bin", initdb=said)))


@pytest.fixture
def small_disk(base: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a file system of so many megabytes."""
    folder = base / "disk"
    folder.mkdir()

    def mount(megabytes: int) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], capture_output=True, check=False
        )
        if done.returncode != 0:
            pytest.skip("no file system can be mounted here")
        return folder

    yield mount
    subprocess.run(["umount", folder], capture_output=True, check=False)


@needs_root
@pytest.mark.parametrize("megabytes", [1, 8, 45])
def test_a_disk_too_small_for_a_cluster(small_disk: Callable[[int], Path], megabytes: int) -> None:
    disk = small_disk(megabytes)
    with pytest.raises(DiskFull, match="is full: free some space"):
        attach(EmbeddedConfig(disk / "postgres", settings=QUICK))
    assert not (disk / "postgres" / "cluster").exists()


@needs_root
def test_a_disk_that_is_full_when_the_server_starts(small_disk: Callable[[int], Path]) -> None:
    disk = small_disk(150)
    config = EmbeddedConfig(disk / "postgres", settings=QUICK)
    with attach(config) as server:
        ask(server.owner_url, "CREATE TABLE kept (n int)")
    with (disk / "filler").open("wb", buffering=0) as filler:
        os.posix_fallocate(filler.fileno(), 0, shutil.disk_usage(disk).free)
    with pytest.raises(DiskFull, match="free some space and start again"):
        attach(config)
    assert running(Layout(disk / "postgres")) == []
    (disk / "filler").unlink()
    with attach(config) as server:
        assert ask(server.owner_url, "SELECT count(*) FROM kept") == 0


def _installed(base: Path, version: str, *, works: bool = True) -> Path:
    folder = base / version.partition(".")[0] / "bin"
    says = f'#!/bin/sh\necho "postgres (PostgreSQL) {version}"\n' if works else "#!/bin/sh\nexit 1\n"
    for name in ("initdb", "postgres"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(says)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def system(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with PostgreSQL packages, and a wheel with 16.14 and 18.4."""
    wheel = [_installed(base / "wheel", version) for version in ("18.4", "16.14")]
    monkeypatch.setattr(binaries, "_in_wheel", lambda: wheel)
    monkeypatch.setattr(binaries, "SYSTEM_FOLDERS", (f"{base}/system/*/bin",))
    return base / "system"


@pytest.mark.parametrize(
    ("packages", "data_major", "expected"),
    [
        ([], None, "18.4"),
        (["18.6", "15.20"], None, "18.6"),
        (["18.3"], None, "18.4"),
        (["19.1"], None, "18.4"),  # new data keep the wheel's major version
        (["16.16"], 16, "16.16"),
        (["15.20"], 15, "15.20"),
        (["18.10"], 18, "18.10"),
    ],
)
def test_a_newer_minor_of_the_system_runs_the_data(
    system: Path, packages: list[str], data_major: int | None, expected: str
) -> None:
    for version in packages:
        _installed(system, version)
    folders = binaries.list_folders(None)
    assert binaries.choose(folders, data_major=data_major, prefer_first=False).version == expected


def test_the_configured_programs_decide_even_if_older(system: Path, base: Path) -> None:
    _installed(system, "18.6")
    own = _installed(base / "own", "18.1")
    folders = binaries.list_folders(own)
    assert binaries.choose(folders, data_major=18, prefer_first=True).version == "18.1"
    assert binaries.choose(folders, data_major=16, prefer_first=True).version == "16.14"


def test_a_broken_package_of_the_system_stops_nothing(system: Path, base: Path) -> None:
    _installed(system, "18.6", works=False)
    assert binaries.choose(binaries.list_folders(None), data_major=None, prefer_first=False).version == "18.4"
    broken = _installed(base / "own", "18.1", works=False)
    with pytest.raises(BinariesMissing, match="does not run here"):
        binaries.choose(binaries.list_folders(broken), data_major=None, prefer_first=True)
