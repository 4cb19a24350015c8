"""The overview and the statistics as the API shows them."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from headrace.admin.doctor import Verdict
from headrace.admin.overview.model import Overview, ShownSetting, WorkerCounts
from headrace.admin.statistics.model import Point, QueueSeries, Range, Statistics
from headrace.tasks.queue_schemas import QueueOut


class AlarmOut(BaseModel):
    """One check of `headrace doctor`."""

    check: str = Field(examples=["outbox"])
    verdict: Verdict = Field(description="`warning` and `bad` need attention.")
    message: str = Field(examples=["no event waits; relays at work: 1"])


class CrewOut(BaseModel):
    """Worker processes together."""

    alive: int
    silent: int = Field(description="Without a heartbeat for longer than their lease: other workers take their tasks.")
    stopping: int
    slots: int = Field(description="How many tasks may run at once; a stopping worker counts with those it still runs.")
    running: int

    @classmethod
    def of(cls, workers: WorkerCounts) -> Self:
        return cls(
            alive=workers.alive,
            silent=workers.silent,
            stopping=workers.stopping,
            slots=workers.slots,
            running=workers.running,
        )


class OverviewOut(BaseModel):
    """Queues, workers and findings."""

    at: datetime
    waiting: int
    delayed: int = Field(description="Waiting for their time.")
    running: int
    exact: bool = Field(description="False: counting ended at a bound, and more are waiting.")
    oldest_waiting_seconds: float | None = Field(description="For how long the first that is due has waited.")
    oldest_waiting_queue: str | None
    queues: list[QueueOut]
    workers: CrewOut
    alarms: list[AlarmOut] = Field(description="All checks, those that want attention first.")
    alarms_at: datetime = Field(description="When the checks were made: at most some seconds ago.")

    @classmethod
    def of(cls, overview: Overview) -> Self:
        oldest = max(
            (queue for queue in overview.queues if queue.contents.oldest_waiting_seconds is not None),
            key=lambda queue: queue.contents.oldest_waiting_seconds or 0.0,
            default=None,
        )
        worst_first = {verdict: place for place, verdict in enumerate(reversed(Verdict))}
        return cls(
            at=overview.now,
            waiting=sum(queue.contents.waiting for queue in overview.queues),
            delayed=sum(queue.contents.delayed for queue in overview.queues),
            running=sum(queue.contents.running for queue in overview.queues),
            exact=all(queue.contents.exact for queue in overview.queues),
            oldest_waiting_seconds=None if oldest is None else oldest.contents.oldest_waiting_seconds,
            oldest_waiting_queue=None if oldest is None else oldest.rules.name,
            queues=[QueueOut.counted(queue) for queue in overview.queues],
            workers=CrewOut.of(overview.workers),
            alarms=[
                AlarmOut(check=each.check, verdict=each.verdict, message=each.message)
                for each in sorted(overview.findings, key=lambda each: worst_first[each.verdict])
            ],
            alarms_at=overview.findings_at,
        )


class PointOut(BaseModel):
    """One step of a plot. Counts are sums over the step. Values sampled once a minute are null without a sample."""

    at: datetime = Field(description="When the step begins.")
    submitted: int
    succeeded: int
    failed: int
    needs_input: int = Field(
        description="Of `failed`: removals that ended with a question to their owner, or found no mark."
    )
    canceled: int
    waiting: int | None = Field(description="The most at any minute; counting ends at a bound.")
    delayed: int | None
    running: float | None = Field(description="The mean, as are `workers` and `slots`.")
    oldest_waiting_seconds: float | None
    workers: float | None
    slots: float | None
    slots_busy: float | None = Field(
        description="Slots with a task; `running` also counts tasks that a worker fetched early."
    )
    wait_p50: float | None = Field(
        description="Median wait in seconds of the tasks that ended. Percentiles are at most 1 % off the exact ones."
    )
    wait_p95: float | None
    run_p50: float | None = Field(description="Median run time in seconds of the tasks that ended.")
    run_p95: float | None
    wait_max: float | None = Field(description="The longest wait; no percentile is above it.")
    run_max: float | None

    @classmethod
    def of(cls, point: Point) -> Self:
        return cls(
            at=point.at,
            submitted=point.submitted,
            succeeded=point.succeeded,
            failed=point.failed,
            needs_input=point.needs_input,
            canceled=point.canceled,
            waiting=point.waiting,
            delayed=point.delayed,
            running=point.running,
            oldest_waiting_seconds=point.oldest_seconds,
            workers=point.workers,
            slots=point.slots,
            slots_busy=point.slots_busy,
            wait_p50=point.waited.quantile(0.5),
            wait_p95=point.waited.quantile(0.95),
            run_p50=point.ran.quantile(0.5),
            run_p95=point.ran.quantile(0.95),
            wait_max=point.waited.longest,
            run_max=point.ran.longest,
        )


class QueueSeriesOut(BaseModel):
    """One queue: a value for each point."""

    name: str
    waiting: list[int | None]
    ended: list[int]
    failed: list[int]

    @classmethod
    def of(cls, series: QueueSeries) -> Self:
        return cls(name=series.name, waiting=list(series.waiting), ended=list(series.ended), failed=list(series.failed))


class StatisticsRangeOut(BaseModel):
    """The statistics, in steps. A step without a measurement, because no API or scheduler ran, has no point."""

    range: Range
    since: datetime
    until: datetime
    step_seconds: int
    points: list[PointOut]
    queues: list[QueueSeriesOut] = Field(description="The busiest, at most eight.")
    task_type: str | None = Field(description="The task type of the percentiles; null is all types together.")
    types: list[str] = Field(description="Task types that ended in this time, the most frequent first, at most 50.")

    @classmethod
    def of(cls, statistics: Statistics) -> Self:
        return cls(
            range=statistics.range,
            since=statistics.since,
            until=statistics.until,
            step_seconds=int(statistics.range.step.total_seconds()),
            points=[PointOut.of(point) for point in statistics.points],
            queues=[QueueSeriesOut.of(series) for series in statistics.queues],
            task_type=statistics.task_type,
            types=list(statistics.types),
        )


class SettingOut(BaseModel):
    """A setting that is in force in the API process that answers."""

    name: str = Field(examples=["HEADRACE_API_PORT"])
    group: str
    value: str | None = Field(description="As a person would write it; a secret is dots, null is unset.")
    chosen: bool = Field(description="False: it is the default.")
    secret: bool
    description: str

    @classmethod
    def of(cls, setting: ShownSetting) -> Self:
        return cls(
            name=setting.name,
            group=setting.group,
            value=setting.value,
            chosen=setting.chosen,
            secret=setting.secret,
            description=setting.description,
        )


class FailureGroupOut(BaseModel):
    """Failures of one type that end with the same line."""

    task_type: str = Field(examples=["report.build"])
    error_code: str | None = Field(examples=["error"])
    error: str = Field(description="The last line of the error.", examples=["KeyError: 'total'"])
    count: int = Field(examples=[80])
    last_at: datetime
    last_task_id: str = Field(examples=["tsk_01h455vb4pex5vsknk084sn02q"])
