"""File storage: a folder, or a bucket of any S3-compatible service.

>>> storage = Storage(StorageConfig("file:///srv/files"))
>>> await storage.put("media/u_1/ast_1", path)                    # whole, or not at all; durable when it returns
>>> async for piece in storage.read("media/u_1/ast_1", start=10): ...

All stored bytes use it: files of users, results, previews, archives. The first part of a name is their kind
(``media/…``); type and length are in the database.
"""

from headrace.storage.errors import ObjectNotFound, StorageFull, StorageRefused, StorageUnreachable
from headrace.storage.model import StorageConfig, StoredObject
from headrace.storage.service import Storage

__all__ = [
    "ObjectNotFound",
    "Storage",
    "StorageConfig",
    "StorageFull",
    "StorageRefused",
    "StorageUnreachable",
    "StoredObject",
]
