"""Files of users: storage, limits, retention."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import ByteSize, Field, HttpUrl, PositiveInt, SecretStr, model_validator

from headrace.settings.kinds import Duration, Group, Keep, Words, setting


class FilesSettings(Group):
    title: ClassVar[str] = "Files"

    files_url: str | None = setting(
        "The storage of users' files and results: a folder that all processes share, or `s3://bucket/prefix` of any "
        "S3-compatible service. Unset, `files` in the data folder.",
        None,
    )
    files_s3_endpoint: HttpUrl | None = setting(
        "The endpoint of the S3 service, if it is not Amazon's: `http://minio:9000`.", None
    )
    files_s3_region: str | None = setting("The bucket's region. Unset, `AWS_REGION`.", None)
    files_s3_access_key: SecretStr | None = setting(
        "The S3 access key. Unset, `AWS_ACCESS_KEY_ID`, or else AWS's profile or role.", None
    )
    files_s3_secret_key: SecretStr | None = setting("The secret key that belongs to the S3 access key.", None)
    files_links: Literal["storage", "api"] = setting(
        "Where links to files lead: `storage` to the bucket if possible; `api` to the API, for clients that cannot "
        "reach the bucket.",
        "storage",
    )
    files_link_lifetime: Annotated[Duration, Field(le=timedelta(days=7))] = setting(
        "The default lifetime of a link to a file.", timedelta(hours=1)
    )
    files_spool_dir: Path | None = setting(
        "The local folder for uploads before they are sent to the bucket. Unset, `spool` in the data folder. "
        "If the storage is a folder, it has its own.",
        None,
    )
    files_max_bytes: ByteSize = setting("The largest file under any plan.", "2GiB")
    files_max_pixels: PositiveInt = setting(
        "The maximum number of pixels of a picture, or of a video's frame.", 100_000_000
    )
    files_max_pages: PositiveInt = setting("The maximum number of pages or slides of a document.", 2_000)
    files_max_duration: Duration = setting("The longest video.", timedelta(hours=2))
    files_types: Words = setting(
        "MIME types of files that are accepted beside pictures, videos, PDFs and presentations, by their content and "
        "separated by commas: `text/plain,application/zip`; `application/octet-stream` is everything whose type is not "
        "known, `*` every file. Marks of these files cannot be removed: they are for your own tasks.",
        (),
    )
    files_stored_bytes: ByteSize | None = setting(
        "The storage limit of one user, unless a plan overrides it. Equal files count once, uploads under "
        "way with their whole size.",
        "20GiB",
    )
    files_part_bytes: ByteSize = setting(
        "The size of an upload's parts; larger if there would be too many, at least 5MiB, as S3 requires.",
        "8MiB",
    )
    files_upload_lifetime: Duration = setting(
        "How long a multipart upload waits for its next part before it is aborted.", timedelta(hours=24)
    )
    files_inspectors: Annotated[int, Field(ge=1, le=64)] = setting(
        "Processes of one API that inspect files at the same time.", 2
    )
    retention_originals: Keep = setting(
        "How long files of users are kept after their upload, unless a plan overrides it; then they are deleted. "
        "`forever` keeps them.",
        timedelta(days=7),
    )
    retention_results: Keep = setting(
        "How long result files of tasks are kept, unless a plan overrides it; then they are deleted.",
        timedelta(days=30),
    )

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        if (self.files_s3_access_key is None) != (self.files_s3_secret_key is None):
            raise ValueError("files_s3_access_key and files_s3_secret_key go together: set both or none")
        return self
