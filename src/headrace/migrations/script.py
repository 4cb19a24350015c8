"""Migrations as one SQL script, to be applied by hand."""

from collections.abc import Iterable

from headrace.migrations import definitions, runner
from headrace.migrations.definitions import Definition, Stale
from headrace.migrations.files import Migration, in_transaction, statements
from headrace.migrations.months import month_by_month


def render(migrations: Iterable[Migration], *, stale: Stale | None = None, down: bool = False) -> str:
    """What ``migrate`` or ``roll_back`` would run, as one SQL script."""
    migrations = list(migrations)
    stale = stale or Stale()
    parts = (
        [] if down else [f"{runner.PREPARE.strip()}\n", _in_transaction(stale.new_functions, definitions.BEFORE_TABLES)]
    )
    for migration in migrations:
        text, book = (migration.down, _unbook_sql(migration)) if down else (migration.up, _book_sql(migration))
        if in_transaction(text):
            body = f"BEGIN;\n{text.rstrip()}\n{book}\nCOMMIT;\n"
        else:
            body = "\n".join([*map(_for_psql, statements(text)), book, ""])
        parts.append(f"-- {migration}\n{body}")
    if not down:
        parts.append(_in_transaction(stale.others))
    elif migrations:
        parts.append(f"{runner.CLOSE_BOOKS if migrations[-1].number == 1 else definitions.FORGET_ALL_BUT_FUNCTIONS}\n")
    return "\n".join(part for part in parts if part)


def for_psql(migrations: Iterable[Migration], *, stale: Stale, down: bool = False, then: str = "") -> str:
    """The same for psql, which by itself would go on after an error, and book a migration that failed."""
    text = render(migrations, stale=stale, down=down) + then
    first = "\\set ON_ERROR_STOP on\nSET lock_timeout = '5s';\nSET client_min_messages = warning;\n"
    return f"{first}\n{text}" if text else ""


def _in_transaction(changed: Iterable[Definition], prefix: str = "") -> str:
    text = definitions.creation(changed)
    return f"BEGIN;\n{prefix}{text}COMMIT;\n" if text else ""


def _for_psql(statement: str) -> str:
    if (parts := month_by_month(statement)) is None:
        return statement.rstrip()
    parent, months = parts
    return f"{parent};\n{months} \\gexec"


def _book_sql(migration: Migration) -> str:
    return (
        runner.BOOK.replace(
            "$1, $2, $3, $4",
            f"{migration.number}, '{migration.name}', '{migration.checksum}', {migration.needs}",
        )
        + ";"
    )


def _unbook_sql(migration: Migration) -> str:
    return runner.UNBOOK.replace("$1", str(migration.number)) + ";"
