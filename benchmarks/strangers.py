"""What becomes of files that nobody here made: whole ones, marked ones, broken ones, hostile ones.

    python -m benchmarks.strangers_files --to FOLDER             # fetches some thousand files
    python -m benchmarks.strangers FOLDER [--results FOLDER] [--json]

The folders in FOLDER are the sources. Every file goes the way of an uploaded one: looked into, then the steps of its
medium, each in the child that the service gives it, with its limits. What inspection refuses goes to the step of its
ending nevertheless: no parser may rely on another. See README.md.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headrace.assets.inspection.errors import FileRefused, InspectionCrashed, InspectionMemory, InspectionTimeout
from headrace.assets.inspection.model import FileLimits, Format
from headrace.assets.inspection.service import Inspector, InspectorConfig
from headrace.removal.order import ENDINGS, Names, Order, Stage, StageOrder
from headrace.removal.runner import Conversion, payload_of, stage_types
from headrace.removal.service.config import RemoverConfig
from headrace.tasks.errors import BadResult, Fatal
from headrace.tasks.isolation.errors import CrashCause, Crashed, HandlerFailed
from headrace.tasks.isolation.single import Standalone

_BY_ENDING = {
    ".jpg": Format.JPEG, ".jpeg": Format.JPEG, ".png": Format.PNG, ".webp": Format.WEBP, ".tif": Format.TIFF,
    ".tiff": Format.TIFF, ".gif": Format.GIF, ".mp4": Format.MP4, ".mov": Format.MOV, ".mkv": Format.MKV,
    ".webm": Format.WEBM, ".pdf": Format.PDF, ".pptx": Format.PPTX, ".ppsx": Format.PPTX, ".potx": Format.PPTX,
    ".pptm": Format.PPTX, ".ppt": Format.PPT, ".pps": Format.PPT,
}  # fmt: skip
_ODD = Format.PNG  # what has another ending is given to the pictures' parsers
_COLUMNS = ("no mark", "asks", "changed", "refused", "failed check", "error", "crashed", "over the limit")

console = Console(stderr=True)


@dataclass(frozen=True)
class Tried:
    source: str
    file: str
    format: str
    outcome: str  # one of _COLUMNS
    code: str = ""
    inspected: str = "taken"
    candidates: int = 0
    megabytes: float = 0.0  # the most of the child
    seconds: float = 0.0


class Trial:
    """One child for looking, one for the steps, and a folder in which both find one file at a time."""

    def __init__(self, scratch: Path, results: Path | None, seconds: int) -> None:
        self._scratch, self._results = scratch, results
        self._inspector = Inspector(InspectorConfig(processes=1, wall_seconds=seconds))
        self._children = Standalone(size=1, folder=scratch)
        self._confined, self._converting = stage_types(
            RemoverConfig(wall_seconds=seconds, cpu_seconds=4 * seconds).limits
        )

    async def close(self) -> None:
        await self._inspector.__aexit__()
        await self._children.__aexit__()

    async def run(self, path: Path, source: str) -> Tried:
        began = time.monotonic()
        _forget_peaks(self._pids())
        kind = _BY_ENDING.get(path.suffix.lower(), _ODD)
        inspected, outcome, code, candidates = "taken", "", "", 0
        try:
            kind = (await self._inspector.inspect(path, limits=FileLimits())).format
        except (InspectionCrashed, InspectionTimeout, InspectionMemory) as exc:
            inspected = f"! {exc.code}"
        except FileRefused as exc:
            inspected = exc.code
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            shutil.copyfile(path, folder / Names.SOURCE)
            outcome, code, candidates = await self._steps(kind, folder)
            if outcome == "changed" and self._results is not None:
                target = self._results / source / f"{path.stem}.clean.{ENDINGS[_written(kind)]}"
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / f"result.{ENDINGS[_written(kind)]}", target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if inspected.startswith("!"):
            outcome, code = "crashed", inspected[2:]
        peak = _peak(self._pids())
        return Tried(
            source, path.name, str(kind), outcome, code, inspected, candidates, peak,
            round(time.monotonic() - began, 2),
        )  # fmt: skip

    async def _steps(self, kind: Format, folder: Path) -> tuple[str, str, int]:
        name = f"result.{ENDINGS[_written(kind)]}"
        order = Order(
            str(folder / Names.SOURCE),
            str(folder / name),
            media=str(kind.media_type),
            format=kind,
            output_format=_written(kind),
        )
        earlier: dict[str, Any] = {}
        found = 0
        for stage in Stage:
            told = StageOrder(order, stage, str(folder), earlier=earlier)
            try:
                if kind is Format.PPT and stage is Stage.DETECTING:
                    await self._convert(folder, Names.SOURCE, Names.CONVERTED)
                report = await self._children.run(self._confined, payload_of(told))
                if Names.CLEANED in report["keeps"]:
                    await self._convert(folder, Names.CLEANED, name)
            except Fatal as exc:
                return "refused", str(exc.details.get("code")), found
            except Crashed as exc:
                over = exc.cause in (CrashCause.TIME, CrashCause.MEMORY)
                return "over the limit" if over else "crashed", f"{exc.cause} in {stage}", found
            except (BadResult, HandlerFailed) as exc:
                return "error", f"{stage}: {exc.message.splitlines()[0][:120]}", found
            if stage is Stage.DETECTING:
                found = len(report["candidates"])
                earlier = {**report["facts"], "candidates": report["candidates"]}
            if report["refused"] is not None:
                outcome = {"NO_MARK": "no mark", "NEEDS_REVIEW": "asks"}.get(report["refused"])
                if outcome is None:
                    outcome = "failed check" if stage in (Stage.INPAINTING, Stage.PACKAGING) else "refused"
                return outcome, report["refused"], found
        return "changed", "", found

    async def _convert(self, folder: Path, source: str, result: str) -> None:
        await self._children.run(self._converting, asdict(Conversion(str(folder / source), str(folder / result))))

    def _pids(self) -> frozenset[int]:
        return self._inspector.pids | self._children.pids


def _written(kind: Format) -> Format:
    return Format.PNG if kind is Format.HEIC else kind


def _forget_peaks(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak(pids: Iterable[int]) -> float:
    """Megabytes of the larger child since it was last asked; a child that died tells nothing."""
    most = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    most = max(most, int(line.split()[1]) / 1024)
    return round(most, 1)


def files_of(folder: Path) -> list[tuple[str, Path]]:
    """Every file once, with the folder that it comes from."""
    seen: set[bytes] = set()
    found = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        digest = hashlib.sha256(path.read_bytes()).digest()
        if digest not in seen:
            seen.add(digest)
            inside = path.relative_to(folder).parts
            found.append(("/".join(inside[:-1][:2]) or "-", path))
    return found


async def try_all(files: list[tuple[str, Path]], *, results: Path | None, processes: int, seconds: int) -> list[Tried]:
    waiting = iter(files)
    tried: list[Tried] = []

    async def work() -> None:
        with tempfile.TemporaryDirectory(prefix="strangers-") as scratch:
            trial = Trial(Path(scratch), results, seconds)
            try:
                for source, path in waiting:
                    tried.append(await trial.run(path, source))
                    if len(tried) % 100 == 0:
                        console.print(f"  {len(tried)} of {len(files)}", highlight=False)
            finally:
                await trial.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(processes):
            group.create_task(work())
    return tried


def show(tried: list[Tried]) -> None:
    by_source: dict[str, list[Tried]] = defaultdict(list)
    for each in tried:
        by_source[each.source].append(each)
    table = Table("source", "files", *_COLUMNS, "most MB", "most s")
    for source, rows in [*sorted(by_source.items()), ("all", tried)]:
        counts = Counter(each.outcome for each in rows)
        table.add_row(
            source, str(len(rows)), *(str(counts[name] or "") for name in _COLUMNS),
            f"{max(each.megabytes for each in rows):.0f}", f"{max(each.seconds for each in rows):.1f}",
        )  # fmt: skip
    Console(width=160).print(table)
    for column in ("changed", "asks", "failed check", "error", "crashed", "over the limit"):
        for each in sorted(tried, key=lambda row: (row.source, row.file)):
            if each.outcome == column:
                print(f"{column:14} {each.source}/{each.file} {each.code}".rstrip())
    codes = Counter(each.code for each in tried if each.outcome == "refused")
    print("refused: " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))


def figures(tried: list[Tried]) -> dict[str, float]:
    counts = Counter(each.outcome for each in tried)
    return {
        "strangers_files": len(tried),
        **{f"strangers_{name.replace(' ', '_')}": counts[name] for name in _COLUMNS},
        "strangers_most_mb": max((each.megabytes for each in tried), default=0.0),
        "strangers_most_s": max((each.seconds for each in tried), default=0.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, help="where what was changed goes")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=120, help="what one step may take")
    parser.add_argument("--rows", type=Path, help="one JSON object for each file, for a closer look")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    tried = asyncio.run(
        try_all(files_of(asked.folder), results=asked.results, processes=asked.processes, seconds=asked.seconds)
    )
    if asked.rows is not None:
        asked.rows.write_text("".join(json.dumps(asdict(each)) + "\n" for each in tried))
    show(tried)
    if asked.json:
        print(json.dumps(figures(tried)))


if __name__ == "__main__":
    main()
