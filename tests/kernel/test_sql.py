"""A WHERE has the clauses that are in use, and only numbers where values go."""

from datetime import UTC, datetime

import pytest

from headrace.sql import Where

AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_was_not_asked_for_is_not_there() -> None:
    where = Where().eq("user_id", None).among("status", None).older_than(("a", "b"), None).since("at", None)
    where = where.until("at", None).contains("labels", None).is_null("revoked_at", None)
    assert (where.sql, where.args, where.next) == ("", (), 1)


def test_clauses_are_numbered_in_order() -> None:
    where = (
        Where()
        .eq("t.user_id", "u_1")
        .among("status", ["QUEUED", "FAILED"])
        .is_null("deleted_at")
        .older_than(("created_at", "id"), (AT, "tsk_1"))
        .since("created_at", AT)
        .until("created_at", AT)
        .contains("labels", {"team": "a"})
    )
    assert where.sql == (
        "WHERE t.user_id = $1 AND status = ANY($2) AND deleted_at IS NULL AND (created_at, id) < ($3, $4) "
        "AND created_at >= $5 AND created_at < $6 AND labels @> $7"
    )
    assert where.args == ("u_1", ["QUEUED", "FAILED"], AT, "tsk_1", AT, AT, {"team": "a"})
    assert where.next == 8


def test_it_can_follow_other_placeholders() -> None:
    where = Where(first=3).eq("a", 1).is_null("b", False)
    assert (where.sql, where.next) == ("WHERE a = $3 AND b IS NOT NULL", 4)


def test_one_of_one_is_plain_equality_and_one_of_none_is_nothing() -> None:
    assert Where().among("status", ["QUEUED"]).sql == "WHERE status = $1"
    assert Where().among("status", []).args == ([],)


@pytest.mark.parametrize("column", ["a; DROP TABLE x", "a b", "A", "", "a.b.c", 'a"', "1a"])
def test_a_column_is_a_name_and_nothing_else(column: str) -> None:
    with pytest.raises(ValueError):
        Where().eq(column, 1)


def test_a_where_can_be_continued_in_two_ways() -> None:
    base = Where().eq("a", 1)
    assert base.eq("b", 2).sql == "WHERE a = $1 AND b = $2"
    assert base.eq("c", 3).sql == "WHERE a = $1 AND c = $2"


def test_words_of_ours_are_written_out_and_nothing_else_is() -> None:
    where = Where().is_word("action", "forcePush").eq("user_id", "u").is_word("other", None)
    assert (where.sql, where.args) == ("WHERE action = 'forcePush' AND user_id = $1", ("u",))
    for word in ("it's", "", "a b", "1"):
        with pytest.raises(ValueError, match="not a word"):
            Where().is_word("action", word)
