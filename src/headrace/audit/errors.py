"""What can be wrong with a question to the trail, or with a trail that is to be imported."""

from headrace.errors import Conflict, Invalid, NotFound


class EventNotFound(NotFound):
    """There is no such event, or it is not yours to see."""

    code = "audit_event_not_found"


class NotSealed(Conflict):
    """The event is not sealed yet: that happens within minutes. Try again, or run `headrace audit seal`."""

    code = "audit_event_not_sealed"


class SearchInvalid(Invalid):
    """Search for one to five whole identifiers."""

    code = "audit_search_invalid"


class ImportRefused(Invalid):
    """The trail cannot be imported as it is."""

    code = "audit_import_refused"
