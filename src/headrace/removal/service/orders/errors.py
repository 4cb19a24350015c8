"""What can go wrong when a removal is ordered."""

from headrace.errors import Conflict, Exhausted, Invalid, NotFound


class RemovalNotFound(NotFound):
    """There is no such removal."""

    code = "removal_not_found"


class NothingHeldBack(NotFound):
    """Of this removal no result is held back that could be looked at."""

    code = "nothing_held_back"


class MediaUnsupported(Invalid):
    """Marks cannot be taken off files of this kind."""

    code = "media_unsupported"


class PasswordWrong(Invalid):
    """The password does not open the document."""

    code = "password_wrong"


class OrderInvalid(Invalid):
    """The removal cannot be ordered like this."""

    code = "removal_invalid"


class PreviewLimit(Exhausted):
    """Too many results that were not paid for were shown today: order with `accept_poor`, or wait until tomorrow."""

    code = "preview_limit"


class DetectionLimit(Exhausted):
    """Marks were looked for in this file too often today: order the removal, or wait until tomorrow."""

    code = "detection_limit"


class ReturnRefused(Conflict):
    """The result of this removal cannot be returned."""

    code = "return_refused"


class ReturnLimit(Exhausted):
    """No more results can be returned now."""

    code = "return_limit"
