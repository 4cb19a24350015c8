"""What the child does: one stage of one removal, on the files of one folder. Nothing here runs anywhere else."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from headrace.errors import HeadraceError
from headrace.removal.errors import ModelDamaged, PictureUnreadable, TargetUnusable
from headrace.removal.pipeline.model import Stage, StageOrder, StageReport
from headrace.removal.progress import Progress
from headrace.removal.slides import legacy
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal, LeaseLost
from headrace.tasks.isolation.errors import ReportFailed
from headrace.tasks.isolation.preloading import preloads

_ORDER = TypeAdapter(StageOrder)


def _load_libraries() -> None:
    """Once in each child: what all media need, outside of a task's time and memory."""
    import cv2
    import numpy as np
    from PIL import Image

    Image.init()
    _ = cv2, np


@preloads(_load_libraries)
def run_stage(context: BlockingTaskContext, order: dict[str, Any]) -> dict[str, Any]:
    """The handler. What is wrong with a file will not be better at the next attempt; a damaged installation may."""
    told = _ORDER.validate_python(order)
    try:
        return asdict(_stage(told)(told, context.progress))
    except (ModelDamaged, TargetUnusable, ReportFailed, LeaseLost):  # the last two say nothing about the file
        raise
    except HeadraceError as exc:
        raise Fatal(exc.message.replace(f"{told.folder}/", ""), code=exc.code) from exc
    except MemoryError as exc:  # it would take as much the next time
        raise Fatal("The file exceeds the memory limit.", code=PictureUnreadable.code) from exc


@dataclass(frozen=True, slots=True)
class Conversion:
    """From one file of a folder to another, by its ending."""

    folder: str
    source: str
    result: str


def run_conversion(_context: BlockingTaskContext, order: Conversion) -> None:
    """Turn slides of the old kind into the new one, or back. This child has the worker's files: it reads neither
    presentation, LibreOffice does, which has nothing but a folder of its own."""
    try:
        source, result = f"{order.folder}/{order.source}", f"{order.folder}/{order.result}"
        with legacy.converted(source, result.rpartition(".")[2], within=order.folder) as made:
            made.rename(result)
    except HeadraceError as exc:
        raise Fatal(exc.message.replace(f"{order.folder}/", ""), code=exc.code) from exc


def _stage(told: StageOrder) -> Callable[[StageOrder, Progress], StageReport]:
    match told.media:
        case "IMAGE" if told.order.frames > 1:
            from headrace.removal.pipeline import animated_stages as stages
        case "IMAGE":
            from headrace.removal.pipeline import picture_stages as stages  # type: ignore[no-redef]
        case "PDF" | "PPT":
            from headrace.removal.pipeline import document_stages as stages  # type: ignore[no-redef]
        case "VIDEO":
            from headrace.removal.pipeline import video_stages as stages  # type: ignore[no-redef]
        case _:
            raise LookupError(f"there are no stages for {told.media}")

    def run(order: StageOrder, progress: Progress) -> StageReport:
        by_stage = {
            Stage.PREPROCESSING: stages.prepare,
            Stage.DETECTING: stages.detect,
            Stage.INPAINTING: stages.inpaint,
            Stage.PACKAGING: stages.package,
        }
        return by_stage[order.stage](order, progress)

    return run
