"""Ids carry their kind and their time, keep the order they were made in, and refuse what is not one."""

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import ids


def test_an_id_shows_its_kind_and_when_it_was_made() -> None:
    made = ids.new("tsk")
    assert made.startswith("tsk_")
    assert len(made) == 30
    assert abs(ids.time_of(made) - datetime.now(UTC)) < timedelta(seconds=5)
    assert ids.uuid_of(made).version == 7
    assert ids.uuid_of(made).variant == uuid.RFC_4122


@pytest.mark.parametrize(
    ("text", "inside"),
    [  # from the published TypeID specification
        ("u_00000000000000000000000000", "00000000-0000-0000-0000-000000000000"),
        ("u_7zzzzzzzzzzzzzzzzzzzzzzzzz", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        ("prefix_01h455vb4pex5vsknk084sn02q", "01890a5d-ac96-774b-bcce-b302099a8057"),
    ],
)
def test_the_encoding_is_that_of_the_typeid_specification(text: str, inside: str) -> None:
    assert ids.uuid_of(text) == uuid.UUID(inside)
    assert ids.from_uuid(text.rpartition("_")[0], uuid.UUID(inside)) == text


@given(st.uuids())
def test_every_uuid_survives_the_way_there_and_back(value: uuid.UUID) -> None:
    assert ids.uuid_of(ids.from_uuid("x", value)) == value


def test_ids_of_one_process_grow_also_from_many_threads() -> None:
    def make(_: int) -> list[str]:
        return [ids.new("tsk") for _ in range(2000)]

    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(make, range(8)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({each for batch in batches for each in batch}) == 16000


def test_a_clock_set_back_a_little_does_not_disturb_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    before, earlier = ids.new("tsk"), time.time_ns() - 5 * 10**9
    monkeypatch.setattr("headrace.ids.time.time_ns", lambda: earlier)
    assert ids.new("tsk") > before


def test_a_clock_that_was_days_ahead_and_is_mended_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whatever is dated by its id, as the audit trail is, would be refused until the process is started anew."""
    ahead = time.time_ns() + 2 * 86400 * 10**9
    with monkeypatch.context() as wrong:
        wrong.setattr("headrace.ids.time.time_ns", lambda: ahead)
        ids.new("tsk")
    assert abs(ids.time_of(ids.new("tsk")) - datetime.now(UTC)) < timedelta(seconds=60)


def test_a_forked_child_makes_other_ids() -> None:
    ids.new("tsk")
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, ids.new("tsk").encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100).decode() != ids.new("tsk")


def test_an_id_can_belong_to_an_earlier_instant() -> None:
    then = datetime(2026, 1, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert ids.time_of(ids.new("led", at=then)) == then


@pytest.mark.parametrize(
    "wrong",
    ["", "tsk", "tsk_", "tsk_8zzzzzzzzzzzzzzzzzzzzzzzzz", "tsk_01h455vb4pex5vsknk084sn02",
     "TSK_01h455vb4pex5vsknk084sn02q",
     "u_01h455vb4pex5vsknk084sn02q", "tsk_01h455vb4pex5vsknk084sn0iq", "tsk_01h455vb4pex5vsknk084sn02q\n"],
)  # fmt: skip
def test_what_is_not_an_id_of_this_kind_is_refused(wrong: str) -> None:
    with pytest.raises(ids.InvalidId):
        ids.check(wrong, "tsk")
