"""The soak finds what rises, and is not misled by noise or by what comes back."""

import random

import pytest

from tests.soak.figures import LIMITS, judge
from tests.soak.report import Soaked

TIMES = [20.0 * number for number in range(60)]


@pytest.mark.parametrize(
    ("values", "rises"),
    [
        pytest.param([100 + 0.5 * number for number in range(60)], True, id="a leak"),
        pytest.param([100.0] * 60, False, id="flat"),
        pytest.param([100 + random.Random(3).uniform(-8, 8) for _ in range(60)], False, id="noise"),
        pytest.param([100.0] * 30 + [140.0] + [100.0] * 29, False, id="one peak"),
        pytest.param([130 - 0.5 * number for number in range(60)], False, id="falling"),
    ],
)
def test_a_figure_that_rises_is_found(values: list[float], rises: bool) -> None:
    assert judge("up PSS", TIMES, values, 15).is_too_much is rises
    assert not judge("up PSS", TIMES, values, None).is_too_much


def soaked(rise: float) -> Soaked:
    """Memory that rises a lot while it warms up, and so much for each sample after it."""
    made = Soaked(TIMES[-1] + 20)
    for number, at in enumerate(TIMES):
        base = dict.fromkeys(LIMITS, 10.0) | {"tasks": 100.0 * number, "database MB": 0.3 * number}
        made.times.append(at)
        made.samples.append(base | {"up PSS": 5.0 * min(number, 20) + rise * number})
        made.tables.append({"tasks": 0.1 * number})
    return made


def test_the_warm_up_is_not_judged() -> None:
    assert soaked(0.0).failures == []
    assert "nothing rises" in soaked(0.0).text()
    (failure,) = soaked(0.6).failures
    assert failure.startswith("up PSS rises by 2")
    assert "RISES" in soaked(0.6).text()


def test_a_run_too_short_to_judge_has_failed() -> None:
    assert Soaked(10).failures == ["fewer than three samples after the warm-up: run it for longer"]
