"""How many processors this process may use: those of its container, not of the whole machine."""

import os
from pathlib import Path

_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")  # cgroup v2, as containers see their own


def available_cpus(cpu_max: Path = _CPU_MAX) -> int:
    """At least one. A quota of one and a half counts as one: threads beyond it would only wait."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, _, period = cpu_max.read_text().strip().partition(" ")
        allowed = min(allowed, int(int(quota) / int(period or 100_000)))
    except (OSError, ValueError, ZeroDivisionError):  # no such limit ("max"), or no cgroup v2
        pass
    return max(1, allowed)
