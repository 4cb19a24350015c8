"""A container's share of the processors counts, not the host's number."""

import os
from pathlib import Path

import pytest

from headrace.cpus import available_cpus


@pytest.mark.parametrize(
    ("cpu_max", "expected"),
    [("200000 100000", 2), ("150000 100000", 1), ("50000 100000", 1), ("max 100000", 8), ("rubbish", 8), ("", 8)],
)
def test_the_quota_of_the_container_bounds_the_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu_max: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    file = tmp_path / "cpu.max"
    file.write_text(cpu_max)
    assert available_cpus(file) == expected


def test_without_a_quota_the_affinity_counts(tmp_path: Path) -> None:
    assert available_cpus(tmp_path / "missing") == len(os.sched_getaffinity(0))
