"""Files of users: where they lie, how large they may be, how long they stay."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import ByteSize, Field, HttpUrl, PositiveInt, SecretStr, model_validator

from headrace.settings.kinds import Duration, Group, Keep, Words, setting


class FilesSettings(Group):
    title: ClassVar[str] = "Files"

    files_url: str | None = setting(
        "Where files of users and results lie: a folder that all processes share, or `s3://bucket/prefix` of anything "
        "that speaks S3. Unset, `files` in the data folder.",
        None,
    )
    files_s3_endpoint: HttpUrl | None = setting(
        "Where the S3 service answers, if it is not Amazon's: `http://minio:9000`.", None
    )
    files_s3_region: str | None = setting("The bucket's region. Unset, `AWS_REGION`.", None)
    files_s3_access_key: SecretStr | None = setting("The S3 access key. Unset, `AWS_ACCESS_KEY_ID`.", None)
    files_s3_secret_key: SecretStr | None = setting("The S3 secret key, with the access key.", None)
    files_links: Literal["storage", "api"] = setting(
        "Who answers links to files: `storage` for the bucket's own where there is one, `api` for ours always, where "
        "clients do not reach the bucket.",
        "storage",
    )
    files_link_lifetime: Annotated[Duration, Field(le=timedelta(days=7))] = setting(
        "How long a link to a file is good, unless its maker says otherwise.", timedelta(hours=1)
    )
    files_spool_dir: Path | None = setting(
        "Where uploads wait on this machine until they are in the bucket. Unset, `spool` in the data folder. A folder "
        "as storage has its own.",
        None,
    )
    files_max_bytes: ByteSize = setting("The largest file, whatever a plan says.", "2GiB")
    files_max_pixels: PositiveInt = setting("The most pixels of a picture, or of a video's frame.", 100_000_000)
    files_max_pages: PositiveInt = setting("The most pages or slides of a document.", 2_000)
    files_max_duration: Duration = setting("The longest video.", timedelta(hours=2))
    files_types: Words = setting(
        "MIME types of files that are taken beside pictures, videos, PDFs and presentations, by their content and "
        "separated by commas: `text/plain,application/zip`; `application/octet-stream` is everything whose type is not "
        "known, `*` every file. Marks cannot be taken off these files: they are for tasks of your own.",
        (),
    )
    files_stored_bytes: ByteSize | None = setting(
        "How many bytes one user may have stored, unless a plan says otherwise. Equal files count once, uploads under "
        "way with their whole size.",
        "20GiB",
    )
    files_part_bytes: ByteSize = setting(
        "How large the parts of an upload are; more if there would be too many, never below 5MiB, as S3 wants it.",
        "8MiB",
    )
    files_upload_lifetime: Duration = setting(
        "How long an upload in parts waits for its next part before it is given up.", timedelta(hours=24)
    )
    files_inspectors: Annotated[int, Field(ge=1, le=64)] = setting(
        "Processes of one API that look into files at the same time.", 2
    )
    retention_originals: Keep = setting(
        "How long files of users stay after their upload, unless a plan says otherwise; then they are deleted. "
        "`forever` keeps them.",
        timedelta(days=7),
    )
    retention_results: Keep = setting(
        "How long the files that tasks have made stay, unless a plan says otherwise; then they are deleted.",
        timedelta(days=30),
    )

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        if (self.files_s3_access_key is None) != (self.files_s3_secret_key is None):
            raise ValueError("files_s3_access_key and files_s3_secret_key go together: set both or none")
        return self
