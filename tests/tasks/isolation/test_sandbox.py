"""What a child process has of its worker: nothing. What it may use: what its type says."""

import asyncio
import functools
import os
import platform
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.tasks.execution import BadTaskType, ProcessLimits
from headrace.tasks.isolation.children import Children
from headrace.tasks.isolation.environment import clean_environment
from headrace.tasks.isolation.errors import Crashed
from headrace.tasks.isolation.sandbox import DENIED, DENIED_EVERYWHERE
from headrace.tasks.isolation.single import Standalone
from headrace.tasks.registry import Registry
from tests.tasks.isolation import other_program
from tests.tasks.isolation.stand import Stand, appearing, closing, eventually, is_gone

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.asyncio(loop_scope="module")
linux = pytest.mark.skipif(sys.platform != "linux", reason="these are means of Linux")

SECRETS = {
    "HEADRACE_DATABASE_URL": "postgresql://ada:swordfish@127.0.0.1/headrace",
    "HEADRACE_SECRET_KEY": "swordfish-swordfish",
    "AWS_SECRET_ACCESS_KEY": "swordfish",
    "PGPASSWORD": "swordfish",
    "SHOP_WORD": "swordfish",
}


@linux
async def test_a_child_has_nothing_of_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_TIME", "C")
    inheritable = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    try:
        async with closing(Children(size=1)) as children:
            found = await Stand(children, tmp_path).run("looks_around")
    finally:
        os.close(inheritable)
    null, out, err, *links = found["descriptors"]
    assert (null, out) == ("/dev/null", err)
    assert out.startswith("pipe:")
    assert [link.partition(":")[0] for link in links] == ["socket"]
    assert "swordfish" not in str(found)
    assert not found["environment"].keys() & SECRETS.keys()
    # LC_CTYPE is Python's own doing where no language is set.
    assert found["environment"].keys() - {"LC_CTYPE"} == clean_environment().keys() - {"LC_CTYPE"}
    assert {"PATH", "LC_TIME"} <= found["environment"].keys()
    assert found["status"]["NoNewPrivs"] == "1"
    sys_ptrace, sys_admin, sys_resource, perfmon = (1 << number for number in (19, 21, 24, 38))
    assert int(found["status"]["CapEff"], 16) & (sys_ptrace | sys_admin | sys_resource | perfmon) == 0
    assert found["leads_group"]
    assert (found["stdin"], found["sigterm"]) == ("", False)
    ours = int(Path("/proc/self/oom_score_adj").read_text())
    assert found["oom_score_adj"] == min(1000, ours + 500)


async def test_a_type_gets_the_variables_that_it_names_and_shares_no_child_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_WORD", "swordfish")
    async with closing(Children(size=1)) as children:
        stand = Stand(children, tmp_path)
        plain = await stand.run("who")
        own = await stand.run_type(other_program.own.get("own"), 7)
        assert own["shop"] == {"SHOP_WORD": "swordfish", "SHOP_SET": "here"}
        assert own["pid"] != plain["pid"]
        assert await eventually(lambda: is_gone(plain["pid"]))  # it made room: there is one at a time
        assert "SHOP_WORD" not in (await stand.run("looks_around"))["environment"]


@linux
async def test_a_child_cannot_look_into_its_worker_nor_signal_it(stand: Stand, tmp_path: Path) -> None:
    if "reach" in next(iter(stand.children._pools.values()))._idle[0].missing:
        pytest.skip("this kernel has no Landlock")
    found = await stand.run("reaches_out", {"worker": os.getpid(), "folder": str(tmp_path)})
    assert found["signal"] in (None, "PermissionError")  # Linux 6.12
    denied = {found[name] for name in ("environment", "memory", "files")}
    assert denied == {"PermissionError"}
    assert found["rename"] is None


@linux
async def test_a_type_without_network_can_make_no_socket(stand: Stand) -> None:
    found = await stand.run("offline")
    ways = ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "datagrams")
    assert found == dict.fromkeys(ways, "Permission denied") | {
        "program": "PermissionError: [Errno 13] Permission denied"
    }


async def test_every_type_has_limits_unless_it_says_otherwise(stand: Stand) -> None:
    names = ["AS", "CPU", "FSIZE", "NOFILE", "CORE"]
    found = await stand.run("limits", names)
    defaults = ProcessLimits()
    assert None not in (defaults.memory_bytes, defaults.cpu_seconds, defaults.wall_seconds)
    assert 0 < found["AS"] - (defaults.memory_bytes or 0) < 4 * 1024**3
    assert 0 < found["CPU"] - (defaults.cpu_seconds or 0) < 600
    assert 0 < found["FSIZE"] <= (defaults.file_bytes or 0)
    assert 0 < found["NOFILE"] <= (defaults.open_files or 0)
    assert found["CORE"] == 0


async def test_files_and_descriptors_have_limits_and_the_next_task_has_its_own(stand: Stand, tmp_path: Path) -> None:
    found = await stand.run("limits.narrow", str(tmp_path / "file"))
    assert found["refused"] == ["File too large", "Too many open files"]
    assert 0 < found["processes"] <= 500
    assert (tmp_path / "file").stat().st_size <= 4096
    after = await stand.run("limits", ["NOFILE"])
    assert after["NOFILE"] == min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


async def test_a_task_that_overstays_is_killed_though_nobody_asked_it_to_stop(stand: Stand, tmp_path: Path) -> None:
    with pytest.raises(Crashed, match="it ran longer than its process may, 1 s"):
        await stand.run("overstays", str(tmp_path / "pid"))
    (pid,) = await appearing(tmp_path / "pid")
    assert await eventually(lambda: is_gone(pid))


async def test_a_type_of_no_program_runs_beside_those_of_one(tmp_path: Path) -> None:
    async with closing(Children(size=2)) as children:
        stand = Stand(children, tmp_path)
        own, echo = await asyncio.gather(
            stand.run_type(other_program.own.get("own"), "product"), stand.run("echo", "shop")
        )
        assert (own["payload"], echo) == ("product", "shop")
        registry = Registry()
        registry.task("static", isolation="process")(other_program.Group.static)
        registry.task("of_class", isolation="process")(other_program.Group.of_class)
        assert [await stand.run_type(each) for each in registry] == ["static", "Group"]
        registry.freeze()


def in_a_function() -> Callable[[Any, Any], None]:
    def handler(context: Any, payload: Any) -> None: ...

    return handler


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (lambda _context, _payload: None, "it is a lambda"),
        (in_a_function(), "it stands inside a function"),
        (functools.partial(other_program.run_own), "it is a partial"),
        (other_program.Group().of_one, "it is a method of one Group"),
    ],
)
async def test_a_handler_that_no_child_could_import_is_refused_when_it_is_registered(
    handler: Callable[..., Any], why: str
) -> None:
    with pytest.raises(BadTaskType, match=f"The handler of x cannot run in a child process: {why}"):
        Registry().task("x", isolation="process")(handler)
    assert len(Registry()) == 0


async def test_a_handler_whose_name_means_something_else_is_refused_when_the_worker_starts() -> None:
    registry = Registry()
    registry.task("x", isolation="process")(other_program.registered_before)
    with pytest.raises(BadTaskType, match="be the uppermost decorator"):
        registry.freeze()


@pytest.mark.parametrize(
    ("environment", "why"),
    [(["HEADRACE_DATABASE_URL"], "stay out of children"), (["HEADRACE_X=1"], "stay out"), (["A B"], "is no variable")],
)
async def test_settings_of_headrace_cannot_be_declared(environment: list[str], why: str) -> None:
    with pytest.raises(BadTaskType, match=why):
        Registry().task("x", isolation="process", environment=environment)(other_program.run_own)


async def test_a_limit_is_a_positive_number() -> None:
    with pytest.raises(BadTaskType, match="open_files must be at least 1"):
        ProcessLimits(open_files=0)


@linux
async def test_a_child_without_files_can_use_what_it_is_handed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-05
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # what is on it can be imported
    secret, handed = tmp_path / "secret", tmp_path / "handed"
    secret.write_text("swordfish")
    handed.write_text("hello")
    async with Standalone(size=1) as processes:
        with handed.open("r+b") as file:
            order = {"secret": str(secret), "folder": str(tmp_path)}
            found = await processes.run(other_program.shut_in.get("shut_in"), order, descriptors=(file.fileno(),))
            again = await processes.run(other_program.shut_in.get("shut_in"), order, descriptors=(file.fileno(),))
        assert len(processes.pids) == 1
    if not found["has_landlock"]:
        pytest.skip("this kernel has no Landlock")
    assert found["handed"] == again["handed"] == "hello"
    assert handed.read_text() == "hello!!"
    denied = {found[name] for name in ("read", "list", "write", "run", "reopen", "socket")}
    assert denied == {"PermissionError"}
    assert found["descriptors"] == again["descriptors"]  # what one run was handed is closed before the next


@linux
async def test_a_child_without_files_changes_no_modes_and_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root it could chmod, chown, utime and chroot whatever it named; and fork and setsid to outlive its task."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    secret, handed = tmp_path / "secret", tmp_path / "handed"
    for path in (secret, handed):
        path.write_text("hello")
        path.chmod(0o600)
    async with Standalone(size=1) as processes:
        with handed.open("r+b") as file:
            order = {"secret": str(secret), "folder": str(tmp_path)}
            found = await processes.run(other_program.shut_in.get("shut_in"), order, descriptors=(file.fileno(),))
    calls = ("fork", "setsid", "chmod", "fchmod", "chown", "utime", "chroot", "setxattr")
    assert {name: found[name] for name in calls} == dict.fromkeys(calls, "PermissionError")
    assert [path.stat().st_mode & 0o777 for path in (secret, handed)] == [0o600, 0o600]
    assert found["capabilities"] == ["0" * 16]
    assert found["thread"] == "ran"


@linux
async def test_a_child_without_files_cannot_raise_its_limits_and_each_task_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits were soft ones that code which was taken over could raise."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    handed = tmp_path / "handed"
    handed.write_text("hello")
    order = {"secret": str(handed), "folder": str(tmp_path)}
    types = (other_program.narrow.get("narrow"), other_program.shut_in.get("shut_in"))
    async with Standalone(size=1) as processes:
        with handed.open("r+b") as file:
            narrow, wide = [await processes.run(each, order, descriptors=(file.fileno(),)) for each in types]
        assert len(processes.pids) == 1
    for found in (narrow, wide):
        assert (found["setrlimit"], found["prlimit"]) == ("PermissionError", "PermissionError")
    assert narrow["limits"] == [20, 4096]
    assert wide["limits"] == [ProcessLimits().open_files, ProcessLimits().file_bytes]


@linux
@pytest.mark.skipif(platform.machine() not in DENIED, reason="no list of system calls for this architecture")
async def test_parts_of_the_kernel_that_no_handler_needs_are_denied(stand: Stand) -> None:
    """Only sockets and io_uring were: not namespaces, BPF, keys, tracing, userfaultfd, mounts and kexec."""
    calls = {**DENIED[platform.machine()], **DENIED_EVERYWHERE}
    found = await stand.run("kernel_calls", calls)
    # The kernel itself answers none of them with EACCES: EPERM, EFAULT, EINVAL, ESRCH and others.
    assert found == dict.fromkeys([*calls, "clone with CLONE_NEWUSER"], "EACCES")


@linux
async def test_what_a_handler_starts_cannot_leave_its_group_and_so_ends_with_the_task(
    stand: Stand, tmp_path: Path
) -> None:
    """A process that had made a session of its own (fork, setsid) outlived the task."""
    found = await stand.run("escapes", str(tmp_path / "pid"))
    assert found == dict.fromkeys(("setsid", "setpgid", "start_new_session"), "PermissionError")


@linux
async def test_a_child_with_one_folder_finds_there_what_it_was_told_of_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-05
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    secret, work = tmp_path / "secret", tmp_path / "work"
    secret.write_text("swordfish")
    mine = work / "0123456789abcdef"
    mine.mkdir(parents=True)
    handed = mine / "handed"
    handed.write_text("hello")
    async with Standalone(size=1, folder=work) as processes:
        with handed.open("r+b") as file:
            order = {"secret": str(secret), "folder": str(mine)}
            found = await processes.run(other_program.shut_in.get("shut_in"), order, descriptors=(file.fileno(),))
    if not found["has_landlock"]:
        pytest.skip("this kernel has no Landlock")
    assert {found[name] for name in ("read", "list", "run", "socket")} == {"PermissionError"}
    assert (found["write"], found["reopen"]) == (None, None)
    assert (mine / "new").exists()


@linux
async def test_a_program_that_reads_a_strangers_file_has_one_folder_and_nobody_to_talk_to(tmp_path: Path) -> None:
    own, outside = tmp_path / "own", tmp_path / "outside"
    own.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("swordfish")
    (own / "given").write_text("a presentation\n")
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    script = f"""
        cat given && echo made > result && mkdir sub && ls > listed
        cat {outside}/secret; echo x > {outside}/left; ls {outside}; echo x > {outside}/secret
        cat /proc/{os.getpid()}/environ; exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected
        cp /bin/true sub/own && sub/own && echo "ran what it wrote"
        kill -0 {os.getpid()} && echo signalled; ulimit -v unlimited; ulimit -v
    """
    try:
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "headrace.tasks.isolation.foreign", str(own), "/bin/bash", "-c", script,
            cwd=own, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        printed, _ = await program.communicate()
    finally:
        server.close()
        await server.wait_closed()
    *said, memory = printed.decode().split()
    assert said[:2] == ["a", "presentation"]
    assert set(said[2:]) <= {"signalled"}  # which Landlock forbids since Linux 6.12
    assert int(memory) == 4 * 1024**2  # kilobytes
    assert (own / "result").read_text() == "made\n"
    assert "given" in (own / "listed").read_text()
    assert ([each.name for each in outside.iterdir()], (outside / "secret").read_text()) == (["secret"], "swordfish")
