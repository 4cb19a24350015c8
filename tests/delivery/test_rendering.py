"""What the chart renders is what is kept in tests/delivery/rendered."""  # D-10

import difflib

import pytest

from tests.delivery.rendering import FOLDER, VALUES, text_of


@pytest.mark.parametrize("name", VALUES)
def test_the_chart_renders_what_is_kept(name: str) -> None:
    kept = (FOLDER / f"{name}.yaml").read_text()
    difference = "\n".join(
        difflib.unified_diff(kept.splitlines(), text_of(name).splitlines(), "kept", "now", lineterm="")
    )
    assert not difference, f"{difference}\nIf this is meant: python -m tests.delivery.rendering"
