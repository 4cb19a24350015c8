"""How much a user may keep, and how large one file may be: what the user's plans say, within what the machine takes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.assets.config import FileConfig
from headrace.assets.inspection.errors import FileTooLarge
from headrace.assets.inspection.model import MEDIA, FileLimits, MediaType
from headrace.billing import features as plans
from headrace.database import Tx


@dataclass(frozen=True, slots=True)
class UserLimits:
    stored_bytes: int | None
    file: FileLimits  # of any kind: max_bytes is that of the kind that may be the largest
    max_bytes: Mapping[MediaType, int]
    keep_originals: timedelta | None
    keep_results: timedelta | None

    def check(self, media_type: MediaType, size: int) -> None:
        """``FileTooLarge`` for more than a file of this kind may have."""
        if size > self.max_bytes[media_type]:
            raise FileTooLarge(size_bytes=size, max_bytes=self.max_bytes[media_type])


async def limits_for(tx: Tx, config: FileConfig, user_id: str) -> UserLimits:
    """What holds for this user at present. A file is never larger than the settings allow; for the rest these count
    where no plan says otherwise."""
    features = await plans.features_of(tx, user_id)
    ceiling = config.limits.max_bytes
    largest = {kind: features.max_file_bytes(plans.MeteredMedia(kind)) for kind in MEDIA}
    largest[MediaType.OTHER] = max(largest.values())
    if ceiling is not None:
        largest = {kind: min(most, ceiling) for kind, most in largest.items()}
    return UserLimits(
        features.stored_bytes(config.stored_bytes),
        replace(config.limits, max_bytes=max(largest.values())),
        largest,
        features.retention("originals", config.keep_originals),
        features.retention("results", config.keep_results),
    )
