"""What the tests of backup and restore share: a program that writes all the time, and rows to compare."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg

from tests.cli.conftest import Place

PROGRAM_SCHEMA = """
CREATE TABLE bills (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cents integer NOT NULL CHECK (cents > 0));
CREATE TABLE lines (bill_id integer NOT NULL REFERENCES bills, remark text);
CREATE INDEX idx_lines_bill_id ON lines (bill_id);
CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS bills FROM bills;
CREATE FUNCTION refuse_free() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE bills
SET cents = cents WHERE false;
  RETURN new;
END
$$;
CREATE TRIGGER tr_bills_refuse_free BEFORE INSERT ON bills FOR EACH ROW EXECUTE FUNCTION refuse_free();
"""
SUBMIT = "SELECT headrace.submit('book', '{}', unknown_type => 'wait')"


def plain(url: str) -> str:
    return url.partition("?")[0]  # libpq knows no role=


def settings_of(place: Place, folder: Path) -> dict[str, str]:
    return {**place.settings, "HEADRACE_DATA_DIR": str(folder)}


def write_bill(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """A bill, its line and its task, in one transaction: a backup has all of them or none."""
    with connection.transaction():
        connection.execute("INSERT INTO bills (cents) VALUES (100)")
        connection.execute("INSERT INTO lines SELECT max(id), E'tab\\tnew\\nline \\\\ and \\\\.' FROM bills")
        connection.execute(SUBMIT)


@contextlib.contextmanager
def writing_all_the_time(url: str) -> Iterator[None]:
    stop = threading.Event()
    begun = threading.Event()

    def write() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not stop.is_set():
                write_bill(connection)
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def counts(url: str, schema: str) -> Mapping[str, object]:
    queries = {
        "bills": f"SELECT count(*) FROM {schema}.bills",
        "lines": f"SELECT count(*) FROM {schema}.lines",
        "totals": f"SELECT bills FROM {schema}.totals",
        "tasks": "SELECT count(*) FROM headrace.tasks WHERE task_type = 'book'",
        "remarks": f"SELECT array_agg(DISTINCT remark) FROM {schema}.lines",
    }
    with psycopg.connect(plain(url)) as connection:
        return {name: (connection.execute(sql).fetchone() or (None,))[0] for name, sql in queries.items()}
