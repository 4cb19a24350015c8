"""Those who send files, and have marks taken off them, while the site is harmed."""

import asyncio
import hashlib
import random
from typing import Any

from headrace import ids
from tests.assets.stand import png
from tests.chaos.load import OF_QUOTA, Client, Load, use
from tests.chaos.samples import MEDIA

RIGHTS = {"basis": "OWNER", "statement": "made for this run"}
ENDS = ("SUCCEEDED", "FAILED", "CANCELED")
LARGE = 6_000_000  # more than one part


@use("send a file")
async def send_file(load: Load, choice: random.Random) -> None:
    client = load.client(choice, choice.choice(load.world.senders).token)
    tail = choice.choice([100, 100, 100, 100_000, LARGE if choice.random() < 0.2 else 100])
    content = png(shade=choice.randrange(2**24), tail=tail)
    asset_id = await (in_parts if choice.random() < 0.6 else in_one)(client, content, choice)
    if asset_id is None:
        return
    load.promises.files[asset_id] = hashlib.sha256(content).hexdigest()
    load.promises.done["files sent"] += 1
    if choice.random() < 0.3:
        load.promises.files.pop(asset_id)
        await client.send("DELETE", f"/v1/assets/{asset_id}")


async def in_one(client: Client, content: bytes, _: random.Random, name: str = "x.png") -> str | None:
    answer = await client.insist("POST", f"/v1/assets?name={name}", content, step="upload in one request")
    return str(answer.json()["id"]) if answer.is_success else None


async def in_parts(client: Client, content: bytes, choice: random.Random) -> str | None:
    """Begin, send each part, complete; whatever was harmed is sent again. Some are left unfinished."""
    wish = {"name": "x.png", "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    begun = await client.insist("POST", "/v1/uploads", wish, key=ids.new("req"), step="upload: begin")
    if not begun.is_success:
        return None
    upload: dict[str, Any] = begun.json()
    path, size = f"/v1/uploads/{upload['id']}", upload["part_bytes"]
    for number in range(1, -(-len(content) // size) + 1):
        part = content[(number - 1) * size : number * size]
        sent = await client.insist("PUT", f"{path}/parts/{number}", part, step="upload: part")
        if not sent.is_success or choice.random() < 0.03:
            return None
    while True:
        # 409: the API that completed it was killed, and its lease is not over.
        answer = await client.insist("POST", f"{path}/complete", step="upload: complete")
        if answer.status_code != 409:
            return str(answer.json()["id"]) if answer.is_success else None
        await asyncio.sleep(1)


@use("remove marks")
async def remove_marks(load: Load, choice: random.Random) -> None:
    client = load.client(choice, choice.choice(load.world.senders).token)
    medium = choice.choice(MEDIA)
    sample = load.world.samples[medium]
    asset_id = await in_one(client, sample.read_bytes(), choice, sample.name)
    if asset_id is None:
        return
    wish = {"asset_ids": [asset_id], "rights": RIGHTS}
    answer = await client.insist(
        "POST", "/v1/removals", wish, key=ids.new("req"), step="order a removal", refusals=OF_QUOTA
    )
    if answer.status_code != 201:
        return
    task_id = answer.json()["items"][0]["id"]
    load.promises.keep(f"removal {task_id}", task_id)
    load.promises.removals[task_id] = medium
    if choice.random() < 0.15:
        await asyncio.sleep(choice.uniform(0, 3))
        await client.send("POST", f"/v1/tasks/{task_id}/cancel")
        return
    while not load.calm.is_set():
        seen = await client.send("GET", f"/v1/removals/{task_id}")
        if seen is not None and (not seen.is_success or seen.json()["status"] in ENDS):
            return
        await asyncio.sleep(0.5)
