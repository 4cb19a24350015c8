"""``headrace schedules``: make, change, enable, disable and run them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, Yes, out, print_json, print_table, say
from headrace.cli.submit import read_payload
from headrace.cli.times import instant
from headrace.cli.worker import pairs
from headrace.database import Tx
from headrace.errors import Invalid
from headrace.schedules import service
from headrace.schedules.model import MisfirePolicy, OverlapPolicy, Schedule, ScheduleSpec
from headrace.schedules.schemas import DisabledOut, ExecutionOut, ScheduleItemOut, ScheduleOut, StatisticsOut
from headrace.schedules.store.schedules import ScheduleFilter
from headrace.schedules.warnings import warnings_of
from headrace.tasks.why import Code

app = typer.Typer(help="Schedules: make, change, enable, disable and run them.", no_args_is_help=True)

_PAGE = 200

Uid = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's id: sch_….")]
Cron = Annotated[str | None, typer.Option(help="When: five fields, or a nickname such as @daily.")]
Interval = Annotated[int | None, typer.Option(help="Or every so many seconds.")]
RunAt = Annotated[str | None, typer.Option(help="Or once at this time: 2026-03-01T08:00:00Z.")]
Timezone = Annotated[str | None, typer.Option("--tz", help="The zone whose clock the expression is read by.")]
Data = Annotated[
    str | None,
    typer.Option(help="What the handler is given, as JSON; @file reads it from a file, - from standard input."),
]
Labels = Annotated[list[str] | None, typer.Option(help="Only a worker with these runs it, as key=value. Repeatable.")]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
Policy = Annotated[MisfirePolicy | None, typer.Option(help="What becomes of due times that nobody fired.")]
Duration = Annotated[int | None, typer.Option(help="Seconds that a run may take.")]
Grace = Annotated[int | None, typer.Option(help="Seconds from asking it to stop until it is killed.")]
Extension = Annotated[int | None, typer.Option(help="Seconds more that a run may ask for.")]
Retries = Annotated[int | None, typer.Option(help="How often a failed run is tried again.")]
Concurrent = Annotated[int | None, typer.Option(help="Runs at once, over all machines.")]
Overlap = Annotated[
    OverlapPolicy | None, typer.Option(help="What becomes of a due time while that many runs are under way.")
]
Waiting = Annotated[
    int | None, typer.Option(help="How many runs may wait, with --overlap queue_all; 0 takes the limit away.")
]
Priority = Annotated[int | None, typer.Option(help="Higher starts first.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it; unique for its owner.")],
    task_type: Annotated[str, typer.Argument(metavar="TYPE", help="The task type, as a worker has registered it.")],
    cron: Cron = None,
    interval: Interval = None,
    run_at: RunAt = None,
    tz: Timezone = None,
    data: Data = None,
    labels: Labels = None,
    description: Description = None,
    misfire: Policy = None,
    max_duration: Duration = None,
    grace: Grace = None,
    max_extension: Extension = None,
    max_retries: Retries = None,
    max_concurrent: Concurrent = None,
    overlap: Overlap = None,
    max_waiting: Waiting = None,
    priority: Priority = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Make it, and let it wait to be enabled.")] = False,
    json: Json = False,
) -> None:
    """Make a schedule and print its id."""
    given = _given(
        cron, interval, run_at, tz, data, labels, description, misfire, max_duration, grace, max_extension,
        max_retries, max_concurrent, overlap, max_waiting, priority,
    )  # fmt: skip
    spec = ScheduleSpec(name, task_type, **given, enabled=not disabled)
    made = as_operator(
        "schedules create",
        lambda session: _warned(session, lambda tx: service.create_schedule(tx, session.tasks, session.caller, spec)),
    )
    if json:
        _print(made, json=True)
    else:
        _say_warnings(made)
        out.print(made.id, markup=False)


@app.command()
def update(
    uid: Uid,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    cron: Cron = None,
    interval: Interval = None,
    run_at: RunAt = None,
    tz: Timezone = None,
    data: Data = None,
    labels: Labels = None,
    description: Description = None,
    misfire: Policy = None,
    max_duration: Duration = None,
    grace: Grace = None,
    max_extension: Extension = None,
    max_retries: Retries = None,
    max_concurrent: Concurrent = None,
    overlap: Overlap = None,
    max_waiting: Waiting = None,
    priority: Priority = None,
    version: Annotated[int | None, typer.Option(help="Change it only if this is still its version.")] = None,
    json: Json = False,
) -> None:
    """Change a schedule; what is left out stays."""
    changes = _given(
        cron, interval, run_at, tz, data, labels, description, misfire, max_duration, grace, max_extension,
        max_retries, max_concurrent, overlap, max_waiting, priority,
    )  # fmt: skip
    if name is not None:
        changes["name"] = name
    if not changes:
        raise Invalid("Nothing to change: name at least one of the options.")
    schedule = as_operator(
        "schedules update",
        lambda session: _warned(
            session,
            lambda tx: service.update_schedule(tx, session.tasks, session.caller, uid, changes, expected=version),
        ),
    )
    _print(schedule, json=json)


@app.command("list")
def list_(
    task_type: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    enabled: Annotated[bool | None, typer.Option("--enabled/--disabled", help="Only these.")] = None,
    name: Annotated[str | None, typer.Option(help="Only with this in their name.")] = None,
    labels: Annotated[list[str] | None, typer.Option(help="Only with these, as key=value. Repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")] = 100,
    json: Json = False,
) -> None:
    """List schedules, newest first."""
    wanted = ScheduleFilter(None, task_type, enabled, pairs(labels), name)
    found = as_operator("schedules list", lambda session: _list(session, wanted, limit))
    if json:
        print_json([ScheduleItemOut.of(schedule).model_dump(mode="json") for schedule in found])
        return
    print_table(
        ("id", "name", "type", "when", "next run", "done", "failed", ""),
        [
            (
                schedule.uid,
                schedule.name,
                schedule.type,
                _when(schedule),
                schedule.next_run and _time(schedule.next_run),
                f"{schedule.total_executions:,}",
                f"{schedule.failure_executions:,}",
                "" if schedule.enabled else "disabled",
            )
            for schedule in found
        ],
    )


@app.command()
def show(uid: Uid, json: Json = False) -> None:
    """Everything about one schedule."""
    _print(
        as_operator(
            "schedules show",
            lambda session: _warned(session, lambda tx: service.get_schedule(tx, session.caller, uid)),
        ),
        json=json,
    )


@app.command()
def enable(uid: Uid, json: Json = False) -> None:
    """Let a schedule run from now on."""
    schedule = as_operator(
        "schedules enable",
        lambda session: _warned(session, lambda tx: service.enable_schedule(tx, session.tasks, session.caller, uid)),
    )
    if json:
        _print(schedule, json=True)
        return
    _say_warnings(schedule)
    due = f", due {_time(schedule.next_run)}" if schedule.next_run else "; it is not due any more"
    out.print(f"{uid} is enabled{due}", markup=False)


@app.command()
def disable(
    uid: Uid,
    cancel_pending: Annotated[
        bool, typer.Option("--cancel-pending", help="Cancel its runs that have not begun, too.")
    ] = False,
    json: Json = False,
) -> None:
    """Fire no more; what runs goes on, and so does what waits, unless it is canceled."""
    disabled = as_operator(
        "schedules disable",
        lambda session: _in_transaction(
            session,
            lambda tx: service.disable_schedule(tx, session.tasks, session.caller, uid, cancel_pending=cancel_pending),
        ),
    )
    if json:
        print_json(DisabledOut.of_disabled(disabled).model_dump(mode="json"))
        return
    ended = f"; {disabled.canceled:,} of its runs that waited are canceled" if cancel_pending else ""
    out.print(f"{uid} is disabled{ended}", markup=False)


@app.command()
def delete(uid: Uid, yes: Yes = False) -> None:
    """Remove a schedule with its history; what runs goes on as a task."""
    if not yes:
        typer.confirm(f"Delete {uid} and its history?", abort=True)
    as_operator(
        "schedules delete",
        lambda session: _in_transaction(session, lambda tx: service.delete_schedule(tx, session.caller, uid)),
    )
    out.print(f"{uid} is deleted", markup=False)


@app.command("run")
def run_now(uid: Uid, json: Json = False) -> None:
    """Run a schedule once, now, beside its own times."""
    execution = as_operator(
        "schedules run",
        lambda session: _in_transaction(
            session, lambda tx: service.run_schedule(tx, session.tasks, session.caller, uid)
        ),
    )
    if json:
        print_json(ExecutionOut.of(execution).model_dump(mode="json"))
    else:
        out.print(execution.execution_uid, markup=False)


@app.command("next")
def next_(
    uid: Uid,
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many times to print.")] = 5,
    json: Json = False,
) -> None:
    """Print when a schedule is due next."""
    times = as_operator(
        "schedules next",
        lambda session: _in_transaction(session, lambda tx: service.upcoming(tx, session.caller, uid, count=count)),
    )
    if json:
        print_json([at.isoformat() for at in times])
        return
    for at in times:
        out.print(_time(at), markup=False)


@app.command()
def statistics(uid: Uid, json: Json = False) -> None:
    """How a schedule has done."""
    found = as_operator(
        "schedules statistics",
        lambda session: _in_transaction(session, lambda tx: service.get_statistics(tx, session.caller, uid)),
    )
    shown = StatisticsOut.of(found)
    if json:
        print_json(shown.model_dump(mode="json"))
        return
    print_table(("figure", "value"), [(name, _plain(value)) for name, value in shown.model_dump().items()])


# -- acting


async def _in_transaction(session: OperatorSession, act: Callable[[Any], Awaitable[Any]]) -> Any:
    async with session.db.transaction() as tx:
        return await act(tx)


async def _warned(session: OperatorSession, act: Callable[[Tx], Awaitable[Schedule]]) -> ScheduleOut:
    """A schedule as the API shows it, with what is worth saying about it."""
    async with session.db.transaction() as tx:
        schedule = await act(tx)
        return ScheduleOut.warned(schedule, await warnings_of(tx, session.tasks, schedule))


async def _list(session: OperatorSession, wanted: ScheduleFilter, limit: int) -> Sequence[Schedule]:
    found: list[Schedule] = []
    mark = None
    async with session.db.transaction() as tx:
        while page := await service.list_schedules(
            tx, session.caller, wanted, older_than=mark, limit=min(_PAGE, limit - len(found))
        ):
            found += page
            mark = (found[-1].created_at, found[-1].uid)
            if len(found) >= limit:
                break
    return found


def _given(
    cron: str | None,
    interval: int | None,
    run_at: str | None,
    tz: str | None,
    data: str | None,
    labels: Sequence[str] | None,
    description: str | None,
    misfire: MisfirePolicy | None,
    max_duration: int | None,
    grace: int | None,
    max_extension: int | None,
    max_retries: int | None,
    max_concurrent: int | None,
    overlap: OverlapPolicy | None,
    max_waiting: int | None,
    priority: int | None,
) -> dict[str, Any]:
    """What was said on the command line, by the names of a schedule's fields."""
    options = {
        "cron": cron,
        "interval": interval,
        "run_at": None if run_at is None else instant(run_at, "--run-at"),
        "timezone": tz,
        "data": None if data is None else read_payload(data, "--data"),
        "labels": pairs(labels) if labels else None,
        "description": description,
        "misfire_policy": misfire,
        "max_duration_seconds": max_duration,
        "timeout_grace_period": grace,
        "max_extension_seconds": max_extension,
        "max_retries": max_retries,
        "max_concurrent": max_concurrent,
        "overlap_policy": overlap,
        "max_waiting": max_waiting,
        "priority": priority,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return given | {"max_waiting": None} if max_waiting == 0 else given


# -- showing


def _print(shown: ScheduleOut, *, json: bool) -> None:
    if json:
        print_json(shown.model_dump(mode="json"))
        return
    _say_warnings(shown)
    fields = shown.model_dump(exclude={"warnings"}).items()
    print_table(("field", "value"), [(name, _plain(value)) for name, value in fields if value not in (None, {})])


def _say_warnings(shown: ScheduleOut) -> None:
    for warning in shown.warnings:
        waits = "" if warning.code == Code.PAST_DUE else "its runs will wait. "
        say(f"warning: {waits}{warning.text}", style="yellow")


def _when(schedule: Schedule) -> str:
    if schedule.cron_expr is not None:
        zone = "" if schedule.timezone == "UTC" else f" ({schedule.timezone})"
        return f"{schedule.cron_expr}{zone}"
    return f"every {schedule.interval} s" if schedule.interval is not None else "once"


def _plain(value: Any) -> Any:
    return _time(value) if isinstance(value, datetime) else value


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
