"""How much a user may keep, and how large one file may be. Asked in one place, which will ask the user's plan."""

from dataclasses import dataclass
from datetime import timedelta

from headrace.assets.config import FileConfig
from headrace.assets.inspection.model import FileLimits
from headrace.database import Tx


@dataclass(frozen=True, slots=True)
class UserLimits:
    stored_bytes: int | None
    file: FileLimits
    keep_originals: timedelta | None
    keep_results: timedelta | None


async def limits_for(tx: Tx, config: FileConfig, user_id: str) -> UserLimits:  # noqa: ARG001 - what the plan is asked with
    """What holds for this user: what the settings say, for everybody."""
    return UserLimits(config.stored_bytes, config.limits, config.keep_originals, config.keep_results)
