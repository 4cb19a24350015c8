"""Why an action on many rows is not begun, or not gone on with."""

from headrace.errors import Conflict, Invalid, NotFound


class BulkNotFound(NotFound):
    """There is no such action on many rows."""

    code = "bulk_not_found"


class CountGrew(Conflict):
    """More match by now than you were shown: check the number in `details.count`, and ask again if it is meant."""

    code = "count_grew"


class NothingToDo(Invalid):
    """Nothing that the filter can match is in a state in which this could be done to it."""

    code = "nothing_to_do"
