"""What can go wrong with stored bytes."""

from headrace.errors import NotFound, Unavailable


class StorageUnreachable(Unavailable):
    """The place where files are stored cannot be read or written."""

    code = "storage_unreachable"


class StorageFull(StorageUnreachable):
    """There is no room left where files are stored: nothing was kept of this one. Try again later."""

    code = "storage_full"


class ObjectNotFound(NotFound):
    """There is no such file in storage."""

    code = "object_not_found"
