"""Files as they are sent and shown."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.assets.config import MAX_LINK
from headrace.assets.inspection.model import MediaType
from headrace.assets.model import LONGEST_NAME, Asset, Part, Result, Upload, UploadMethod, UploadStatus
from headrace.edge.text import Text

ASSET_ID = "ast_01h455vb4pex5vsknk084sn02q"
UPLOAD_ID = "upl_01h455vb4pex5vsknk084sn02q"
_AT = "2026-06-01T12:00:00Z"
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_LARGEST = 2**50

Sha256 = Annotated[Text, Field(pattern="^[0-9a-fA-F]{64}$", examples=[_SHA256])]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AssetOut(BaseModel):
    """One file."""

    id: str = Field(examples=[ASSET_ID])
    user_id: str = Field(description="Its owner.", examples=["u_01h455vb4pex5vsknk084sn02q"])
    name: str = Field(description="As it was uploaded.", examples=["holiday.jpg"])
    media_type: MediaType = Field(description="Its kind, by its content.")
    mime_type: str = Field(examples=["image/jpeg"])
    size_bytes: int = Field(examples=[1_048_576])
    sha256: str | None = Field(examples=[_SHA256])
    meta: dict[str, Any] = Field(
        description="The facts of its content: `format`, `width`, `height`, `pages`, `frames`, `duration_ms`, "
        "`orientation`, `encrypted`, `signed`, as far as its kind has them, and `details`.",
        examples=[{"format": "jpeg", "width": 4000, "height": 3000, "frames": 1, "orientation": 1}],
    )
    created_at: datetime = Field(examples=[_AT])
    expire_at: datetime | None = Field(description="When it is deleted by itself; null: never.", examples=[_AT])

    @classmethod
    def of(cls, asset: Asset) -> Self:
        return cls(
            id=asset.id,
            user_id=asset.user_id,
            name=asset.origin_name,
            media_type=MediaType(asset.media_type),
            mime_type=asset.mime_type,
            size_bytes=asset.size_bytes,
            sha256=asset.sha256,
            meta=dict(asset.meta_json or {}),
            created_at=asset.created_at,
            expire_at=asset.expire_at,
        )


class UploadIn(_Body):
    name: Annotated[Text, Field(min_length=1, max_length=LONGEST_NAME, description="The file's name.")]
    size_bytes: Annotated[int, Field(ge=1, le=_LARGEST, description="How many bytes the file has.")]
    sha256: Annotated[Sha256 | None, Field(description="Of the whole file; it is checked when all of it is here.")] = (
        None
    )
    direct: Annotated[bool, Field(description="Send the parts straight to the storage, by signed links; S3 only.")] = (
        False
    )
    strip_location: Annotated[
        bool, Field(description="Remove the place where a picture was taken before it is kept.")
    ] = False


class PartOut(BaseModel):
    """One stored part."""

    number: int = Field(examples=[1])
    size_bytes: int = Field(examples=[8_388_608])
    sha256: str | None = Field(description="Null for parts that went straight to the storage.")

    @classmethod
    def of(cls, part: Part) -> Self:
        return cls(number=part.number, size_bytes=part.size_bytes, sha256=part.sha256 or None)


class UploadItemOut(BaseModel):
    """An upload in parts."""

    id: str = Field(examples=[UPLOAD_ID])
    asset_id: str = Field(description="The id that the file will have.", examples=[ASSET_ID])
    name: str = Field(examples=["holiday.mp4"])
    size_bytes: int
    sha256: str | None
    part_bytes: int = Field(
        description="The size of each part in bytes; the last one has the rest.", examples=[8_388_608]
    )
    parts: int = Field(description="How many parts there are, numbered from 1.", examples=[128])
    direct: bool
    status: UploadStatus
    error_code: str | None = Field(description="Why completing it failed the last time.")
    created_at: datetime = Field(examples=[_AT])
    expire_at: datetime = Field(description="When it is given up, unless a part comes before.", examples=[_AT])

    @classmethod
    def of(cls, upload: Upload) -> Self:
        return cls(**_facts(upload))


class UploadOut(UploadItemOut):
    """An upload in parts, and its stored parts."""

    stored: list[PartOut] = Field(description="The parts that are there: the others are still to be sent.")

    @classmethod
    def with_parts(cls, upload: Upload, parts: Sequence[Part]) -> Self:
        return cls(**_facts(upload), stored=[PartOut.of(part) for part in parts])


def _facts(upload: Upload) -> Mapping[str, Any]:
    return {
        "id": upload.id,
        "asset_id": upload.asset_id,
        "name": upload.origin_name,
        "size_bytes": upload.size_bytes,
        "sha256": upload.sha256,
        "part_bytes": upload.part_bytes,
        "parts": upload.parts,
        "direct": upload.method is UploadMethod.DIRECT,
        "status": upload.status,
        "error_code": upload.error_code,
        "created_at": upload.created_at,
        "expire_at": upload.expire_at,
    }


_Seconds = Annotated[
    int | None,
    Field(
        ge=1,
        le=int(MAX_LINK.total_seconds()),
        description="For how long; `HEADRACE_FILES_LINK_LIFETIME` by default, at most a week.",
        examples=[3600],
    ),
]


class PartLinksIn(_Body):
    numbers: Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=1, max_length=1000)]
    expires_in: _Seconds = None


class PartLinkOut(BaseModel):
    number: int
    url: str = Field(description="PUT the part's bytes here, without any further header.")


class PartLinksOut(BaseModel):
    links: list[PartLinkOut]
    expires_at: datetime = Field(examples=[_AT])


class LinkIn(_Body):
    expires_in: _Seconds = None
    inline: Annotated[
        bool, Field(description="Let a browser show it; pictures and videos only, everything else is saved.")
    ] = False
    preview: Annotated[bool, Field(description="Of the preview.")] = False

    @property
    def lifetime(self) -> timedelta | None:
        return None if self.expires_in is None else timedelta(seconds=self.expires_in)


class LinkOut(BaseModel):
    """A link that needs no credential: its holder can read the file."""

    url: str = Field(examples=["https://headrace.example/v1/content/bG9vayBoZXJl"])
    expires_at: datetime = Field(examples=[_AT])


class StorageUseOut(BaseModel):
    """How much of what your plan allows is taken."""

    stored_bytes: int = Field(description="Equal files count once, uploads under way with their whole size.")
    limit_bytes: int | None = Field(description="Null: no limit.")
    largest_file_bytes: int | None


class ResultFileOut(BaseModel):
    mime_type: str | None = Field(examples=["image/png"])
    size_bytes: int | None


class ResultOut(ResultFileOut):
    """The file that a task has made."""

    task_id: str = Field(examples=["tsk_01h455vb4pex5vsknk084sn02q"])
    name: str | None = Field(examples=["holiday.png"])
    sha256: str | None
    preview: ResultFileOut | None
    metrics: dict[str, Any] | None = Field(description="What the pipeline measured.")
    created_at: datetime = Field(examples=[_AT])
    expire_at: datetime | None = Field(description="When the file is deleted; null: never.", examples=[_AT])

    @classmethod
    def of(cls, result: Result) -> Self:
        small = ResultFileOut(mime_type=result.preview_mime_type, size_bytes=result.preview_size_bytes)
        return cls(
            task_id=result.task_id,
            name=result.file_name,
            mime_type=result.mime_type,
            size_bytes=result.size_bytes,
            sha256=result.sha256,
            preview=small if result.preview_key is not None else None,
            metrics=dict(result.metrics_json) if result.metrics_json is not None else None,
            created_at=result.created_at,
            expire_at=result.expire_at,
        )
