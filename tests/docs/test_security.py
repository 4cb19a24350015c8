"""The threat model points to tests that are there."""

import re
from functools import cache

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "why" / "security.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| who ")]


@cache
def known() -> frozenset[str]:
    """The names of all tests."""
    text = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    return frozenset(re.findall(r"def (test_\w+)\(", text))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_each_line_of_the_threat_model_names_tests_that_exist(row: str) -> None:
    *_, proof, _ = (cell.strip() for cell in row.split("|"))
    named = re.findall(r"`([^`]+)`", proof)
    assert named, "what proves it?"
    for name in named:
        file, _, test = name.rpartition("::") if "::" in name else (name, "", "") if "/" in name else ("", "", name)
        assert not file or (ROOT / file).is_file(), f"there is no {file}"
        assert not test or test in known(), f"there is no {test}"
