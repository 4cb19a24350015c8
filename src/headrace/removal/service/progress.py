"""Progress and remaining time of a removal, reported by the child, at most as often as people read it."""

import time

from headrace.removal.order import Stage
from headrace.tasks.context import TaskContext
from headrace.tasks.isolation.single import Unreported
from headrace.tasks.model import Claimed

# What share of the time each step takes, by media: measured on pictures of 1 to 12 megapixels, PDFs and decks of 20 to
# 200 pages, and clips of a minute.
_STAGE_PERCENTS: dict[str, dict[Stage, float]] = {
    "IMAGE": {Stage.PREPROCESSING: 5, Stage.DETECTING: 40, Stage.INPAINTING: 45, Stage.PACKAGING: 10},
    "PDF": {Stage.PREPROCESSING: 2, Stage.DETECTING: 38, Stage.INPAINTING: 55, Stage.PACKAGING: 5},
    "PPT": {Stage.PREPROCESSING: 2, Stage.DETECTING: 38, Stage.INPAINTING: 55, Stage.PACKAGING: 5},
    "VIDEO": {Stage.PREPROCESSING: 2, Stage.DETECTING: 28, Stage.INPAINTING: 45, Stage.PACKAGING: 25},
}
_MIN_REPORT_SECONDS = 0.5
_MIN_ESTIMATE_PERCENT, _MIN_ESTIMATE_SECONDS = 10, 1.0  # an estimate by fewer percent, or from less time, is a guess


class Pace(Unreported):
    """The ``Reporter`` of a child's stages."""

    def __init__(self, media: str, context: TaskContext) -> None:
        self._shares = _STAGE_PERCENTS[media]
        self._context = context
        self._stage = Stage.PREPROCESSING
        self._before = 0.0  # percent that earlier stages stand for
        self._started_at = 0.0  # percent at which this attempt began
        self._began = time.monotonic()
        self._stage_began = self._began
        self._told, self._told_at = -1, 0.0
        self._seconds: dict[Stage, float] = {}

    @property
    def seconds(self) -> dict[str, float]:
        """How long each stage of this attempt has taken."""
        self._close()
        return {str(stage): seconds for stage, seconds in self._seconds.items()}

    async def begin(self, stage: Stage) -> None:
        self._close()
        self._stage, self._stage_began = stage, time.monotonic()
        self._before = sum(share for each, share in self._shares.items() if _before(each, stage))
        await self._tell(0)

    async def skip(self, stage: Stage) -> None:
        """It was done by an earlier attempt."""
        self._started_at = sum(share for each, share in self._shares.items() if not _before(stage, each))

    def _close(self) -> None:
        now = time.monotonic()
        took = self._seconds.get(self._stage, 0.0) + now - self._stage_began
        self._seconds[self._stage] = round(took, 3)
        self._stage_began = now

    async def _tell(self, percent: float) -> None:
        done = min(99.0, self._before + self._shares[self._stage] * percent / 100)
        now = time.monotonic()
        if round(done) == self._told or (percent and now - self._told_at < _MIN_REPORT_SECONDS):
            return
        self._told, self._told_at = round(done), now
        gained, taken = done - self._started_at, now - self._began
        eta = (
            taken * (100 - done) / gained
            if gained >= _MIN_ESTIMATE_PERCENT and taken >= _MIN_ESTIMATE_SECONDS
            else None
        )
        await self._context.progress(done, eta_seconds=eta)

    async def progress(self, _claimed: Claimed, percent: int, eta_seconds: int | None) -> None:  # noqa: ARG002
        await self._tell(percent)


def _before(stage: Stage, other: Stage) -> bool:
    order = list(Stage)
    return order.index(stage) < order.index(other)
