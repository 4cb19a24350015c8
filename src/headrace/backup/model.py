"""The contents of a backup.

A backup is a ZIP file. ``manifest.json`` comes last and names every other member with its length and SHA-256; the ZIP's
comment holds the SHA-256 of the manifest. So a file that was cut off or changed is known as such.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import orjson

FORMAT = 1
MANIFEST = "manifest.json"
COMMENT = b"headrace-backup "
OURS = "headrace"
# Written by `headrace migrate`, which a restore runs.
NOT_COPIED = frozenset({"schema_migrations", "schema_definitions", "unfinished_restore"})


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one table. ``digest`` does not depend on their order."""

    schema: str
    name: str
    columns: list[str]
    rows: int = 0
    digest: str = ""

    @property
    def member(self) -> str:
        return f"tables/{self.schema}.{self.name}.copy"

    @property
    def qualified(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def column_list(self) -> str:
        return ", ".join(quoted(column) for column in self.columns)


@dataclass(frozen=True, slots=True)
class Sequence:
    schema: str
    name: str
    value: int
    called: bool


@dataclass(frozen=True, slots=True)
class Role:
    """A role of a program. ``owns_schema``: `headrace database schema` made it."""

    name: str
    owns_schema: bool
    is_member: bool  # of headrace_app
    verifier: str | None = None  # the SCRAM verifier of its password, where it may be read


@dataclass(frozen=True, slots=True)
class Grant:
    """A manual grant on one of Headrace's objects."""

    privilege: str
    target: str  # such as TABLE headrace.tasks
    role: str
    grantable: bool


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: str
    size: int
    sha256: str | None = None  # None for what stays where it is, in a bucket


@dataclass(slots=True)
class Stored:
    """The files of one storage: copied from a folder, only listed of a bucket."""

    url: str
    copied: bool
    files: list[StoredFile] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # named by a row, and deleted before they could be copied


@dataclass(slots=True)
class Manifest:
    version: str
    made_at: str
    key_fingerprint: str | None
    postgres: str = ""
    migration: int = 0
    revision: int = 0
    tables: list[Table] = field(default_factory=list)
    months: dict[str, list[str]] = field(default_factory=dict)  # the months of each partitioned table
    sequences: list[Sequence] = field(default_factory=list)
    schemas: list[str] = field(default_factory=list)  # of programs, beside Headrace's own
    extra_tables: list[str] = field(default_factory=list)  # in Headrace's schema, and made by no migration
    roles: list[Role] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    files: Stored = field(default_factory=lambda: Stored("", copied=False))
    archive: Stored = field(default_factory=lambda: Stored("", copied=False))
    members: dict[str, tuple[int, str]] = field(default_factory=dict)  # length and SHA-256
    format: int = FORMAT

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    def as_bytes(self) -> bytes:
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        document: dict[str, Any] = orjson.loads(content)
        return cls(
            **{
                **document,
                "tables": [Table(**each) for each in document["tables"]],
                "sequences": [Sequence(**each) for each in document["sequences"]],
                "roles": [Role(**each) for each in document["roles"]],
                "grants": [Grant(**each) for each in document["grants"]],
                "files": _stored(document["files"]),
                "archive": _stored(document["archive"]),
                "members": {name: (length, digest) for name, (length, digest) in document["members"].items()},
            }
        )


def _stored(document: dict[str, Any]) -> Stored:
    return Stored(**{**document, "files": [StoredFile(**each) for each in document["files"]]})


def quoted(name: str) -> str:
    """An identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def fingerprint(key: bytes) -> str:
    """What two copies of one secret key have in common, and what says nothing about the key."""
    return hmac.new(key.strip(), b"headrace backup: fingerprint of the secret key", hashlib.sha256).hexdigest()[:16]


class RowDigest:
    """Count rows of COPY's text format and sum up their digests, so that their order does not matter."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0
        self._rest = b""

    def update(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self.rows += len(lines)
        self._sum += sum(_digests(lines))

    def hexdigest(self) -> str:
        assert not self._rest, "a row ends with a newline"
        return f"{self._sum % (1 << 128):032x}"


def _digests(lines: Iterable[bytes]) -> Iterable[int]:
    for line in lines:
        yield int.from_bytes(hashlib.blake2b(line, digest_size=16).digest())
