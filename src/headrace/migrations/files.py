"""The numbered pairs beside this module: ``0001_accounts.up.sql`` and ``0001_accounts.down.sql``."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"(\d{4})_(\w+)\.up\.sql")
# First line of a file whose statements cannot run in a transaction (CREATE INDEX CONCURRENTLY). Such a file must be
# harmless when it is run again: it may have stopped half-way.
_NO_TRANSACTION = "-- headrace: no-transaction"
# A contraction: it removes something, and programs that do not know that migration still use it.
_NEEDS = re.compile(r"^-- headrace: needs (\d{4})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    up: str
    down: str

    def __str__(self) -> str:
        return f"{self.number:04}_{self.name}"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.up.encode()).hexdigest()

    @property
    def needs(self) -> int:
        """The migration that programs have to know to run on the schema after this one; 0 for an expansion."""
        found = _NEEDS.search(self.up)
        return int(found[1]) if found else 0


def in_transaction(script: str) -> bool:
    return not script.startswith(_NO_TRANSACTION)


def statements(script: str) -> list[str]:
    """The statements of a file without a transaction: there, each ends at the end of a line."""
    return [part for part in re.split(r"(?<=;)\s*\n", script) if re.search(r"^\s*[^-\s]", part, re.MULTILINE)]


@cache
def available() -> tuple[Migration, ...]:
    """Every migration this program knows, in order, numbered without gaps."""
    folder = files(__package__)
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if match := _NAME.fullmatch(entry.name):
            down = folder / entry.name.replace(".up.sql", ".down.sql")
            found.append(Migration(int(match[1]), match[2], entry.read_text("utf-8"), down.read_text("utf-8")))
    assert [migration.number for migration in found] == list(range(1, len(found) + 1)), "migrations must have no gaps"
    return tuple(found)
