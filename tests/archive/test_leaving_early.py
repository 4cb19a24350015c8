"""Whoever stops reading a month before its end leaves nothing open: no transaction, no connection, no file."""

import tempfile
from contextlib import aclosing
from pathlib import Path

import pytest

from headrace.archive import archives, parquet
from headrace.archive.model import ArchiveState, monthly
from headrace.archive.parquet import ParquetFile
from headrace.archive.sessions import as_owner
from headrace.audit import sealing, verifying
from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.storage import Storage, StorageConfig
from tests.archive.months import MONTH, NAME, archive_of, fill_audit, stop_after
from tests.closing import all_closed

TABLE = monthly("audit_events")


async def test_the_connection_is_free_as_soon_as_a_difference_is_found(
    db: Database, owner: DatabaseConfig, tmp_path: Path
) -> None:
    await fill_audit(db, 300)
    async with as_owner(owner) as connection:
        await parquet.write(connection, TABLE, NAME, tmp_path / "month.parquet")
        await fill_audit(db, 1)
        file = ParquetFile(tmp_path / "month.parquet")
        assert await parquet.find_difference(connection, TABLE, NAME, file) is not None
        assert not connection.is_in_transaction()
        assert await connection.fetchval("SELECT 1") == 1


async def test_the_connection_is_free_as_soon_as_a_file_cannot_be_written(
    db: Database, owner: DatabaseConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    await fill_audit(db, 300)
    monkeypatch.setattr(parquet._Extremes, "see", fail)
    async with as_owner(owner) as connection:
        with pytest.raises(OSError, match="the disk is full"):
            await parquet.write(connection, TABLE, NAME, tmp_path / "month.parquet")
        assert not connection.is_in_transaction()
        assert await connection.fetchval("SELECT 1") == 1


@pytest.mark.parametrize("state", [ArchiveState.DETACHED, ArchiveState.ARCHIVED])
async def test_a_month_that_is_read_in_part_is_closed(
    db: Database,
    owner: DatabaseConfig,
    place: StorageConfig,
    state: ArchiveState,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    await fill_audit(db, 300)
    await stop_after(state.lower(), db.config, place)
    (files := tmp_path / "files").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    with all_closed():
        async with aclosing(archives.read_month(db, Storage(place), "audit_events", MONTH)) as rows:
            assert (await anext(rows))["seq"] == 1
    assert list(files.iterdir()) == []


async def test_a_month_in_which_something_does_not_fit_is_closed(
    db: Database, owner: DatabaseConfig, place: StorageConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "BATCH", 100)
    await fill_audit(db, 300)
    await stop_after("detached", db.config, place)
    async with connect_alone(owner) as connection:
        await connection.execute(f"UPDATE headrace.{NAME} SET user_agent = 'x' WHERE seq = 1")
    with all_closed():
        assert (await verifying.verify(db, against=archive_of(db, place))).finding is not None
