"""Errors of the audit trail and its import."""

from headrace.errors import Conflict, Invalid, NotFound


class EventNotFound(NotFound):
    """There is no such event, or you may not read it."""

    code = "audit_event_not_found"


class NotSealed(Conflict):
    """The event is not sealed yet. Try again in a few minutes, or run `headrace audit seal`."""

    code = "audit_event_not_sealed"


class SearchInvalid(Invalid):
    """Search for one to five whole identifiers."""

    code = "audit_search_invalid"


class ImportRefused(Invalid):
    """The trail cannot be imported."""

    code = "audit_import_refused"
