"""A container's share of the processors counts, not the host's number."""

import os
from pathlib import Path

import pytest

from headrace.cpus import available_cpus


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"{text}\n")


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(
    ("cpu_max", "expected"),
    [("200000 100000", 2), ("150000 100000", 1), ("50000 100000", 1), ("max 100000", 8), ("rubbish", 8), ("", 8)],
)
def test_the_quota_of_the_container_bounds_the_processors(tmp_path: Path, cpu_max: str, expected: int) -> None:
    write(tmp_path, "cpu.max", cpu_max)
    write(tmp_path, "membership", "0::/")
    assert available_cpus(tmp_path, tmp_path / "membership") == expected


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(
    ("service", "slice_", "expected"),
    [("300000 100000", "max 100000", 3), ("max 100000", "200000 100000", 2), ("500000 100000", "200000 100000", 2)],
)
def test_a_service_is_bound_by_its_own_quota_and_by_its_slice(
    tmp_path: Path, service: str, slice_: str, expected: int
) -> None:
    write(tmp_path / "system.slice" / "headrace-worker@1.service", "cpu.max", service)
    write(tmp_path / "system.slice", "cpu.max", slice_)
    write(tmp_path, "membership", "0::/system.slice/headrace-worker@1.service")
    assert available_cpus(tmp_path, tmp_path / "membership") == expected


@pytest.mark.usefixtures("eight")
def test_a_container_that_knows_the_name_its_host_gave_it_reads_its_own_root(tmp_path: Path) -> None:
    write(tmp_path, "cpu.max", "200000 100000")
    write(tmp_path, "membership", "0::/docker/0123abc")
    assert available_cpus(tmp_path, tmp_path / "membership") == 2


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(("quota", "expected"), [("300000", 3), ("-1", 8)])
def test_the_first_version_of_cgroups_has_files_of_its_own(tmp_path: Path, quota: str, expected: int) -> None:
    write(tmp_path / "cpu", "cpu.cfs_quota_us", quota)
    write(tmp_path / "cpu", "cpu.cfs_period_us", "100000")
    write(tmp_path, "membership", "4:cpu,cpuacct:/docker/0123abc")
    assert available_cpus(tmp_path, tmp_path / "membership") == expected


def test_without_a_quota_the_affinity_counts(tmp_path: Path) -> None:
    assert available_cpus(tmp_path, tmp_path / "missing") == len(os.sched_getaffinity(0))
