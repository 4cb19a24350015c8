"""What is kept of a long result and a long stack: bytes are counted, characters are whole. S-12"""

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.schedules.truncation import MAX_RESULT_BYTES, MAX_STACK_BYTES, error_texts, result_text
from headrace.tasks import storable

# Letters of one to four bytes; shifted by a few, so that a cut falls onto every byte of one.
LETTERS = st.sampled_from("aü€😀")
SHIFTS = st.text("ab", max_size=4)
HEAD = "Traceback (most recent call last):\n"


@settings(max_examples=60, deadline=None)
@given(LETTERS, SHIFTS, st.integers(MAX_RESULT_BYTES - 40, MAX_RESULT_BYTES + 40))
@example("a", "", MAX_RESULT_BYTES)
@example("a", "", MAX_RESULT_BYTES + 1)
def test_a_result_has_exactly_64_kb_at_the_most(letter: str, shift: str, size: int) -> None:  # S-12
    text = shift + letter * ((size - len(shift) - 2) // len(letter.encode()))
    encoded = orjson.dumps(text)
    kept = result_text(encoded)
    assert kept is not None
    if len(encoded) <= MAX_RESULT_BYTES:
        assert kept == encoded.decode()
        return
    beginning, _, mark = kept.partition("…")
    assert mark == f"[cut: {len(encoded):,} bytes]"
    assert encoded.decode().startswith(beginning)
    # All the room is used, but for what is left of a character that does not fit.
    assert MAX_RESULT_BYTES - 3 <= len(kept.encode()) <= MAX_RESULT_BYTES


@settings(max_examples=60, deadline=None)
@given(LETTERS, SHIFTS, st.integers(MAX_STACK_BYTES - 40, MAX_STACK_BYTES + 12_000))
@example("😀", "", MAX_STACK_BYTES)
@example("a", "", MAX_STACK_BYTES + 1)
def test_a_stack_has_exactly_10_kb_at_the_most_and_its_top_is_kept(letter: str, shift: str, size: int) -> None:  # S-12
    text = HEAD + letter * ((size - len(HEAD) - len(shift)) // len(letter.encode())) + shift
    _, kept = error_texts(storable.text(text))  # as it comes from the worker
    assert kept is not None
    if len(text.encode()) <= MAX_STACK_BYTES:
        assert kept == text
        return
    mark, _, top = kept.partition("\n")
    assert mark == "[cut: the top of the stack follows]"
    assert text.endswith(top)
    assert MAX_STACK_BYTES - 3 <= len(kept.encode()) <= MAX_STACK_BYTES


@pytest.mark.parametrize("letter", ["a", "ü", "€", "😀"])
def test_a_message_is_cut_by_bytes_and_keeps_its_end(letter: str) -> None:
    whole = letter * (16_384 // len(letter.encode()))
    assert storable.text(whole) == whole
    cut = storable.text(f"{whole}{letter}")
    assert cut.startswith(f"…{letter}")
    assert 16_384 - 3 <= len(cut.encode()) <= 16_384
