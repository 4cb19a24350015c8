"""Schedules and their runs, for programs with an event loop: ``client.schedules`` and ``client.executions``."""

from __future__ import annotations  # a method is named list

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.client.generated.answers import Execution, RunWhy, Schedule, Statistics
from headrace.client.orders import NewSchedule
from headrace.client.verbs import Verbs, given, part


class Schedules(Verbs):
    """Schedules."""

    async def create(self, schedule: NewSchedule, *, key: str | None = None) -> Schedule:
        """Create a schedule. Retries create one."""
        return Schedule.of(await self._create("/v1/schedules", schedule.as_json(), key))

    async def get(self, schedule_id: str) -> Schedule:
        """One schedule."""
        return Schedule.of(await self._get(_schedule(schedule_id)))

    async def update(self, schedule_id: str, *, version: int | None = None, **changes: Any) -> Schedule:
        """Change fields of ``NewSchedule``; with a ``version`` only if it matches.

        Setting ``cron``, ``interval`` or ``run_at`` replaces the others.
        """
        body = {name: None for name, value in changes.items() if value is None} | given(changes)
        return Schedule.of(
            await self._change(_schedule(schedule_id), version, safe=version is not None, method="PATCH", body=body)
        )

    async def enable(self, schedule_id: str, *, version: int | None = None) -> Schedule:
        """Enable it from now on; times due meanwhile are skipped."""
        return Schedule.of(await self._change(f"{_schedule(schedule_id)}/enable", version, safe=True))

    async def disable(self, schedule_id: str, *, version: int | None = None, cancel_pending: bool = False) -> Schedule:
        """Disable it; running and waiting runs continue, unless ``cancel_pending`` ends the waiting ones."""
        asked = given({"cancel_pending": cancel_pending or None})
        return Schedule.of(await self._change(f"{_schedule(schedule_id)}/disable", version, safe=True, params=asked))

    async def delete(self, schedule_id: str, *, version: int | None = None) -> None:
        """Delete a schedule and its history. Running runs continue as tasks."""
        await self._change(_schedule(schedule_id), version, safe=False, method="DELETE")

    async def run(self, schedule_id: str, *, key: str | None = None) -> Execution:
        """Run it once now, beside its own times. Retries run it once."""
        return Execution.of(await self._create(f"{_schedule(schedule_id)}/run", None, key))

    async def upcoming(self, schedule_id: str, *, count: int = 5) -> Sequence[datetime]:
        """The next due times; none while it is disabled."""
        return _times(await self._get(f"{_schedule(schedule_id)}/next", {"count": count}))

    async def preview(
        self,
        *,
        cron: str | None = None,
        interval: int | None = None,
        timezone: str = "UTC",
        after: datetime | None = None,
        count: int = 5,
    ) -> Sequence[datetime]:
        """Due times of a timing before it is saved."""
        asked = {"cron": cron, "interval": interval, "timezone": timezone, "after": after, "count": count}
        return _times(await self._change("/v1/schedules/preview", None, safe=True, body=given(asked)))

    async def statistics(self, schedule_id: str) -> Statistics:
        """Statistics of its runs."""
        return Statistics.of(await self._get(f"{_schedule(schedule_id)}/statistics"))

    async def list(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the API's word
        enabled: bool | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[Schedule, None]:
        """Your schedules, newest first; ``name`` is a substring. ``user_id`` is for administrators: one user, or
        ``"*"`` for all."""
        asked = {"type": type, "enabled": enabled, "name": name, "user_id": user_id}
        pairs = [f"{label}={value}" for label, value in (labels or {}).items()]
        async for item in self._pages("/v1/schedules", {**asked, "label": pairs or None}):
            yield Schedule.of(item)


class Executions(Verbs):
    """The runs of schedules."""

    async def get(self, execution_id: str) -> Execution:
        """One run, with its result or its error and stack."""
        return Execution.of(await self._get(_execution(execution_id)))

    async def cancel(self, execution_id: str) -> Execution:
        """Cancel a run; a running one receives a stop request and ends soon after. Idempotent."""
        return Execution.of(await self._change(f"{_execution(execution_id)}/cancel", None, safe=True))

    async def why(self, execution_id: str) -> RunWhy:
        """Why a run is not running."""
        return RunWhy.of(await self._get(f"{_execution(execution_id)}/why"))

    async def list(
        self,
        *,
        schedule_id: str | None = None,
        status: str | Sequence[str] | None = None,
        trigger: str | None = None,
        type: str | None = None,  # noqa: A002 - the API's word
        due_after: datetime | None = None,
        due_before: datetime | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[Execution, None]:
        """Your runs, latest due time first, without results and stacks."""
        asked = {
            "schedule_id": schedule_id,
            "status": [status] if isinstance(status, str) else status,
            "trigger": trigger,
            "type": type,
            "due_after": due_after,
            "due_before": due_before,
            "user_id": user_id,
        }
        async for item in self._pages("/v1/executions", asked):
            yield Execution.of(item)


def _schedule(schedule_id: str) -> str:
    return f"/v1/schedules/{part(schedule_id)}"


def _execution(execution_id: str) -> str:
    return f"/v1/executions/{part(execution_id)}"


def _times(answer: Mapping[str, Any]) -> Sequence[datetime]:
    return [datetime.fromisoformat(each) for each in answer["times"]]
