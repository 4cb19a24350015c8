import hashlib
import ipaddress
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.audit.diff import LIMIT, diff_object, encode

# Text of every width, with what JSON escapes and what PostgreSQL refuses.
texts = st.text(alphabet=st.one_of(st.sampled_from('a"\\\n\x00\x07é水💧\ud800'), st.characters()), max_size=60)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(texts, inner, max_size=6)),
    max_leaves=25,
)
objects = st.dictionaries(st.text(min_size=1, max_size=12), values, max_size=8)


def test_a_small_object_is_kept_as_it_is() -> None:
    encoded = encode({"name": "水车", "count": 3, "tags": ["a", "b"], "none": None})
    assert json.loads(encoded.json) == {"name": "水车", "count": 3, "tags": ["a", "b"], "none": None}
    assert encoded.cut == ()
    assert encoded.sha256 is None


@pytest.mark.parametrize("letter", ["a", "é", "水", "💧", '"', "\n", "\x07"])
def test_exactly_64_kb_is_whole_and_one_byte_more_is_cut(letter: str) -> None:
    width = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    room = LIMIT - len(b'{"text":"","pad":""}')
    count, pad = divmod(room, width)

    fits = encode({"text": letter * count, "pad": "x" * pad})
    assert len(fits.json.encode()) == LIMIT
    assert fits.cut == ()
    assert fits.sha256 is None

    larger = {"text": letter * count, "pad": "x" * (pad + 1)}
    over = encode(larger)
    assert LIMIT - 10 <= len(over.json.encode()) <= LIMIT
    assert over.cut == ("text",)
    shown = json.loads(over.json)
    assert shown["pad"] == larger["pad"]
    assert shown["text"].endswith("…")
    assert larger["text"].startswith(shown["text"][:-1])


def test_the_longest_values_are_cut_first_and_short_ones_stay_whole() -> None:
    old = {"title": "t" * 1_000, "body": "b" * 50_000, "note": "n" * 40_000, "deep": {"list": ["d" * 30_000, "s"]}}
    encoded = encode(old)
    shown = json.loads(encoded.json)
    assert shown["title"] == old["title"]
    assert shown["deep"]["list"][1] == "s"
    assert encoded.cut == ("body", "deep.list[0]", "note")
    lengths = {len(shown["body"]), len(shown["note"]), len(shown["deep"]["list"][0])}
    assert len(lengths) == 1, "all that were cut are cut to one length"
    assert LIMIT - 10 <= len(encoded.json.encode()) <= LIMIT


def test_the_digest_of_the_whole_is_kept() -> None:
    whole = {"text": "水" * 40_000}
    expected = hashlib.sha256(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
    assert encode(whole).sha256 == expected


def test_thousands_of_small_values_become_one_cut_text() -> None:
    encoded = encode({"id": "tsk_1", "points": [{"x": n, "y": "ab"} for n in range(50_000)]})
    shown = json.loads(encoded.json)
    assert shown["id"] == "tsk_1"
    assert shown["points"].startswith('[{"x":0,"y":"ab"}')
    assert encoded.cut == ("points",)
    assert len(encoded.json.encode()) <= LIMIT


def test_many_cut_paths_are_named_by_their_field() -> None:
    assert encode({"lines": ["x" * 600 for _ in range(200)]}).cut == ("lines",)


def test_ten_thousand_keys_lose_whole_fields_and_each_is_named() -> None:
    given = {f"key_{n:05}": "v" * (n % 7) for n in range(10_000)}
    encoded = encode(given)
    shown = json.loads(encoded.json)
    assert LIMIT - 30 <= len(encoded.json.encode()) <= LIMIT
    assert shown.items() <= given.items()
    assert set(encoded.cut) == given.keys() - shown.keys()
    assert max(map(len, shown.values())) <= min(len(given[name]) for name in encoded.cut), "the longest went first"


def test_names_that_alone_are_too_long_still_end_well() -> None:
    given = {f"{n}{'k' * 1000}": 1 for n in range(100)}
    encoded = encode(given)
    assert len(encoded.json.encode()) <= LIMIT
    assert len(json.loads(encoded.json)) + len(encoded.cut) == 100
    assert encode({"k" * LIMIT: 1}).json == "{}"


def test_so_many_names_that_nobody_could_read_them() -> None:
    encoded = encode({f"{n:06}{'k' * 100}": 1 for n in range(5_000)})
    assert encoded.cut[-1] == "*"
    assert sum(map(len, encoded.cut)) <= 4 * LIMIT


def test_what_was_truncated_before_is_cut_again_like_anything_else() -> None:
    first = diff_object(None, {"id": "tsk_1", "body": "水" * 65_536, "note": "n"})
    assert first is not None
    again = diff_object(first, first)
    assert again is not None
    for side in ("old_object", "new_object"):
        text = again[side]
        assert isinstance(text, str)
        assert len(text.encode()) <= LIMIT
        assert json.loads(text)["truncated_fields"] == ["body"]
        assert again[f"{side}_truncated"] is True
    assert again["truncated_fields"] == ["new_object"]
    cut = json.loads(str(first["new_object"]))
    assert encode(cut) == encode(json.loads(encode(cut).json)), "what fits is left alone"


def test_a_bottomless_object_is_cut_at_some_depth() -> None:
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = [deep]
    encoded = encode({"deep": deep, "flat": 1})
    assert "(nested too deep)" in encoded.json
    assert json.loads(encoded.json)["flat"] == 1
    assert encoded.cut == ("deep",), "what is not all there is named"
    assert encode({"deep": deep, "long": "水" * 40_000}).cut == ("deep", "long")
    shown = diff_object(None, {"deep": deep})
    assert shown is not None
    assert (shown["new_object_truncated"], shown["truncated_fields"]) == (True, ["deep"])


def test_a_huge_object_takes_a_moment_not_a_minute() -> None:
    huge = {"rows": {f"row {n}": {"text": "水" * 20, "list": [n, str(n)]} for n in range(30_000)}}
    started = time.process_time()
    assert len(encode(huge).json.encode()) <= LIMIT
    assert time.process_time() - started < 5


def test_values_of_stored_rows_are_written_as_text() -> None:
    @dataclass
    class Point:
        x: int

    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    shown = json.loads(
        encode(
            {
                "at": at,
                "length": timedelta(minutes=1),
                "price": Decimal("1.50"),
                "ip": ipaddress.ip_address("2001:db8::1"),
                "raw": b"12345",
                "set": frozenset({"b", "a"}),
                "point": Point(1),
                "big": 2**70,
            }
        ).json
    )
    assert shown == {
        "at": "2026-01-02T03:04:05Z",
        "length": 60.0,
        "price": "1.50",
        "ip": "2001:db8::1",
        "raw": "(5 bytes)",
        "set": ["b", "a"] if shown["set"][0] == "b" else ["a", "b"],
        "point": {"x": 1},
        "big": hex(2**70),
    }


def test_a_diff_has_the_names_of_the_document() -> None:
    assert diff_object(None, None) is None
    assert diff_object(None, {"a": 1}) == {
        "new_object": '{"a":1}',
        "old_object_truncated": False,
        "new_object_truncated": False,
    }
    cut = diff_object({"a": "x" * LIMIT}, {"a": "y"})
    assert cut is not None
    assert set(cut) == {
        "old_object",
        "new_object",
        "old_object_truncated",
        "new_object_truncated",
        "truncated_fields",
        "old_object_sha256",
    }
    assert (cut["old_object_truncated"], cut["new_object_truncated"]) == (True, False)
    assert cut["truncated_fields"] == ["a"]


@given(objects, st.integers(min_value=2, max_value=400))
def test_whatever_comes_the_result_is_valid_json_that_fits(value: dict[str, Any], limit: int) -> None:
    encoded = encode(value, limit=limit)
    assert len(encoded.json.encode()) <= limit
    assert "\\u0000" not in encoded.json.replace("\\\\", "")
    shown = json.loads(encoded.json)
    assert isinstance(shown, dict)
    assert bool(encoded.cut) == (encoded.sha256 is not None)
    if not encoded.cut:
        assert len(shown) <= len(value)
