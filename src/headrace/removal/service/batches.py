"""SQL of pictures that were ordered together, because they have the same mark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.database import Tx
from headrace.removal.order import Names, Stage

Size = tuple[int, int]
_FIRST_SIDEWAYS_ORIENTATION = 5  # from this number of EXIF's orientation on, width and height change places


@dataclass(frozen=True, slots=True)
class Sibling:
    task_id: str
    asset_id: str
    size: Size | None  # upright


# By the user, too: a payload may have come from anywhere.
LIST_BATCH = """
SELECT removal.task_id, removal.asset_id, asset.meta_json
FROM headrace.removals AS removal
JOIN headrace.assets AS asset ON asset.id = removal.asset_id AND asset.purged_at IS NULL
WHERE removal.batch_id = $1 AND removal.user_id = $2
ORDER BY removal.task_id
"""


async def list_batch(tx: Tx, batch_id: str, user_id: str) -> Sequence[Sibling]:
    rows = await tx.fetch(LIST_BATCH, batch_id, user_id)
    return [Sibling(row["task_id"], row["asset_id"], size_of(row["meta_json"])) for row in rows]


LIST_LEARNT = """
SELECT task_id, detail_json -> 'files' AS files FROM headrace.task_steps
WHERE task_id = ANY ($1) AND step_name = $2 AND detail_json -> 'files' ? $3
ORDER BY id
"""


async def list_learnt(tx: Tx, task_ids: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Those of these tasks that have kept the mark, with the names of what they keep in storage."""
    rows = await tx.fetch(LIST_LEARNT, list(task_ids), Stage.DETECTING, Names.MATTE)
    return [(row["task_id"], row["files"]) for row in rows]


def size_of(facts: Mapping[str, Any] | None) -> Size | None:
    """A picture's size as it is shown, by what inspection found."""
    width, height = (facts or {}).get("width"), (facts or {}).get("height")
    if width is None or height is None:
        return None
    turned = ((facts or {}).get("orientation") or 1) >= _FIRST_SIDEWAYS_ORIENTATION
    return (height, width) if turned else (width, height)
