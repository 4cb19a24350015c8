"""What a task costs is computed alike in Python and in SQL."""

from typing import Any

import asyncpg
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.database import Json, Tx
from headrace.tasks.errors import PayloadInvalid
from headrace.tasks.units import is_rule, units

NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(2**31 - 2, 2**31 + 2),
    st.sampled_from([10**9, 10**9 + 1, 999_999_999.0, 1e9, 1e300, 2.0, 2.5, -0.0, 0.999999999999, 1e-300]),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.one_of(NUMBERS, st.none(), st.booleans(), st.text("a1 é", max_size=3), st.lists(NUMBERS, max_size=2))
PAYLOADS = st.one_of(
    VALUES,
    st.dictionaries(st.sampled_from(["a", "b"]), VALUES),
    st.dictionaries(st.sampled_from(["a", "b"]), st.dictionaries(st.sampled_from(["a", "b"]), VALUES)),
)
RULES = st.sampled_from(["1", "17", "999999999", "payload.a", "payload.b", "payload.a.b", "payload.a.a.b"])


async def in_sql(tx: Tx, rule: str, payload: Any) -> int | None:
    try:
        async with tx.savepoint():
            found: int = await tx.fetchval("SELECT headrace.units($1, $2)", rule, Json(orjson.dumps(payload)))
            return found
    except asyncpg.PostgresError as exc:
        if exc.sqlstate != "HR004":
            raise
        return None


def in_python(rule: str, payload: Any) -> int | None:
    try:
        return units("t", rule, payload)
    except PayloadInvalid:
        return None


async def test_python_and_sql_agree_on_what_a_task_costs(tx: Tx) -> None:  # W-06
    cases: list[tuple[str, Any]] = []

    @settings(max_examples=200, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(RULES, PAYLOADS)
    def gather(rule: str, payload: Any) -> None:
        cases.append((rule, payload))

    gather()
    for rule, payload in cases:
        assert in_python(rule, payload) == await in_sql(tx, rule, payload), (rule, payload)
    assert sum(in_python(*case) is not None for case in cases) > 10


@pytest.mark.parametrize("rule", ["1", "17", "999999999", "payload.pages", "payload.video.ten-seconds", "payload._x"])
async def test_a_rule_is_one_in_python_and_in_the_table(tx: Tx, rule: str) -> None:
    assert is_rule(rule)
    await tx.execute("INSERT INTO headrace.task_types (name, units) VALUES ('t', $1)", rule)


@pytest.mark.parametrize("rule", ["", "0", "01", "-1", "1.5", "1000000000", "user", "payload", "payload.", "payload.1"])
async def test_what_is_none_is_none_in_both(tx: Tx, rule: str) -> None:
    assert not is_rule(rule)
    with pytest.raises(asyncpg.CheckViolationError, match="ck_task_types_units"):
        await tx.execute("INSERT INTO headrace.task_types (name, units) VALUES ('t', $1)", rule)
