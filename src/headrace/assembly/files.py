"""From settings to files: their storage, limits and inspectors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from headrace.assets.config import SMALLEST_PART, FileConfig
from headrace.assets.inspection.model import FileLimits
from headrace.assets.inspection.service import Inspector, InspectorConfig
from headrace.assets.other_types import ANY, KNOWN
from headrace.assets.service import Files
from headrace.errors import Invalid
from headrace.settings import Settings
from headrace.storage import Storage, StorageConfig
from headrace.storage.model import storage_config


def file_config(chosen: Settings) -> FileConfig:
    limits = replace(
        FileLimits(),
        max_bytes=int(chosen.files_max_bytes),
        max_pixels=chosen.files_max_pixels,
        max_pages=chosen.files_max_pages,
        max_seconds=int(chosen.files_max_duration.total_seconds()),
    )
    return FileConfig(
        limits=limits,
        stored_bytes=None if chosen.files_stored_bytes is None else int(chosen.files_stored_bytes),
        keep_originals=chosen.retention_originals,
        keep_results=chosen.retention_results,
        upload_lifetime=chosen.files_upload_lifetime,
        part_bytes=max(SMALLEST_PART, int(chosen.files_part_bytes)),
        link_lifetime=chosen.files_link_lifetime,
        links=chosen.files_links,
        other_types=_other_types(chosen),
    )


def _other_types(chosen: Settings) -> frozenset[str]:
    unknown = sorted(set(chosen.files_types) - KNOWN - {ANY})
    if unknown:
        raise Invalid(
            f"HEADRACE_FILES_TYPES names {unknown[0]}, which cannot be recognised by content. Known are: "
            f"{', '.join(sorted(KNOWN))}, and * for every file."
        )
    return frozenset(chosen.files_types)


def files_storage(chosen: Settings) -> StorageConfig:
    url = chosen.files_url or str(chosen.data_dir / "files")
    options = {
        "endpoint": str(chosen.files_s3_endpoint).rstrip("/") if chosen.files_s3_endpoint else None,
        "region": chosen.files_s3_region,
        "access_key_id": chosen.files_s3_access_key.get_secret_value() if chosen.files_s3_access_key else None,
        "secret_access_key": chosen.files_s3_secret_key.get_secret_value() if chosen.files_s3_secret_key else None,
    }
    return storage_config(url, {name: value for name, value in options.items() if value is not None})


def files_of(chosen: Settings, *, link_key: bytes = b"", public_url: str = "") -> Files:
    """What the verbs of files work with. Without a key it makes no links: for those who only let files go."""
    return Files(
        storage=Storage(files_storage(chosen)),
        inspector=Inspector(InspectorConfig(processes=chosen.files_inspectors)),
        config=file_config(chosen),
        scratch=(chosen.files_spool_dir or chosen.data_dir / "spool").resolve(),
        link_key=link_key,
        public_url=public_url,
    )


@asynccontextmanager
async def open_files(chosen: Settings, *, link_key: bytes, public_url: str) -> AsyncIterator[Files]:
    """The same for an API, with children that look into files, and an end to both."""
    files = files_of(chosen, link_key=link_key, public_url=public_url)
    assert isinstance(files.inspector, Inspector)
    try:
        async with files.inspector:
            yield files
    finally:
        await files.storage.close()
