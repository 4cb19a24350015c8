"""Where bytes lie: a folder, or a bucket of anything that speaks S3.

>>> storage = Storage(StorageConfig("file:///srv/files"))
>>> await storage.put("media/u_1/ast_1", path)                    # whole, or not at all; durable when it returns
>>> async for piece in storage.read("media/u_1/ast_1", start=10): ...

Everything that keeps bytes comes here: files of users, results, previews, archives. What kind of bytes they are stands
in the first part of a name (``media/…``); their type and length are the database's business.
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
