"""The number of processors of this process: limited by its container or service, not the whole machine."""

import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def available_cpus(cgroups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> int:
    """At least one. A quota of one and a half counts as one: threads beyond it would only wait."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *_quotas(cgroups, membership)]))


def _quotas(cgroups: Path, membership: Path) -> Iterator[int]:
    """The limits of our cgroup and its parents, which all apply."""
    for folder in _folders(cgroups, membership):
        quota, period = _read(folder / "cpu.max").partition(" ")[::2]  # cgroup v2
        yield from _whole(quota, period)
    v1 = cgroups / "cpu"
    yield from _whole(_read(v1 / "cpu.cfs_quota_us"), _read(v1 / "cpu.cfs_period_us"))


def _folders(cgroups: Path, membership: Path) -> Iterator[Path]:
    """The folders of our cgroups: a container sees its own as the root, a systemd service is further below."""
    own = next((line[3:] for line in _read(membership).splitlines() if line.startswith("0::")), "/")
    folder = cgroups / own.lstrip("/")
    yield folder
    for above in folder.parents:
        if not above.is_relative_to(cgroups):
            return
        yield above


def _whole(quota: str, period: str) -> Iterator[int]:
    # "max" and -1 are no limit.
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        yield int(quota) // int(period)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
