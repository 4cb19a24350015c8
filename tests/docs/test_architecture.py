"""The table of layers on the page of the architecture is what import-linter holds."""

import re
import tomllib

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "why" / "architecture.md"
SOURCE = ROOT / "src" / "headrace"

Layer = dict[str, bool]  # its packages and modules, and whether they are there


def enforced() -> list[Layer]:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [contract] = [each for each in linter["contracts"] if each["type"] == "layers"]
    return [
        {part.strip(" ()").removeprefix("headrace."): "(" not in part for part in layer.split("|")}
        for layer in contract["layers"]
    ]


def drawn() -> list[Layer]:
    table = PAGE.read_text().partition("| layer | holds | today |\n|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()]
    return [
        {name: today == "✓" and not to_come for name, to_come in re.findall(r"`(\w+)`( \(next\))?", names)}
        for names, _, today in rows
    ]


def test_the_page_has_the_layers_that_are_enforced_in_their_order() -> None:
    assert drawn() == enforced()


def test_every_package_and_module_has_its_layer_and_those_to_come_are_not_there() -> None:
    layers = {name: there for layer in enforced() for name, there in layer.items()}
    present = {path.stem for path in SOURCE.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert {name for name, there in layers.items() if there} == present
