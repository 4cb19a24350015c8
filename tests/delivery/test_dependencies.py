"""The gate for dependencies: licences of locked packages, and what NOTICE and the SBOM name."""

import importlib.util
import json
import subprocess
import sys
from types import ModuleType

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def inventory() -> ModuleType:
    spec = importlib.util.spec_from_file_location("inventory", ROOT / "deploy" / "image" / "inventory.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["inventory"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND LGPL-3.0-or-later", False),
        ("AGPL-3.0-only", False),
        ("unknown", False),
    ],
)
def test_licences_are_allowed_by_their_parts(inventory: ModuleType, licence: str, allowed: bool) -> None:
    assert inventory.is_allowed(licence) is allowed


def test_every_locked_package_has_an_allowed_licence() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check-dependencies", "--offline"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "by name: psycopg (LGPL-3.0-only): LGPL, used unchanged" in done.stdout


def test_notice_and_sbom_name_gpl_inside_wheels(inventory: ModuleType) -> None:
    """PyAV's wheel is BSD by its label and contains x264 and x265."""
    found = inventory.packages()
    places = inventory.copyleft(found.values())
    assert [place.partition("-")[0] for place in places["GPL-2.0-or-later"]] == ["av: libx264", "av: libx265"]
    assert [place.partition("-")[0] for place in places["GPL-3.0-or-later"]] == ["pixeltable"]

    text = inventory.notice("Title", found.values())
    assert f"\nav {found['av'].version}: BSD-3-Clause\n" in text
    assert "libx264" in text

    document = json.loads(inventory.sbom("headrace", "1", found.values()))
    av = next(each for each in document["components"] if each["name"] == "av")
    assert av["purl"] == f"pkg:pypi/av@{found['av'].version}"
    assert any(each["licenses"] == [{"expression": "GPL-2.0-or-later"}] for each in av["components"])
