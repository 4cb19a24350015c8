"""The schema as SQL and in Prisma's words, as it is written down in the documentation."""

import re
from pathlib import Path

import pytest

from headrace.database import Tx
from headrace.migrations import ddl, prisma

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = REFERENCE / "schema.prisma"


async def test_the_page_of_sql_is_that_of_the_migrations(owner_tx: Tx) -> None:
    if owner_tx.connection.get_server_version().major < 16:
        pytest.skip("PostgreSQL 15 writes a view with its table's name before each column")
    assert (REFERENCE / "schema.sql").read_text() == await ddl.render(owner_tx), "run `make docs`"


async def test_the_written_schema_is_that_of_the_migrations(owner_tx: Tx) -> None:  # W-22
    assert PAGE.read_text() == await prisma.render(owner_tx), "run `make docs`"


EVERY_COLUMN = """
SELECT table_name::text || '.' || column_name FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
JOIN pg_class ON pg_class.oid = format('%I.%I', table_schema, table_name)::regclass AND NOT relispartition
WHERE table_schema = 'headrace' AND table_type = 'BASE TABLE'
"""


def models() -> dict[str, str]:
    return dict(re.findall(r"^model (\w+) \{\n(.*?)^\}", PAGE.read_text(), re.MULTILINE | re.DOTALL))


async def test_it_names_every_table_and_column(owner_tx: Tx) -> None:  # W-22
    there = {row[0] for row in await owner_tx.fetch(EVERY_COLUMN)}
    named = {
        f"{model}.{line.split()[0]}"
        for model, body in models().items()
        for line in body.splitlines()
        if not line.strip().startswith("@@") and "@relation" not in line
    }
    assert named == there


async def test_every_foreign_key_has_its_two_ends_and_no_field_two_meanings(owner_tx: Tx) -> None:
    keys = await owner_tx.fetch(
        "SELECT conname, conrelid::regclass::text AS here, confrelid::regclass::text AS there FROM pg_constraint "
        "JOIN pg_class ON pg_class.oid = conrelid AND NOT relispartition "
        "WHERE contype = 'f' AND connamespace = 'headrace'::regnamespace AND conparentid = 0"
    )
    assert len(keys) > 10
    found = models()
    for key in keys:
        ends = [model for model, body in found.items() for _ in range(body.count(f'@relation("{key["conname"]}"'))]
        assert sorted(ends) == sorted(table.removeprefix("headrace.") for table in (key["here"], key["there"]))
    for model, body in found.items():
        fields = [line.split()[0] for line in body.splitlines() if not line.strip().startswith("@@")]
        assert len(fields) == len(set(fields)), model
