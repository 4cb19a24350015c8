"""Retention periods and the place of the archive, from the settings."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from headrace.archive.config import RetentionConfig
from headrace.settings import Settings
from headrace.settings.kinds import PREFIX
from headrace.settings.retention import RetentionSettings
from headrace.storage import StorageConfig


def retention_config(chosen: Settings) -> RetentionConfig:
    return RetentionConfig(
        audit_events=chosen.retention_audit,
        webhook_deliveries=chosen.retention_deliveries,
        usage_ledger=chosen.retention_ledger,
        task_executions=chosen.retention_executions,
        task_locks=chosen.retention_locks,
        outbox_events=chosen.retention_outbox,
        notifications=chosen.retention_notifications,
        assets=chosen.retention_assets,
        tasks=chosen.retention_tasks,
        tasks_failed=chosen.retention_tasks_failed,
        tasks_canceled=chosen.retention_tasks_canceled,
        workers=chosen.retention_workers,
        archived_rows=chosen.retention_archive_rows,
    )


def chosen_retention(chosen: Settings) -> Mapping[str, timedelta | None]:
    """The settings of retention that are set, by their variables: what ``headrace migrate`` declares."""
    return {
        f"{PREFIX}{name.upper()}": keep
        for name in chosen.model_fields_set & RetentionSettings.model_fields.keys()
        if (keep := getattr(chosen, name)) is None or isinstance(keep, timedelta)
    }


def archive_config(chosen: Settings) -> StorageConfig:
    url = chosen.archive_url or str(chosen.data_dir / "archive")
    if "://" not in url:
        return StorageConfig(f"file://{Path(url).resolve()}")
    return StorageConfig(url, archive_bucket_options(chosen))


def archive_bucket_options(chosen: Settings) -> dict[str, str]:
    """Endpoint and keys of the archive's bucket; a backup's bucket has the same, also where the archive is a folder."""
    options: dict[str, str] = {}
    if chosen.archive_s3_endpoint is not None:
        options["endpoint"] = str(chosen.archive_s3_endpoint).rstrip("/")
    if chosen.archive_s3_region is not None:
        options["region"] = chosen.archive_s3_region
    if chosen.archive_s3_access_key is not None and chosen.archive_s3_secret_key is not None:
        options["access_key_id"] = chosen.archive_s3_access_key.get_secret_value()
        options["secret_access_key"] = chosen.archive_s3_secret_key.get_secret_value()
    return options
