"""Archives and months as the API shows them."""

from datetime import date, datetime
from typing import Self

from pydantic import BaseModel, Field

from headrace.archive.model import Archive, ArchiveState, Partition, Retention

ARCHIVE_ID = "arc_01h455vb4pex5vsknk084sn02q"


class ArchiveOut(BaseModel):
    """A month that has left its table, or is leaving it."""

    id: str = Field(examples=[ARCHIVE_ID])
    table: str = Field(examples=["audit_events"])
    month: date = Field(description="Its first day.", examples=["2026-01-01"])
    status: ArchiveState = Field(
        description="`DETACHED`: beside its table. `ARCHIVED`: also in the archive. `DROPPED`: only there."
    )
    location: str | None = Field(description="The file's name in the archive.")
    rows: int | None
    min_id: str | None
    max_id: str | None
    min_at: datetime | None
    max_at: datetime | None
    size_bytes: int | None
    sha256: str | None = Field(description="Of the file, lower-case hex.")
    detached_at: datetime
    archived_at: datetime | None
    verified_at: datetime | None = Field(description="When the file was last read back and found right.")
    dropped_at: datetime | None
    restored_as: str | None = Field(description="The table that holds its rows again, while there is one.")

    @classmethod
    def of(cls, archive: Archive) -> Self:
        return cls(
            id=archive.id,
            table=archive.table_name,
            month=archive.period,
            status=archive.state,
            location=archive.location,
            rows=archive.row_count,
            min_id=archive.min_id,
            max_id=archive.max_id,
            min_at=archive.min_at,
            max_at=archive.max_at,
            size_bytes=archive.size_bytes,
            sha256=archive.sha256,
            detached_at=archive.detached_at,
            archived_at=archive.archived_at,
            verified_at=archive.verified_at,
            dropped_at=archive.dropped_at,
            restored_as=archive.restored_as,
        )


class PartitionOut(BaseModel):
    """A month of a table that is kept by months."""

    table: str = Field(examples=["audit_events"])
    name: str = Field(examples=["audit_events_y2026m01"])
    month: date | None = Field(description="Its first day; null for the partition that takes what fits nowhere.")
    attached: bool = Field(description="False: on its way into the archive.")
    size_bytes: int
    live_rows: int = Field(description="As PostgreSQL estimates them.")
    dead_rows: int = Field(description="As PostgreSQL estimates them.")

    @classmethod
    def of(cls, partition: Partition) -> Self:
        return cls(
            table=partition.table_name,
            name=partition.name,
            month=partition.period,
            attached=partition.attached,
            size_bytes=partition.size_bytes,
            live_rows=partition.live_rows,
            dead_rows=partition.dead_rows,
        )


class MadeOut(BaseModel):
    """Months that were made."""

    made: list[str] = Field(examples=[["audit_events_y2026m04"]])
    problems: list[str] = Field(description="What stood in the way of others.", examples=[[]])


class RetentionOut(BaseModel):
    """The result of one run of retention on one table."""

    table: str
    removed_rows: int
    retired: list[ArchiveOut]
    longest_lock_ms: float
    error: str | None = Field(description="Why something stayed that is too old.")

    @classmethod
    def of(cls, run: Retention) -> Self:
        return cls(
            table=run.table_name,
            removed_rows=run.removed_rows,
            retired=[ArchiveOut.of(gone.archive) for gone in run.retired],
            longest_lock_ms=max((gone.locked.total_seconds() * 1000 for gone in run.retired), default=0.0),
            error=run.error,
        )
