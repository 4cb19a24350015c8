"""What commands say of a removal."""

import pytest

from headrace.cli.removal_tables import WARNINGS, summary
from headrace.removal.order import Order
from headrace.removal.report import Check, Report, Verdict


@pytest.mark.parametrize(
    ("verdict", "said"),
    [("CLEAN", ""), ("LOOK", f"; {WARNINGS[Verdict.LOOK]}"), ("POOR", f"; {WARNINGS[Verdict.POOR]}")],
)
def test_of_a_clip_the_verdict_is_said_and_no_share_of_the_mark(verdict: str, said: str) -> None:
    """A share left of 38 % stood beside results without a trace of the mark, and less beside bad ones."""
    check = Check(passed=True, reason=None, residue_before=1.0, residue_after=0.38).figures()
    facts = {"frames": 96, "seconds": 7.7, "verdict": verdict, "removed": [1], "check": check}
    assert (
        summary(Report(facts=facts), Order("clip.mp4", media="VIDEO"), "VIDEO")
        == f"1 mark taken off 96 frames in 7.7 s{said}"
    )
