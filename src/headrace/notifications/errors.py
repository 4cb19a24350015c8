"""Errors of notifications."""

from headrace.errors import NotFound


class NotificationNotFound(NotFound):
    """There is no such notification."""

    code = "notification_not_found"
