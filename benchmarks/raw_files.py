"""The least that an upload and a download can cost: an ASGI app without any of ours around it.

``python -m benchmarks.raw_files FOLDER PORT``: POST writes the body to a file and fsyncs it, GET gives
``FOLDER/served``.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import uvicorn

_PIECE = 1024 * 1024


def sink(folder: Path) -> Any:
    numbers = iter(range(10**9))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "GET":
            await _give(folder / "served", send)
            return
        file = os.open(folder / f"raw.{next(numbers)}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        pieces, size = [], 0
        while True:
            message = await receive()
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size >= _PIECE or not message.get("more_body"):
                await asyncio.to_thread(os.writev, file, pieces)
                pieces, size = [], 0
            if not message.get("more_body"):
                break
        await asyncio.to_thread(os.fsync, file)
        os.close(file)
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


async def _give(path: Path, send: Any) -> None:
    with path.open("rb") as file:
        length = str(os.fstat(file.fileno()).st_size).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        while piece := await asyncio.to_thread(file.read, _PIECE):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    uvicorn.run(sink(Path(sys.argv[1])), port=int(sys.argv[2]), http="h11", log_level="error", access_log=False)
