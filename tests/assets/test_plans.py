"""What a user's plan says of files counts: how large one is, how much is kept, and for how long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from headrace.assets.service import Files
from headrace.database import Database
from tests.assets import stand
from tests.assets.stand import png
from tests.edge import stand as edge


@asynccontextmanager
async def served(
    db: Database, files: Files, *features: dict[str, Any], **config: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    """Somebody whose plan says this, at an API with these settings."""
    user_id = await edge.user(db, "ida")
    await stand.grant_features(db, user_id, *features)
    app = stand.app(db, stand.files(files.storage, files.inspector, files.scratch, **config))
    async with edge.client(app, Authorization=f"Bearer {user_id}") as ida:
        yield ida


async def test_a_file_of_a_kind_is_as_large_as_the_plan_says(db: Database, files: Files) -> None:  # W-11, W-18
    size = len(png())
    limit = {"feature": "max_file_bytes", "media_type": "IMAGE", "bytes": size}
    async with served(db, files, limit) as ida:
        assert (await ida.post("/v1/assets", content=png())).status_code == 201
        refused = await ida.post("/v1/assets", content=png(tail=100))
        assert (refused.status_code, refused.json()["code"]) == (400, "file_too_large")
        assert (await ida.get("/v1/assets/usage")).json()["largest_file_bytes"] == 2 << 30, "a video, by default"


async def test_a_plan_says_how_much_is_stored_and_for_how_long(db: Database, files: Files) -> None:  # W-11, W-18
    room = {"feature": "stored_bytes", "bytes": len(png())}
    keep = {"feature": "retention_days", "of": "originals", "days": 90}
    async with served(db, files, room, keep, stored_bytes=1) as ida:
        stored = await ida.post("/v1/assets", content=png())
        assert stored.status_code == 201, "the plan counts, and not the settings"
        kept = datetime.fromisoformat(stored.json()["expire_at"]) - datetime.now(UTC)
        assert timedelta(days=89) < kept <= timedelta(days=90)
        assert (await ida.post("/v1/assets", content=png(shade=2))).json()["code"] == "storage_quota_exceeded"
        assert (await ida.get("/v1/assets/usage")).json()["limit_bytes"] == len(png())
