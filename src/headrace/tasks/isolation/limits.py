"""Resource limits of one task in its child process.

A child with ``files=False`` reads strangers' files. Its worker sets its limits from outside, and a seccomp filter
(sandbox.py) refuses the child's own attempts: code that was taken over cannot raise them. Other children limit
themselves.
"""

import contextlib
import math
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.tasks.execution import ProcessLimits

SET_FROM_OUTSIDE = sys.platform == "linux"  # whether a process can limit another one here
_Pair = tuple[int, int]


@contextlib.contextmanager
def limited(limits: ProcessLimits, pid: int = 0, *, has_ended: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Hold one task to its limits: in this process, or in the child ``pid``. Once that has ended, its number may be
    another process's.

    Soft limits, so that the next task can have others. Memory is counted as address space on top of that of the loaded
    program, and CPU time from here on. All of them hold for each process: programs that the handler starts
    inherit them but do not share them. The worker watches the wall-clock time.
    """
    wanted = {
        resource.RLIMIT_AS: _more_than(_address_space(pid), limits.memory_bytes),
        resource.RLIMIT_CPU: _more_than(_cpu_seconds(pid), limits.cpu_seconds),
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_NPROC: limits.processes,
    }
    before: dict[int, _Pair] = {}
    try:
        with contextlib.suppress(ProcessLookupError):  # it died: noticed elsewhere
            for kind, value in wanted.items():
                if value is not None and not has_ended():
                    before[kind] = _get(pid, kind)
                    _lower(pid, kind, value, before[kind])
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            for kind, pair in before.items():
                if not has_ended():
                    _set(pid, kind, pair)


def _lower(pid: int, kind: int, wanted: int, present: _Pair) -> None:
    soft, hard = present
    known = [limit for limit in (wanted, soft, hard) if limit != resource.RLIM_INFINITY]
    _set(pid, kind, (min(known), hard))


def _get(pid: int, kind: int) -> _Pair:
    return resource.prlimit(pid, kind) if pid else resource.getrlimit(kind)


def _set(pid: int, kind: int, pair: _Pair) -> None:
    if pid:
        resource.prlimit(pid, kind, pair)
    else:
        resource.setrlimit(kind, pair)


def _more_than(taken: int | None, limit: int | None) -> int | None:
    return None if taken is None or limit is None else taken + limit


def _address_space(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid or 'self'}/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return None  # not Linux, where the limit has no effect either; or the child has died


def _cpu_seconds(pid: int) -> int | None:
    if not pid:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return math.ceil(used.ru_utime + used.ru_stime)
    try:
        # Behind the name in brackets, which may hold anything: user and system time are the 12th and 13th field.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return math.ceil((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
