"""How a child process confines itself: it dies with its worker, and gives up rights."""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from headrace.tasks.isolation import sandbox

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# Among processes of like size the kernel then takes the child and not the worker.
_OOM_SHIFT = 500
_POLITE = (signal.SIGTERM, signal.SIGINT)

_forking = threading.local()


def settle(worker_pid: int, powers: sandbox.Powers) -> list[str]:
    """Do once what holds for the whole life of this process; gives what the kernel could not do, see sandbox.py."""
    _die_with(worker_pid)
    if sys.platform == "linux":
        # Orphans of what a handler starts become children of this process, and so are found when the task is over.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _offer_to_oom_killer()
    # Some supervisors signal every process of a service when they stop it. What becomes of a running task is the
    # worker's decision. A function and not SIG_IGN, which programs started by a handler would inherit.
    for number in _POLITE:
        signal.signal(number, _leave_it_to_the_worker)
    os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_default_signals)
    return sandbox.confine(powers)


def resident_bytes() -> int:
    """How much memory this process has now; where the system does not tell, the most it has had."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def has_live_children() -> bool:
    """Whether a process that a handler started is still there, an orphan of one (a double fork) included.

    Not the helpers that multiprocessing keeps for the whole life of a process.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    children: set[int] = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has just ended
            children.update(map(int, listed.read_bytes().split()))
    return any(_is_alive(pid) for pid in children - _helpers())


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _helpers() -> set[int]:
    tracker = sys.modules.get("multiprocessing.resource_tracker")
    forkserver = sys.modules.get("multiprocessing.forkserver")
    pids = {
        getattr(getattr(tracker, "_resource_tracker", None), "_pid", None),
        getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None),
    }
    return {pid for pid in pids if pid is not None}


def kill_own_group() -> None:
    """End this process and all it started, if it is the first of its group; else this process alone."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _die_with(worker_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker_pid:  # it died before we asked to die with it
        os._exit(0)


def _offer_to_oom_killer() -> None:
    score = Path("/proc/self/oom_score_adj")
    with contextlib.suppress(OSError):
        score.write_text(str(min(1000, int(score.read_text()) + _OOM_SHIFT)))


def _leave_it_to_the_worker(_number: int, _frame: FrameType | None) -> None:
    pass


# A process that a handler forks (multiprocessing) is ended by these signals as usual, also by one that comes before it
# has taken our function off: that one waits.


def _hold_signals() -> None:
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _default_signals() -> None:
    for number in _POLITE:
        if signal.getsignal(number) is _leave_it_to_the_worker:
            signal.signal(number, signal.SIG_DFL)
    _release_signals()
