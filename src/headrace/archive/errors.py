"""Errors while months leave the database."""

from headrace.errors import Conflict, Denied, Invalid, NotFound, Unavailable


class OwnerNeeded(Denied):
    """Only the owner makes and drops tables: set HEADRACE_DATABASE_OWNER_URL to a member of headrace_owner."""

    code = "owner_needed"


class ArchiveNotFound(NotFound):
    """There is no such archive."""

    code = "archive_not_found"


class ArchiveDamaged(Conflict):
    """The archive differs from its record: nothing of it is dropped or restored."""

    code = "archive_damaged"


class ArchiveNotWritten(Conflict):
    """This month is not in the archive yet."""

    code = "archive_not_written"


class AlreadyRestored(Conflict):
    """This archive is restored already: read that table, or discard it first."""

    code = "already_restored"


class NotMonthly(NotFound):
    """There is no table of that name that is kept by months."""

    code = "not_monthly"


class MonthNotFound(NotFound):
    """This table has no such month, neither attached nor on its way out."""

    code = "month_not_found"


class MonthNeeded(Conflict):
    """This month is still needed where it is."""

    code = "month_needed"


class PartitionBusy(Unavailable):
    """The table is in use without a pause; nothing was changed, try again later."""

    code = "partition_busy"


class RetiredElsewhere(Conflict):
    """Another process is retiring months of this table right now."""

    code = "retired_elsewhere"


class BadQuery(Invalid):
    """DuckDB refuses the query."""

    code = "bad_query"


class NothingArchived(NotFound):
    """No month that the query asks for is archived."""

    code = "nothing_archived"


class RetentionIncomplete(Conflict):
    """What should have gone is still there."""

    code = "retention_incomplete"


class TrailFaulty(Conflict):
    """The audit trail is not as it was sealed."""

    code = "trail_faulty"


class LedgerFaulty(Conflict):
    """Something in the ledger does not add up."""

    code = "ledger_faulty"


class VerificationRunning(Conflict):
    """The trail is being verified at this moment: wait for the result, then ask again."""

    code = "verification_running"
