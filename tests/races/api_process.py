"""An API in a process of its own, to be killed: ``python -m tests.races.api_process DATABASE_URL SECONDS``.

Prints the port it listens on, and ``inside`` when a request has done its work; it commits SECONDS later.
"""

import asyncio
import socket
import sys
from typing import Annotated

import uvicorn
from fastapi import Depends, Response
from pydantic import BaseModel

from headrace import ids
from headrace.database import Database, DatabaseConfig, Tx
from headrace.edge.authorization import SignedIn
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand

PAUSE = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
router = Router(prefix="/v1")


class Order(BaseModel):
    name: str


class Made(BaseModel):
    id: str


@router.post("/orders", status_code=201, response_model=Made, responses=problems(*ONCE))
async def create_order(
    body: Order, caller: SignedIn, db: Db, once: Annotated[Once, Depends(idempotent("orders.create"))]
) -> Response:
    async def act(tx: Tx) -> Answer:
        made = ids.new("u")
        await tx.execute(
            "INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $2, '!')", made, f"{body.name}.{made}"
        )
        say("inside")
        await asyncio.sleep(PAUSE)
        return Answer(Made(id=made))

    return await once.run(db, act)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main(database_url: str) -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    async with await Database.connect(DatabaseConfig(database_url, role="api")) as db:
        app = create_app(stand.services(db), WebConfig(), routers=[router])
        say(str(bound.getsockname()[1]))
        await uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off")).serve(sockets=[bound])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
