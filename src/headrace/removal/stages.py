"""What the child does: one stage of one removal, on the files of one folder. Nothing here runs anywhere else."""

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from pydantic import TypeAdapter

from headrace.errors import HeadraceError
from headrace.removal.documents.slides import legacy
from headrace.removal.errors import ModelDamaged, PictureUnreadable, TargetUnusable
from headrace.removal.order import Stage, StageOrder, StageReport
from headrace.removal.progress import Progress
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
    parsed = _ORDER.validate_python(order)
    try:
        return asdict(run(parsed, context.progress))
    except (ModelDamaged, TargetUnusable, ReportFailed, LeaseLost):  # the last two say nothing about the file
        raise
    except HeadraceError as exc:
        raise Fatal(exc.message.replace(f"{parsed.folder}/", ""), code=exc.code) from exc
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


class Stages(Protocol):
    """The four stages of one kind of media. Each works on the files of the order's folder."""

    def prepare(self, order: StageOrder, progress: Progress) -> StageReport: ...

    def detect(self, order: StageOrder, progress: Progress) -> StageReport: ...

    def inpaint(self, order: StageOrder, progress: Progress) -> StageReport: ...

    def package(self, order: StageOrder, progress: Progress) -> StageReport: ...


def stages_of(media: str, *, animated: bool) -> Stages:
    """Loads the libraries of one kind of media."""
    if media == "IMAGE" and animated:
        from headrace.removal.images import animated_stages

        return animated_stages
    if media == "IMAGE":
        from headrace.removal.images import stages as image_stages

        return image_stages
    if media in ("PDF", "PPT"):
        from headrace.removal.documents import stages as document_stages

        return document_stages
    if media == "VIDEO":
        from headrace.removal.video import stages as video_stages

        return video_stages
    raise LookupError(f"there are no stages for {media}")


def run(order: StageOrder, progress: Progress) -> StageReport:
    """The stage that the order names."""
    stages = stages_of(order.media, animated=order.order.frames > 1)
    by_stage = {
        Stage.PREPROCESSING: stages.prepare,
        Stage.DETECTING: stages.detect,
        Stage.INPAINTING: stages.inpaint,
        Stage.PACKAGING: stages.package,
    }
    return by_stage[order.stage](order, progress)
