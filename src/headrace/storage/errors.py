"""Errors of file storage.

The first argument of each is for operators: it may name the bucket, the endpoint or the folder. The message for users
names none of them.
"""

from headrace.errors import NotFound, Unavailable


class StorageError(Unavailable):
    """Files cannot be stored or read."""

    def __init__(self, reason: str = "") -> None:
        super().__init__()
        self._reason = reason

    @property
    def operator_message(self) -> str:
        return self._reason or self.message


class StorageUnreachable(StorageError):
    """Files cannot be stored or read right now: try again later."""

    code = "storage_unreachable"


class StorageRefused(StorageUnreachable):
    """Files cannot be stored or read right now: try again later.

    For operators: the bucket is missing, the access key is wrong or has too few rights, or the folder is not writable.
    Waiting does not help, so that a process that starts ends with it. Users see the same code as for an outage.
    """


class StorageFull(StorageUnreachable):
    """File storage is full, and this file was not stored: try again later."""

    code = "storage_full"


class ObjectNotFound(StorageError):
    """The bytes of this file cannot be found in file storage."""

    code = "object_not_found"


class PartsLost(NotFound):
    """The storage no longer knows this upload: begin a new one."""

    code = "upload_lost"
