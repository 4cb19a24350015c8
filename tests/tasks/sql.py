"""Calling ``headrace.submit`` as other programs do: over a plain connection, and with psql."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.database import Database, Row
from headrace.embedded_postgres import binaries
from headrace.errors import HeadraceError
from headrace.tasks.context import TaskContext
from tests.missing_programs import missing


async def submit(db: Database, name: str = "report.build", payload: Any = None, **options: Any) -> str:
    """Call it with named arguments, as a program would that knows what it does."""
    options = {"unknown_type": "wait", "trusted": True, **options}
    named = "".join(f", {option} => ${number}" for number, option in enumerate(options, start=3))
    [row] = await db.fetch_alone(
        f"SELECT headrace.submit($1, $2{named}) AS id", name, {} if payload is None else payload, *options.values()
    )
    task_id: str = row["id"]
    return task_id


async def row_of(db: Database, table: str, task_id: str) -> Row:
    column = "id" if table == "tasks" else "task_id"
    [row] = await db.fetch_alone(f"SELECT * FROM headrace.{table} WHERE {column} = $1", task_id)
    return row


async def count(db: Database, table: str) -> int:
    [row] = await db.fetch_alone(f"SELECT count(*) AS many FROM headrace.{table}")
    many: int = row["many"]
    return many


@asynccontextmanager
async def caller(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A program of somebody's own, with a plain connection."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def nothing(context: TaskContext, payload: Any) -> None: ...


def psql() -> str:
    try:
        beside = [folder / "psql" for folder in binaries.list_folders(None)]
    except HeadraceError:
        beside = []
    found = next((str(program) for program in beside if program.exists()), None) or shutil.which("psql")
    if found is None:
        pytest.skip(missing("psql"))
    return found


async def run_psql(url: str, script: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        psql(), _for_libpq(url), "-XqAt", "-v", "ON_ERROR_STOP=1",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=Path("/"),
    )  # fmt: skip
    out, err = await process.communicate(script.encode())
    assert process.returncode is not None
    return process.returncode, out.decode().strip(), err.decode()


def _for_libpq(url: str) -> str:
    return url.replace("?role=headrace_app", "?options=-c%20role%3Dheadrace_app")
