"""The four stages of a removal, and their implementation for each kind of media."""

from typing import Protocol

from headrace.removal.ai_labels import withhold
from headrace.removal.order import Progress, Stage, StageOrder
from headrace.removal.report import Report


class Stages(Protocol):
    """The four stages of one kind of media. Each leaves files for the next in the order's folder."""

    def prepare(self, order: StageOrder, progress: Progress) -> Report: ...

    def detect(self, order: StageOrder, progress: Progress) -> Report: ...

    def inpaint(self, order: StageOrder, progress: Progress) -> Report: ...

    def package(self, order: StageOrder, progress: Progress) -> Report: ...


def stages_of(media: str | None, *, animated: bool) -> Stages:
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


def run(order: StageOrder, progress: Progress) -> Report:
    """The stage that the order names."""
    stages = stages_of(order.order.media, animated=order.order.frames > 1)
    by_stage = {
        Stage.PREPROCESSING: stages.prepare,
        Stage.DETECTING: stages.detect,
        Stage.INPAINTING: stages.inpaint,
        Stage.PACKAGING: stages.package,
    }
    report = by_stage[order.stage](order, progress)
    return withhold(order.order, report) if order.stage is Stage.DETECTING else report
