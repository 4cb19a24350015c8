"""The console's sample picture is the one that the server knows."""

import hashlib
from pathlib import Path

from headrace.removal.service.sample import SAMPLE_SHA256, is_sample

SAMPLE = Path(__file__).parents[2] / "console" / "src" / "pages" / "remove" / "sample.jpg"


def test_the_sample_of_the_console_is_the_one_that_is_not_charged() -> None:
    assert hashlib.sha256(SAMPLE.read_bytes()).hexdigest() == SAMPLE_SHA256
    assert is_sample(SAMPLE_SHA256)
    assert not is_sample("0" * 64)
    assert not is_sample(None)
