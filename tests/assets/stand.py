"""An API with files, in a folder or a bucket, and pictures to send."""

import struct
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from headrace.assets import routes
from headrace.assets.config import FileConfig
from headrace.assets.service import Files, Inspects
from headrace.billing.granting import grant
from headrace.billing.plans.model import FREE_PLAN
from headrace.database import Database
from headrace.edge.limits import LimitConfig
from headrace.storage import Storage, StorageConfig
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand

KEY = b"k" * 32


def png(width: int = 2, height: int = 2, *, shade: int = 0, tail: int = 0) -> bytes:
    """A picture; ``tail`` bytes of text make it as large as need be, and ``shade`` another one."""
    rows = (b"\0" + shade.to_bytes(3) * width) * height

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    text = chunk(b"tEXt", b"Comment\0" + b"x" * tail) if tail else b""
    chunks = (chunk(b"IHDR", head), text, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def files(storage: Storage, inspector: Inspects, scratch: Path, **config: Any) -> Files:
    return Files(storage, inspector, FileConfig(**config), scratch, KEY, "http://test")


def folder(path: Path) -> Storage:
    return Storage(StorageConfig(f"file://{path}"))


def app(db: Database, served: Files) -> FastAPI:
    services = stand.services(db, limits=LimitConfig(per_minute=1_000_000, burst=1_000_000))
    return create_app(services, WebConfig(streamed_paths=routes.STREAMED), routers=[routes.create_router(served)])


async def grant_features(db: Database, user_id: str, *features: dict[str, Any]) -> None:
    """Give a user a plan with these features for two days."""
    now = datetime.now(UTC)
    async with db.transaction() as tx:
        await grant(
            tx,
            user_id=user_id,
            plan_id=FREE_PLAN,
            subscription_id=None,
            units=1,
            period_start=now - timedelta(days=1),
            period_end=now + timedelta(days=1),
            features=list(features),
        )
