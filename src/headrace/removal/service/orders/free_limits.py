"""What is shown or done without payment is counted, per file and day: else results could be had for nothing.

The counts are rows of the rate limiter, which a deleted task does not take along.
"""

from datetime import timedelta

from headrace.database import Tx
from headrace.edge.limits import count_in
from headrace.removal.service.orders.errors import DetectionLimit, PreviewLimit

_DAY = timedelta(days=1)
MAX_PREVIEWS_PER_FILE = 3  # in a burst, refilled over a day
MAX_PREVIEWS_PER_USER = 30  # a file that differs in one byte is another file
MAX_DETECTIONS_PER_FILE = 20
MAX_WAIVED_REPEATS_PER_FILE = 3  # a day
MAX_WAIVED_SAMPLES_PER_USER = 10  # a day


async def count_preview(tx: Tx, task_id: str, user_id: str, sha256: str) -> None:
    """Count the picture of a result that was held back, once for each removal; ``PreviewLimit`` if it is too many."""
    if not await _is_first(tx, f"shown:{task_id}"):
        return
    wait = await count_in(
        tx, f"unpaid:{user_id}:{sha256}", every=_DAY / MAX_PREVIEWS_PER_FILE, burst=MAX_PREVIEWS_PER_FILE
    )
    if wait is not None:
        raise PreviewLimit(
            f"{MAX_PREVIEWS_PER_FILE} results of this file were shown today that were not paid for: order with "
            "`accept_poor`, or wait.",
            retry_after=wait,
        )
    wait = await count_in(tx, f"unpaid:{user_id}", every=_DAY / MAX_PREVIEWS_PER_USER, burst=MAX_PREVIEWS_PER_USER)
    if wait is not None:
        raise PreviewLimit(retry_after=wait)


async def count_detection(tx: Tx, task_id: str, user_id: str, sha256: str | None) -> None:
    """Count a search for marks, once for each task; ``DetectionLimit`` if it is too many for this file."""
    if not await _is_first(tx, f"detection:{task_id}"):
        return
    every = _DAY / MAX_DETECTIONS_PER_FILE
    wait = await count_in(tx, f"detection:{user_id}:{sha256}", every=every, burst=MAX_DETECTIONS_PER_FILE)
    if wait is not None:
        raise DetectionLimit(retry_after=wait)


class WaiversUsedUp(Exception):
    """No more removals of this file are free today."""


async def count_waived_repeat(tx: Tx, task_id: str, user_id: str, sha256: str) -> None:
    """Count a removal that is free because its result is not new, once for each task: work is not free without end.

    ``WaiversUsedUp`` must roll the transaction back: a refused task that runs again is counted then.
    """
    await _count_waiver(tx, f"repeat:{task_id}", f"repeat:{user_id}:{sha256}", MAX_WAIVED_REPEATS_PER_FILE)


async def count_waived_sample(tx: Tx, task_id: str, user_id: str) -> None:
    """Count a removal of the sample picture, which is free, once for each task. ``WaiversUsedUp`` as above."""
    await _count_waiver(tx, f"repeat:{task_id}", f"sample:{user_id}", MAX_WAIVED_SAMPLES_PER_USER)


async def _count_waiver(tx: Tx, once: str, bucket: str, most: int) -> None:
    if await _is_first(tx, once) and await count_in(tx, bucket, every=_DAY / most, burst=most) is not None:
        raise WaiversUsedUp


async def _is_first(tx: Tx, bucket: str) -> bool:
    return await count_in(tx, bucket, every=2 * _DAY, burst=1) is None
