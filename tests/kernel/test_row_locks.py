"""PostgreSQL 18 crashes where a statement locks rows and prunes partitions at run time: none of ours may do both."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.archive.model import MONTHLY

SOURCES = Path(__file__).parents[2] / "src" / "headrace"
LOCK = re.compile(r"\bFOR (NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)\b")
MONTHS = re.compile(rf"\b({'|'.join(MONTHLY)})\b")


def statements() -> Iterator[tuple[str, str]]:
    for file in SOURCES.rglob("*.py"):
        text = file.read_text()
        # Each test process collects this; few files lock rows, and parsing all of them takes a second.
        for node in ast.walk(ast.parse(text)) if LOCK.search(text) else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and LOCK.search(node.value):
                yield f"{file.name}:{node.lineno}", node.value
    for file in SOURCES.rglob("functions/*.sql"):
        for number, statement in enumerate(re.sub(r"--.*", "", file.read_text()).split(";")):
            if LOCK.search(statement):
                yield f"{file.name}, statement {number}", statement


def test_statements_that_lock_rows_are_found() -> None:
    assert len(list(statements())) > 20


@pytest.mark.parametrize(("where", "statement"), [pytest.param(*each, id=each[0]) for each in sorted(statements())])
def test_no_statement_locks_rows_and_reads_a_table_of_months(where: str, statement: str) -> None:
    assert not MONTHS.search(statement), f"{where}: lock in one statement, go on in the next (webhooks/store/queue.py)"
