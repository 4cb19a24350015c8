"""What the soak's users do beside those of chaos: follow tasks, and use the client."""

import asyncio
import random

import httpx2

from headrace.client import Client
from tests.chaos.load import TYPES, Load, use
from tests.chaos.loads import USES

__all__ = ["USES"]


@use("follow over SSE")
async def follow(load: Load, choice: random.Random) -> None:
    """Most leave in the middle."""
    task_id = load.known(choice)
    if task_id is None:
        return
    headers = {"Authorization": f"Bearer {load.world.token}", "Accept": "text/event-stream"}
    path = choice.choice([f"/v1/tasks/{task_id}/events", "/v1/notifications/events"])
    async with httpx2.AsyncClient(timeout=30, headers=headers, trust_env=False) as http:
        for url in load.site.apis():
            try:
                async with asyncio.timeout(choice.uniform(0.01, 3)), http.stream("GET", url + path) as stream:
                    async for _ in stream.aiter_lines():
                        pass
            except TimeoutError:
                load.promises.done["streams left by their client"] += 1


@use("submit with the client")
async def submit_with_client(load: Load, choice: random.Random) -> None:
    for url in load.site.apis():
        async with Client(url, api_key=load.world.token) as client:
            made = await client.submit(choice.choice(TYPES), {"number": choice.randrange(1000)})
            if choice.random() < 0.3:
                await client.wait(made.id)
            load.promises.keep(f"client {made.id}", made.id)
