"""Retention of tables, and the archive."""

from datetime import timedelta
from typing import ClassVar, Literal, Self

from pydantic import HttpUrl, SecretStr, model_validator

from headrace.settings.kinds import ArchivedRows, Group, Keep, setting


class RetentionSettings(Group):
    title: ClassVar[str] = "Retention"

    retention_audit: Keep = setting(
        "How long audit events stay in the database before their month is archived. `forever` keeps them here, "
        "also in the settings below. A shorter time takes effect when `headrace migrate` has it as well: here and "
        "in the next two settings.",
        timedelta(days=180),
    )
    retention_deliveries: Keep = setting(
        "The same for webhook deliveries. A month with an open delivery stays.", timedelta(days=180)
    )
    retention_ledger: Keep = setting(
        "The same for the usage ledger. A month that explains an entitlement that has not ended stays.",
        timedelta(days=5 * 365),
    )
    retention_executions: Keep = setting(
        "How long ended runs of schedules are kept; then they are deleted.", timedelta(days=90)
    )
    retention_locks: Keep = setting(
        "How long released and expired locks are kept; then they are deleted.", timedelta(days=7)
    )
    retention_outbox: Keep = setting(
        "How long events that were published, or given up, are kept; then they are deleted.",
        timedelta(days=7),
    )
    retention_notifications: Keep = setting(
        "How long notifications are kept, read or not; then they are deleted.", timedelta(days=180)
    )
    retention_assets: Keep = setting(
        "How long the rows of deleted files are kept, without bytes; then they are deleted, unless a task names them.",
        timedelta(days=90),
    )
    retention_tasks: Keep = setting(
        "How long ended tasks are kept, with their logs and steps; then they are deleted.",
        timedelta(days=90),
    )
    retention_tasks_failed: Keep | Literal["as tasks"] = setting(
        "The same for failed tasks, unless their type overrides it. `as tasks` is as long as the others.",
        "as tasks",
    )
    retention_tasks_canceled: Keep | Literal["as tasks"] = setting("The same for canceled tasks.", "as tasks")
    retention_workers: Keep = setting(
        "How long workers that have ended are kept; then they are deleted.", timedelta(days=7)
    )
    retention_archive_rows: ArchivedRows = setting(
        "Tables whose rows are written to the archive before they are deleted, separated by commas: `task_executions`, "
        "`outbox_events`, `task_locks`. Archived files outlive the deletion of an account; events are "
        "written without names of files and without a task's title, key, labels and error message.",
        (),
    )
    archive_url: str | None = setting(
        "Where retired months are kept: a folder, or `s3://bucket/prefix` of any S3 service. Unset, `archive` "
        "in the data folder.",
        None,
    )
    archive_s3_endpoint: HttpUrl | None = setting(
        "The endpoint of the S3 service, if it is not Amazon's: `http://minio:9000`.", None
    )
    archive_s3_region: str | None = setting("The bucket's region. Unset, `AWS_REGION`.", None)
    archive_s3_access_key: SecretStr | None = setting(
        "The S3 access key. Unset, what `AWS_…` variables or the machine's own role say.", None
    )
    archive_s3_secret_key: SecretStr | None = setting("The secret key that belongs to the S3 access key.", None)

    @model_validator(mode="after")
    def _check_archive(self) -> Self:
        if (self.archive_s3_access_key is None) != (self.archive_s3_secret_key is None):
            raise ValueError("archive_s3_access_key and archive_s3_secret_key go together: set both or none")
        return self
