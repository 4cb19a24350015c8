"""``client.bulk`` and ``client.operations`` for programs without an event loop; described at their twins."""

from collections.abc import Iterator
from typing import Any

from headrace.client.bulk import Bulk, BulkAction, Operations, StatisticsStep
from headrace.client.synchronous_schedules import Loop


class SyncBulk:
    def __init__(self, loop: Loop, bulk: Bulk) -> None:
        self._loop = loop
        self._bulk = bulk

    def count(self, action: str | None = None, **wanted: Any) -> int:
        return self._loop.run(self._bulk.count(action, **wanted))

    def tasks(self, action: str, *, expected: int, **wanted: Any) -> BulkAction:
        return self._loop.run(self._bulk.tasks(action, expected=expected, **wanted))

    def schedules(self, action: str, *, expected: int, **wanted: Any) -> BulkAction:
        return self._loop.run(self._bulk.schedules(action, expected=expected, **wanted))

    def get(self, task_id: str) -> BulkAction:
        return self._loop.run(self._bulk.get(task_id))

    def list(self) -> Iterator[BulkAction]:
        return self._loop.iterate(self._bulk.list())


class SyncOperations:
    def __init__(self, loop: Loop, operations: Operations) -> None:
        self._loop = loop
        self._operations = operations

    def statistics(self, range: str = "hour") -> tuple[StatisticsStep, ...]:  # noqa: A002 - the API's word
        return self._loop.run(self._operations.statistics(range))
