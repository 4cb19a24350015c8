"""Files, beside the raw limit of the same machine in the same run: `make bench name=files`.

One upload of 2 GB by curl and its download; 2,000 files of 100 KB over 8 connections; how long a look into a file
takes. The raw limit is a bare ASGI app on uvicorn (benchmarks/raw_files.py) that writes and fsyncs, or reads and sends.
Rounds alternate.
"""

import argparse
import asyncio
import io
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import scratch_server
from headrace.assets.inspection.model import FileLimits
from headrace.assets.inspection.service import Inspector, InspectorConfig

PASSWORD = "correct horse battery"
TARGETS: Targets = {
    "upload_raw": ("an upload of 2 GB against the raw sink", 0.6),
    "upload_rss_mb": ("by how much the API's memory grows meanwhile", -64),
    "small_raw": ("files of 100 KB a second against the raw sink", 0.3),
    "download_raw": ("a download of 2 GB against raw sending", 0.5),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    large: int = 2_000_000_000
    small: int = 2_000
    rounds: int = 3


QUICK = Sizes(large=200_000_000, small=200, rounds=2)


def video(seconds: int) -> bytes:
    """A real MP4, small for its length."""
    import av
    import numpy as np

    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as container:
        stream: Any = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height = 320, 240
        for number in range(25 * seconds):
            picture = np.full((240, 320, 3), number % 256, dtype=np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return target.getvalue()


def padded(content: bytes, size: int, path: Path) -> None:
    """The same video with free room at its end, so that the file has this size."""
    with path.open("wb") as file:
        file.write(content)
        left = size - len(content)
        file.write(struct.pack(">I4sQ", 1, b"free", left))
        piece = os.urandom(1024 * 1024)
        left -= 16
        while left > 0:
            left -= file.write(piece[:left])


def photograph(pixels: tuple[int, int], *, quality: int = 90) -> bytes:
    from PIL import Image

    target = io.BytesIO()
    noise = Image.effect_noise((pixels[0] // 8, pixels[1] // 8), 60).resize(pixels).convert("RGB")
    noise.save(target, "JPEG", quality=quality)
    return target.getvalue()


def document(pages: int) -> bytes:
    import pikepdf

    target = io.BytesIO()
    with pikepdf.new() as pdf:
        for _ in range(pages):
            pdf.add_blank_page()
        pdf.save(target)
    return target.getvalue()


# -- the servers


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


@contextmanager
def process(*command: str, url: str, environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL) as running:
        try:
            for _ in range(600):
                try:
                    httpx2.get(url)
                    break
                except httpx2.TransportError:
                    assert running.poll() is None, f"{command} has ended"
                    time.sleep(0.1)
            yield running
        finally:
            running.terminate()


@dataclass(frozen=True, slots=True)
class Stand:
    api: str
    raw: str
    key: str
    pid: int
    folder: Path


@contextmanager
def stand(database: str, folder: Path) -> Iterator[Stand]:
    """An API and a raw sink, each a process, on the same disk."""
    api, raw = f"http://127.0.0.1:{(port := free_port())}", f"http://127.0.0.1:{(other := free_port())}"
    environment = {
        "HEADRACE_DATABASE_URL": database,
        "HEADRACE_SECRET_KEY": "0" * 64,
        "HEADRACE_DATA_DIR": str(folder / "data"),
        "HEADRACE_API_PORT": str(port),
        "HEADRACE_API_RATE_LIMIT": "1000000",
        "HEADRACE_API_RATE_BURST": "1000000",
        "HEADRACE_FILES_STORED_BYTES": "1TiB",
        "HEADRACE_LOG_LEVEL": "WARNING",
        "HEADRACE_REGISTRATION": "open",
    }
    (folder / "raw").mkdir()
    (folder / "raw" / "served").touch()  # what is asked for to see whether it is up
    with ExitStack() as stack:
        serving = stack.enter_context(
            process(sys.executable, "-m", "headrace", "api", url=f"{api}/healthz", environment=environment)
        )
        stack.enter_context(
            process(sys.executable, "-m", "benchmarks.raw_files", str(folder / "raw"), str(other), url=raw + "/none")
        )
        yield Stand(api, raw, _key(api), serving.pid, folder)


def _key(api: str) -> str:
    person = {"username": "bench", "password": PASSWORD}
    httpx2.post(f"{api}/v1/auth/register", json=person).raise_for_status()
    token = httpx2.post(f"{api}/v1/auth/login", json=person).json()["token"]
    asked = {"name": "bench", "scopes": ["files:read", "files:write"]}
    answer = httpx2.post(f"{api}/v1/api-keys", json=asked, headers={"Authorization": f"Bearer {token}"}).json()
    return str(answer["key"])


# -- what is measured


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def watched(pid: int, found: list[float]) -> Iterator[None]:
    """The largest growth of a process's memory while the block runs, in MB."""
    before, over = rss_mb(pid), threading.Event()
    most = [before]

    def watch() -> None:
        while not over.wait(0.05):
            most.append(rss_mb(pid))

    watching = threading.Thread(target=watch)
    watching.start()
    yield
    over.set()
    watching.join()
    found.append(max(most) - before)


def curl(*arguments: str) -> float:
    """Seconds that it took."""
    started = time.perf_counter()
    done = subprocess.run(["curl", "-sSf", "-o", *arguments], check=True, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return time.perf_counter() - started


def measure_large(run: Run[Sizes], at: Stand) -> None:
    path, answer = at.folder / "large.mp4", at.folder / "answer"
    base = video(2)
    grown: list[float] = []
    key = f"Authorization: Bearer {at.key}"
    # The first file starts the children that look into it.
    httpx2.post(f"{at.api}/v1/assets", content=base, headers={"Authorization": f"Bearer {at.key}"}).raise_for_status()
    for number in range(run.sizes.rounds):
        padded(base, run.sizes.large, path)
        megabytes = run.sizes.large / 1e6
        raw = curl(os.devnull, "-T", str(path), "-X", "POST", at.raw)
        (at.folder / "raw" / f"raw.{number}").unlink(missing_ok=True)
        run.note("upload_raw_mb_s", megabytes / raw)
        with watched(at.pid, grown):
            ours = curl(str(answer), "-T", str(path), "-X", "POST", "-H", key, f"{at.api}/v1/assets?name=large.mp4")
        run.note("upload_mb_s", megabytes / ours)
        made = httpx2.Response(200, content=answer.read_bytes()).json()
        served = at.folder / "raw" / "served"
        served.unlink(missing_ok=True)
        path.rename(served)
        run.note("download_raw_mb_s", megabytes / curl(os.devnull, at.raw))
        url = f"{at.api}/v1/assets/{made['id']}/content"
        run.note("download_mb_s", megabytes / curl(os.devnull, "-H", key, url))
        httpx2.delete(f"{at.api}/v1/assets/{made['id']}", headers={"Authorization": f"Bearer {at.key}"})
        (at.folder / "data" / "files" / "media" / made["user_id"] / made["id"]).unlink(missing_ok=True)
    run.note("upload_rss_mb", max(grown))


async def measure_small(run: Run[Sizes], at: Stand) -> None:
    picture = photograph((700, 500))
    for number in range(run.sizes.rounds):
        run.note("small_raw_per_s", await _send(at.raw, "", picture, run.sizes.small, number))
        run.note("small_per_s", await _send(f"{at.api}/v1/assets?name=s.jpg", at.key, picture, run.sizes.small, number))


async def _send(url: str, key: str, picture: bytes, count: int, salt: int) -> float:
    numbers = iter(range(count))
    room = 100_000 - len(picture)

    async def sender(client: httpx2.AsyncClient) -> None:
        for number in numbers:
            # Behind its end a JPEG may have anything; each is another file.
            content = picture + random.Random(f"{salt} {number}").randbytes(max(room, 16))
            (await client.post(url, content=content)).raise_for_status()

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key or None}"}, timeout=60) as client:
        await sender_of_one(client, url, picture)
        started = time.perf_counter()
        await asyncio.gather(*(sender(client) for _ in range(8)))
        return count / (time.perf_counter() - started)


async def sender_of_one(client: httpx2.AsyncClient, url: str, picture: bytes) -> None:
    """The first one starts the children, and is not counted."""
    (await client.post(url, content=picture)).raise_for_status()


async def measure_inspection(run: Run[Sizes], folder: Path) -> None:
    samples = {
        "jpeg": photograph((4000, 3000)),
        "pdf": document(100),
        "video": video(60),
    }
    async with Inspector(InspectorConfig(processes=1)) as inspector:
        await inspector.prepare()
        for name, content in samples.items():
            path = folder / name
            path.write_bytes(content)
            for _ in range(5):
                started = time.perf_counter()
                await inspector.inspect(path, limits=FileLimits())
                run.note(f"inspect_{name}_ms", (time.perf_counter() - started) * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    sizes = QUICK if chosen.quick else Sizes()
    with scratch_server() as url, tempfile.TemporaryDirectory(prefix="headrace-files-") as named:
        folder = Path(named)
        run = Run(url, sizes, digits=1)
        console.print("how long a look into a file takes", style="bold")
        asyncio.run(measure_inspection(run, folder))
        with stand(url, folder) as at:
            console.print(f"one file of {sizes.large / 1e9:g} GB", style="bold")
            measure_large(run, at)
            console.print(f"{sizes.small:,} files of 100 KB", style="bold")
            asyncio.run(measure_small(run, at))
    print_rounds(run, digits=1)
    figures = {
        "upload_raw": run.paired("upload_mb_s", "upload_raw_mb_s"),
        "upload_rss_mb": run.median("upload_rss_mb"),
        "small_per_s": run.median("small_per_s"),
        "small_raw": run.paired("small_per_s", "small_raw_per_s"),
        "download_raw": run.paired("download_mb_s", "download_raw_mb_s"),
        "inspect_ms": max(run.median(f"inspect_{name}_ms") for name in ("jpeg", "pdf", "video")),
    }
    print_targets(figures, TARGETS)
    if chosen.json:
        print_json(figures, medians=run.medians())


if __name__ == "__main__":
    main()
