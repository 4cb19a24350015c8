"""Bulk actions on all rows of a filter: ``client.bulk``. Statistics: ``client.operations``."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

from headrace.client.generated.answers import BulkAction, Overview, StatisticsStep
from headrace.client.verbs import Verbs, given, part


class Bulk(Verbs):
    """Cancel, retry or delete tasks, enable or disable schedules: all that match, in one request."""

    async def count(
        self,
        action: str | None = None,
        *,
        status: Sequence[str] | None = None,
        type: str | None = None,  # noqa: A002 - the API's word
        queue: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
    ) -> int:
        """The number of matching tasks to which the action applies, counted up to 100,000."""
        asked = {"action": action, "status": status, "type": type, "queue": queue, "user_id": user_id}
        times = {"created_after": created_after, "created_before": created_before}
        answer = await self._get("/v1/tasks/count", given({**asked, **times}))
        return int(answer["count"])

    async def tasks(
        self,
        action: str,
        *,
        expected: int,
        status: Sequence[str] | None = None,
        type: str | None = None,  # noqa: A002 - the API's word
        queue: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
        ids: Sequence[str] | None = None,
        key: str | None = None,
    ) -> BulkAction:
        """Apply ``cancel``, ``retry`` or ``delete`` to every task that matches now. ``expected`` is the confirmed
        number: refused with ``count_grew`` if many more match by now."""
        asked = {"status": status, "type": type, "queue": queue, "owner": user_id, "ids": ids}
        times = {"created_after": created_after, "created_before": created_before}
        return await self._act("/v1/tasks/bulk", action, expected, given({**asked, **times}), key)

    async def schedules(
        self,
        action: str,
        *,
        expected: int,
        type: str | None = None,  # noqa: A002 - the API's word
        name: str | None = None,
        user_id: str | None = None,
        ids: Sequence[str] | None = None,
        key: str | None = None,
    ) -> BulkAction:
        """Apply ``enable`` or ``disable`` to every matching schedule."""
        wanted = given({"type": type, "name": name, "owner": user_id, "ids": ids})
        return await self._act("/v1/schedules/bulk", action, expected, wanted, key)

    async def get(self, task_id: str) -> BulkAction:
        """The progress of an action."""
        return BulkAction.of(await self._get(f"/v1/tasks/bulk/{part(task_id)}"))

    async def list(self) -> AsyncGenerator[BulkAction, None]:
        """Bulk actions, newest first."""
        async for item in self._pages("/v1/tasks/bulk"):
            yield BulkAction.of(item)

    async def _act(self, path: str, action: str, expected: int, wanted: dict[str, Any], key: str | None) -> BulkAction:
        body = {"action": action, "filter": wanted, "expected": expected}
        return BulkAction.of(await self._create(path, body, key))


class Operations(Verbs):
    """Statistics of the installation, for administrators."""

    async def overview(self) -> Overview:
        """Queues, workers and findings at a glance."""
        return Overview.of(await self._get("/v1/admin/overview"))

    async def statistics(
        self,
        range: str = "hour",  # noqa: A002 - the API's word
        *,
        task_type: str | None = None,
    ) -> tuple[StatisticsStep, ...]:
        """Submitted and ended tasks and their durations: the last ``hour``, ``day`` or ``week`` in intervals.

        ``task_type`` narrows the durations to one type.
        """
        params = {"range": range} if task_type is None else {"range": range, "task_type": task_type}
        answer = await self._get("/v1/admin/statistics", params)
        return tuple(StatisticsStep.of(point) for point in answer["points"])
