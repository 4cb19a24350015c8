"""Removals as they are ordered and shown."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from headrace.assets.schemas import AssetOut
from headrace.edge.text import Line, Text
from headrace.removal.ai_labels import MIN_REASON_LETTERS
from headrace.removal.order import Hint, Mode, Quality, Span
from headrace.removal.service.orders.model import Rights, RightsBasis, Wanted
from headrace.removal.service.orders.returning import returnable_until
from headrace.removal.service.orders.service import Ordered, Quote
from headrace.removal.service.sample import is_sample
from headrace.tasks.model import TaskStatus

MAX_FILES = 100
_TASK_ID = "tsk_01h455vb4pex5vsknk084sn02q"
_ASSET_ID = "ast_01h455vb4pex5vsknk084sn02q"
_AT = "2026-06-01T12:00:00Z"

AssetId = Annotated[Text, Field(min_length=1, max_length=64, examples=[_ASSET_ID])]


Password = Annotated[
    Annotated[SecretStr, Field(min_length=1, max_length=127)] | None,
    Field(
        description="Opens the documents that are encrypted. It is kept encrypted until the task is over, shown "
        "nowhere, and opens the result, too."
    ),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RightsIn(_Body):
    """Without this nothing is done: it is kept with the file's hash, who sent it, from where and when."""

    basis: Annotated[
        RightsBasis,
        Field(description="The file is yours, you have a licence for it without the mark, or its owner allows it."),
    ]
    statement: Annotated[
        Annotated[Text, Field(min_length=1, max_length=2000)] | None,
        Field(description="In your own words, for later questions: a contract's number, a name."),
    ] = None

    def rights(self) -> Rights:
        return Rights(self.basis, self.statement)


class QuoteIn(_Body):
    """What would be done with each of the files."""

    asset_ids: Annotated[list[AssetId], Field(min_length=1, max_length=MAX_FILES)]
    quality: Quality = "STANDARD"
    mode: Annotated[
        Mode, Field(description="`AUTO` finds the mark, and asks where it is not certain; `MANUAL` is has_hints.")
    ] = "AUTO"
    output_format: Annotated[
        Annotated[str, Field(pattern="^[a-z0-9]{2,8}$")] | None,
        Field(description="`jpeg`, `png`, `webp` or `tiff` of pictures; left out: as the original.", examples=["png"]),
    ] = None
    hints: Annotated[
        list[Hint],
        Field(max_length=100, description="Where the mark is, and what must stay; on which pages, and when."),
    ] = []
    mask_asset_id: Annotated[
        AssetId | None,
        Field(description="A picture that you have uploaded, of the same size, that is white where the mark is."),
    ] = None
    candidates: Annotated[
        list[Annotated[int, Field(ge=1, le=1000)]],
        Field(max_length=50, description="Those to take off, as a look or a removal that needs review lists them."),
    ] = []
    pages: Annotated[
        list[Span], Field(max_length=100, description="Of documents, change only these pages: first and last.")
    ] = []
    break_signature: Annotated[
        bool, Field(description="Change a signed document; its signature does not hold afterwards.")
    ] = False
    accept_poor: Annotated[bool, Field(description="Hand out, and charge, also a result that is probably poor.")] = (
        False
    )

    ai_label_reason: Annotated[
        Annotated[Line, Field(min_length=MIN_REASON_LETTERS, max_length=500)] | None,
        Field(
            description="The lawful reason to take off a label that says that AI made the file. Without it, such a "
            "label is refused (`AI_LABEL`); it is kept with the order and in the audit trail."
        ),
    ] = None

    password: Password = None
    same_mark: Annotated[
        bool,
        Field(
            description="The files are pictures, four at least, with the very same mark in the same place. What lies "
            "under it is computed from all of those of one size together, which is far better than from one alone; "
            "each is still a removal of its own, charged only if its mark is gone."
        ),
    ] = False

    def wanted(self) -> Wanted:
        return Wanted(
            self.quality, self.mode, self.output_format, self.hints, self.mask_asset_id, self.candidates, self.pages,
            self.break_signature, self.accept_poor, ai_label_reason=self.ai_label_reason,
            password=_plain(self.password), same_mark=self.same_mark,
        )  # fmt: skip


class RemovalIn(QuoteIn):
    """Removals to order."""

    rights: RightsIn
    title: Annotated[
        Annotated[Line, Field(min_length=1, max_length=255)] | None,
        Field(description="For lists; left out: the file's name."),
    ] = None

    def wanted(self) -> Wanted:
        return replace(super().wanted(), title=self.title)


class DetectIn(_Body):
    """What is known of the mark already."""

    hints: Annotated[list[Hint], Field(max_length=100)] = []
    password: Password = None

    def wanted(self) -> Wanted:
        has_hints = any(hint.boxes or hint.polygons for hint in self.hints)
        return Wanted(
            mode="MANUAL" if has_hints else "AUTO",
            hints=self.hints,
            break_signature=True,
            password=_plain(self.password),
        )


def _plain(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


class NotOrderedOut(BaseModel):
    """Files that wait for an order, newest first."""

    items: list[AssetOut]


class PriceOut(BaseModel):
    asset_id: str = Field(examples=[_ASSET_ID])
    units: int = Field(examples=[1])
    output_format: str = Field(examples=["jpeg"])
    pages: int = Field(description="Pages or slides that are priced; 1 of pictures and videos.", examples=[1])
    seconds: float = Field(
        description="Of a video: how long it lasts, or would last at 30 frames a second if that is longer.",
        examples=[0],
    )
    frames: int = Field(description="Frames of a video or an animated picture.", examples=[1])
    pixels: int = Field(description="Of one frame.", examples=[12000000])


class QuoteOut(BaseModel):
    """What it would cost now: the same that is held when it is ordered."""

    units: int = Field(description="All of them together.", examples=[3])
    left: int = Field(description="What you can spend now.", examples=[50])
    enough: bool
    free: bool = Field(
        description="Whether all of them are the console's sample picture: held, but not charged, ten times a day."
    )
    files: list[PriceOut]

    @classmethod
    def of(cls, quote: Quote) -> Self:
        files = [
            PriceOut(asset_id=each.asset.id, units=each.units, output_format=each.output_format, **asdict(each.size))
            for each in quote.priced
        ]
        free = all(is_sample(each.asset.sha256) for each in quote.priced)
        return cls(units=quote.units, left=quote.left, enough=quote.units <= quote.left, free=free, files=files)


class CandidateOut(BaseModel):
    """What may be a mark."""

    id: int = Field(description="From 1, the surest first: what `candidates` of an order names.", examples=[1])
    kind: str = Field(
        description="A `region` of a picture; of documents what it is: text, picture, form.", examples=["region"]
    )
    method: str = Field(description="What spoke for it first.", examples=["eye"])
    score: float = Field(examples=[0.97])
    certain: bool = Field(description="Whether `AUTO` takes it off without asking.")
    box: list[float] = Field(
        description="Left, top, width, height: in pixels of the picture, or points of its first page.",
        examples=[[120, 80, 400, 90]],
    )
    pages: list[int] = Field(default=[], description="Of documents, from 1.")
    text: str | None = None


class RemovalItemOut(BaseModel):
    """One removal: an order and its task."""

    id: str = Field(description="Its task's id.", examples=[_TASK_ID])
    user_id: str = Field(examples=["u_01h455vb4pex5vsknk084sn02q"])
    asset_id: str = Field(examples=[_ASSET_ID])
    asset_name: str | None = Field(examples=["holiday.jpg"])
    media_type: str = Field(examples=["IMAGE"])
    quality: Quality
    mode: Mode
    output_format: str = Field(examples=["jpeg"])
    units: int = Field(
        description="What is held for it, and charged if it succeeds with a result that you do not have yet.",
        examples=[1],
    )
    batch_id: str | None = Field(description="What was ordered in one request has the same.")
    accept_poor: bool = Field(description="Whether the result is taken as it is, the mark still to be seen or not.")
    status: TaskStatus
    progress: int = Field(description="0 to 100.", examples=[40])
    eta_seconds: int | None
    error_code: str | None = Field(
        description="Why it failed: `NO_MARK`, `NEEDS_REVIEW`, `AI_LABEL`, `MARK_REMAINS`, `MARK_MOVES`, `MARK_WIDE`, "
        "`POOR_RESULT`, `DAMAGED`, `UNREADABLE` and others. Nothing of it is charged.",
        examples=[None],
    )
    error_message: str | None = Field(examples=[None])
    created_at: datetime = Field(examples=[_AT])
    finished_at: datetime | None = Field(examples=[_AT])

    @classmethod
    def of(cls, ordered: Ordered) -> Self:
        return cls.model_validate(_facts(ordered))


class RemovalOut(RemovalItemOut):
    """One removal, with what was found in the file."""

    candidates: list[CandidateOut] = Field(description="What may be a mark, once it was looked for.")
    rights_basis: RightsBasis
    rights_statement: str | None
    declared_at: datetime = Field(examples=[_AT])
    held_back: bool = Field(
        description="It failed, but there is a result: see it with `GET /v1/removals/{id}/held-back`, and order the "
        "same with `accept_poor` to have it as it is. For a day after the end."
    )
    charged: int | None = Field(
        description="The units that it was charged; null before its end. 0 for a failure, and for a result with the "
        "same bytes as an earlier one of yours, which `metrics.same_as` of the result names.",
        examples=[1],
    )
    returned_at: datetime | None = Field(description="When the result was returned as not good.", examples=[None])
    returnable_until: datetime | None = Field(
        description="Until when `POST /v1/removals/{id}/return` gives the units back; null if it does not.",
        examples=[_AT],
    )

    @classmethod
    def of(cls, ordered: Ordered, *, returns: int = 0) -> Self:
        removal, detected = ordered.removal, ordered.detected
        found = detected.get("candidates", []) if isinstance(detected, dict) else []
        return cls.model_validate(
            {
                **_facts(ordered),
                "candidates": found,
                "rights_basis": removal.rights_basis,
                "rights_statement": removal.rights_statement,
                "declared_at": removal.declared_at,
                "held_back": ordered.held_back is not None,
                "charged": ordered.charged,
                "returned_at": removal.returned_at,
                "returnable_until": returnable_until(ordered, returns),
            }
        )


class OrderedRemovalsOut(BaseModel):
    """What was ordered, in the order of the files."""

    batch_id: str | None
    units: int
    items: list[RemovalItemOut]

    @classmethod
    def of(cls, ordered: Sequence[Ordered]) -> Self:
        return cls(
            batch_id=ordered[0].removal.batch_id,
            units=sum(each.removal.units for each in ordered),
            items=[RemovalItemOut.of(each) for each in ordered],
        )


def _facts(ordered: Ordered) -> dict[str, Any]:
    removal, task = ordered.removal, ordered.task
    return {
        "id": task.id,
        "user_id": removal.user_id,
        "asset_id": removal.asset_id,
        "asset_name": removal.asset_name,
        "media_type": task.task_type,
        "quality": removal.quality_level,
        "mode": removal.mode,
        "output_format": removal.output_format,
        "units": removal.units,
        "batch_id": removal.batch_id,
        "accept_poor": removal.accept_poor,
        "status": task.status,
        "progress": task.progress,
        "eta_seconds": task.eta_sec,
        "error_code": task.error_code,
        "error_message": task.error_message,
        "created_at": task.created_at,
        "finished_at": task.finished_at,
    }
