"""Send many bad files through the inspection and show what became of them.

``python -m tests.assets.inspection.bad_files --mutations 1000 --files FOLDER`` takes every file of the folder, too, as
it is and (``--harm``) harmed; ``--json FILE`` writes a line for each.
"""

import argparse
import asyncio
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from headrace.assets.inspection.errors import FileRefused
from headrace.assets.inspection.model import FileLimits
from headrace.assets.inspection.service import Inspector, InspectorConfig
from tests.assets.inspection import bad

CONFIG = InspectorConfig(processes=2, wall_seconds=30, cpu_seconds=20)
_KINDS = (
    (b"\xff\xd8\xff", "jpeg"), (b"\x89PNG", "png"), (b"GIF8", "gif"), (b"II*\0", "tiff"), (b"MM\0*", "tiff"),
    (b"RIFF", "riff"), (b"%PDF", "pdf"), (b"PK\3\4", "zip"), (b"\xd0\xcf\x11\xe0", "ole"), (b"\x1a\x45\xdf\xa3", "mkv"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """``code`` is ok, or that of the refusal."""

    name: str
    kind: str
    code: str
    message: str
    seconds: float


async def send_all(
    inspector: Inspector, files: Iterator[tuple[str, bytes]], folder: Path, *, limits: FileLimits | None = None
) -> list[Outcome]:
    """Each through the inspection, as many at a time as there are children. Whatever is no refusal comes through."""
    outcomes: list[Outcome] = []

    async def send(worker: int) -> None:
        path = folder / f"file-{worker}"
        for name, content in files:
            path.write_bytes(content)
            begun = time.monotonic()
            code, message = "ok", ""
            try:
                await inspector.inspect(path, limits=limits or FileLimits())
            except FileRefused as exc:
                code, message = exc.code, exc.message
            outcomes.append(Outcome(name, kind_of(content), code, message, time.monotonic() - begun))

    async with asyncio.TaskGroup() as group:
        for worker in range(CONFIG.processes):
            group.create_task(send(worker))
    return outcomes


def kind_of(content: bytes) -> str:
    """By its first bytes, as far as these are left."""
    if content[4:8] in (b"ftyp", b"moov", b"mdat", b"wide"):
        return "heic" if content[8:12] in (b"heic", b"mif1") else "mp4"
    return next((name for start, name in _KINDS if content.startswith(start)), "other")


def largest_child(inspector: Inspector) -> int:
    """The most memory, in bytes, that a child of now or before has had."""
    living = 0
    for pid in inspector.pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                living = max(living, int(line.split()[1]) * 1024)
    return max(living, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)


def _files(arguments: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    yield from ((name, content) for name, (_, content) in bad.crafted().items())
    yield from bad.mutations(arguments.mutations, arguments.seed)
    dice = random.Random(arguments.seed)
    for folder in arguments.files:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            content = path.read_bytes()
            yield str(path), content
            for _ in range(arguments.harm if content else 0):
                yield f"{path} (harmed)", bad.harm(content, dice)


def _show(outcomes: list[Outcome]) -> None:
    counted = Counter((outcome.code, outcome.kind) for outcome in outcomes)
    kinds = sorted({outcome.kind for outcome in outcomes})
    sys.stdout.write(f"{'':24}" + "".join(f"{kind:>8}" for kind in [*kinds, "all"]) + "\n")
    for code in sorted({outcome.code for outcome in outcomes}):
        row = [counted[code, kind] for kind in kinds]
        sys.stdout.write(f"{code:24}" + "".join(f"{number or '':>8}" for number in [*row, sum(row)]) + "\n")


async def _main(arguments: argparse.Namespace) -> None:
    own = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        async with Inspector(CONFIG) as inspector:
            await inspector.prepare()
            before = own.memory_info().rss
            outcomes = await send_all(inspector, _files(arguments), Path(folder))
            most, grown = largest_child(inspector), own.memory_info().rss - before
    _show(outcomes)
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    sys.stdout.write(
        f"{len(outcomes):,} files; the slowest took {slowest.seconds:.1f} s ({slowest.name}, {slowest.code}); the "
        f"largest child had {most / 1024**2:.0f} MB; this process grew by {grown / 1024**2:.0f} MB\n"
    )
    if arguments.json is not None:
        rows = ({name: getattr(outcome, name) for name in Outcome.__slots__} for outcome in outcomes)
        arguments.json.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=Path, action="append", default=[])
    parser.add_argument("--harm", type=int, default=0, help="how often each file of the folders is harmed")
    parser.add_argument("--json", type=Path)
    asyncio.run(_main(parser.parse_args()))
