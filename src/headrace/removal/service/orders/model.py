"""Orders of removal, as they are asked for and as they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from headrace.assets.model import Asset
from headrace.removal.order import Hint, Mode, Quality, Span


class RightsBasis(StrEnum):
    """The right by which a user has a mark removed."""

    OWNER = "OWNER"  # it is theirs
    LICENSEE = "LICENSEE"  # they have a licence for the unmarked file
    AUTHORIZED = "AUTHORIZED"  # the owner allows it


@dataclass(frozen=True, slots=True)
class Rights:
    """The declaration without which nothing is done."""

    basis: RightsBasis
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done with each of the files."""

    quality: Quality = "STANDARD"
    mode: Mode = "AUTO"
    output_format: str | None = None  # None: as the original
    hints: Sequence[Hint] = ()
    mask_asset_id: str | None = None
    candidates: Sequence[int] = ()
    pages: Sequence[Span] = ()
    break_signature: bool = False
    accept_poor: bool = False
    ai_label_reason: str | None = None
    title: str | None = None
    password: str | None = field(default=None, repr=False)  # of documents that are locked
    unlocked: Mapping[str, int] = field(default_factory=dict)  # pages of the files that it opens, by their ids
    same_mark: bool = False  # whether the files, which are pictures, all have the same


@dataclass(frozen=True, slots=True)
class Size:
    """What a file is priced by."""

    pages: int = 1
    seconds: float = 0  # of a video; more than it lasts where it has more frames than are priced as a second
    frames: int = 1
    pixels: int = 0  # of one frame


@dataclass(frozen=True, slots=True)
class Priced:
    """A file, what would be made of it, and what that costs."""

    asset: Asset
    output_format: str
    units: int
    size: Size


@dataclass(frozen=True, slots=True)
class Removal:
    """An order as it is stored, beside its task."""

    task_id: str
    user_id: str
    asset_id: str
    asset_sha256: str
    units: int
    batch_id: str | None
    rights_basis: RightsBasis
    rights_statement: str | None
    principal_uid: str
    api_key_id: str | None
    client_ip: str | None
    user_agent: str | None
    request_id: str | None
    declared_at: datetime
    asset_name: str | None = None
    quality_level: str = "STANDARD"
    mode: str = "AUTO"
    output_format: str = ""
    accept_poor: bool = False
    returned_at: datetime | None = None
