"""The bare route beside ``POST /v1/tasks``: FastAPI parses a body and inserts one row.

``python -m benchmarks.raw_route URL PORT``
"""

import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson
import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel

TABLE = """
CREATE TABLE IF NOT EXISTS public.bare (id text PRIMARY KEY, type text, payload jsonb, at timestamptz DEFAULT now())
"""
INSERT = "INSERT INTO public.bare (id, type, payload) VALUES ($1, $2, $3) RETURNING at"


class Body(BaseModel):
    type: str
    payload: dict[str, Any] = {}


def app(url: str) -> FastAPI:
    @asynccontextmanager
    async def life(bare: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(url, min_size=2, max_size=10) as pool:
            await pool.execute(TABLE)
            bare.state.pool = pool
            yield

    bare = FastAPI(lifespan=life)

    @bare.post("/tasks", status_code=201)
    async def create(body: Body) -> Response:
        row_id = uuid.uuid4().hex
        at = await bare.state.pool.fetchval(INSERT, row_id, body.type, orjson.dumps(body.payload).decode())
        return Response(orjson.dumps({"id": row_id, "at": at}), 201, media_type="application/json")

    return bare


if __name__ == "__main__":
    uvicorn.run(app(sys.argv[1]), port=int(sys.argv[2]), log_level="warning", access_log=False)
