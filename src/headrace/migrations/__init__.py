"""The schema: tables by numbered pairs of SQL files, functions, triggers and views by a file each; and the verbs that
move a database along them."""

from headrace.migrations.files import Migration, available
from headrace.migrations.runner import MigrationRefused, migrate, roll_back
from headrace.migrations.schema_status import (
    SchemaBehind,
    SchemaTooNew,
    Status,
    count_pending,
    read_status,
    refuse_too_new,
    require_current,
    status,
    verify_current,
)
from headrace.migrations.unfinished import RestoreUnfinished

__all__ = [
    "Migration",
    "MigrationRefused",
    "RestoreUnfinished",
    "SchemaBehind",
    "SchemaTooNew",
    "Status",
    "available",
    "count_pending",
    "migrate",
    "read_status",
    "refuse_too_new",
    "require_current",
    "roll_back",
    "status",
    "verify_current",
]
