"""``headrace schedules``: make, change, enable, disable and run them."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, list_all, path, perform
from headrace.cli.output import Json, Yes, out, print_done, print_json, print_table, say
from headrace.cli.payloads import pairs, read_payload
from headrace.cli.showing import print_fields, when
from headrace.cli.times import instant
from headrace.cli.words import one_of
from headrace.errors import Invalid

app = typer.Typer(help="Schedules: make, change, enable, disable and run them.", no_args_is_help=True)

ScheduleId = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's id: sch_….")]
Cron = Annotated[str | None, typer.Option(help="When: five fields, or a nickname such as @daily.")]
Interval = Annotated[int | None, typer.Option(help="Or at this interval in seconds.")]
RunAt = Annotated[str | None, typer.Option(help="Or once at this time: 2026-03-01T08:00:00Z.")]
Timezone = Annotated[str | None, typer.Option("--tz", help="The zone whose clock the expression is read by.")]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        "--payload",  # as `submit` has it
        help="What the handler is given, as JSON; @file reads it from a file, - from standard input.",
    ),
]
Labels = Annotated[list[str] | None, typer.Option(help="Only a worker with these runs it, as key=value. Repeatable.")]
Description = Annotated[str | None, typer.Option(help="Its purpose.")]
Policy = Annotated[str | None, one_of(offered=("latest", "all", "none"), help="The policy for missed due times.")]
Duration = Annotated[int | None, typer.Option(help="Seconds that a run may take.")]
Grace = Annotated[int | None, typer.Option(help="Seconds between the request to stop and the kill.")]
Extension = Annotated[int | None, typer.Option(help="Maximum extension of a run in seconds.")]
Retries = Annotated[int | None, typer.Option(help="How often a failed run is tried again.")]
Concurrent = Annotated[int | None, typer.Option(help="Runs at once, over all machines.")]
Overlap = Annotated[
    str | None,
    one_of(
        offered=("queue_all", "queue_one", "skip", "cancel_running"),
        help="The policy for a due time while that many runs are active.",
    ),
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
    options = _options(
        cron, interval, run_at, tz, data, labels, description, misfire, max_duration, grace, max_extension,
        max_retries, max_concurrent, overlap, max_waiting, priority,
    )  # fmt: skip
    body = {"name": name, "type": task_type, **options, "enabled": not disabled}
    made = perform("schedules create", lambda api: api.ask("POST", path("schedules"), body=body))
    if json:
        _print(made, json=True)
    else:
        _say_warnings(made)
        out.print(made["id"])


@app.command()
def update(
    schedule_id: ScheduleId,
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
    """Change a schedule; omitted fields stay."""
    changes = _options(
        cron, interval, run_at, tz, data, labels, description, misfire, max_duration, grace, max_extension,
        max_retries, max_concurrent, overlap, max_waiting, priority,
    )  # fmt: skip
    if name is not None:
        changes["name"] = name
    if not changes:
        raise Invalid("Nothing to change: name at least one of the options.")
    schedule = perform(
        "schedules update",
        lambda api: api.ask("PATCH", path("schedules", schedule_id), body=changes, version=version),
    )
    _print(schedule, json=json)


@app.command("list")
def list_(
    task_type: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    enabled: Annotated[bool | None, typer.Option("--enabled/--disabled", help="Only these.")] = None,
    name: Annotated[str | None, typer.Option(help="Only with this in their name.")] = None,
    labels: Annotated[list[str] | None, typer.Option(help="Only with these, as key=value. Repeatable.")] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="Headrace's own schedules, too: their types begin with headrace.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of schedules.")] = 100,
    json: Json = False,
) -> None:
    """List schedules, newest first."""
    filters = drop_none(
        internal=None if internal or task_type is not None else False,
        type=task_type,
        enabled=enabled,
        name=name,
        label=[f"{label}={value}" for label, value in pairs(labels).items()] or None,
    )
    rows = perform("schedules list", lambda api: list_all(api, path("schedules"), filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "name", "type", "when", "next run", "done", "failed", ""),
        [
            (
                schedule["id"],
                schedule["name"],
                schedule["type"],
                _rhythm(schedule),
                when(schedule["next_run"]),
                f"{schedule['total_executions']:,}",
                f"{schedule['failed_executions']:,}",
                "" if schedule["enabled"] else "disabled",
            )
            for schedule in rows
        ],
    )


@app.command()
def show(schedule_id: ScheduleId, json: Json = False) -> None:
    """Everything about one schedule."""
    _print(perform("schedules show", lambda api: api.ask("GET", path("schedules", schedule_id))), json=json)


@app.command()
def enable(schedule_id: ScheduleId, json: Json = False) -> None:
    """Let a schedule run from now on."""
    schedule = perform("schedules enable", lambda api: api.ask("POST", path("schedules", schedule_id, "enable")))
    if json:
        _print(schedule, json=True)
        return
    _say_warnings(schedule)
    due = f", due {when(schedule['next_run'])}" if schedule["next_run"] else "; it is not due any more"
    out.print(f"{schedule_id} is enabled{due}")


@app.command()
def disable(
    schedule_id: ScheduleId,
    cancel_pending: Annotated[
        bool, typer.Option("--cancel-pending", help="Cancel its runs that have not begun, too.")
    ] = False,
    json: Json = False,
) -> None:
    """Fire no more; running tasks continue, and waiting ones too, unless they are canceled."""
    filters = {"cancel_pending": True} if cancel_pending else None
    disabled = perform(
        "schedules disable", lambda api: api.ask("POST", path("schedules", schedule_id, "disable"), params=filters)
    )
    if json:
        print_json(disabled)
        return
    ended = f"; {disabled['canceled_runs']:,} of its runs that waited are canceled" if cancel_pending else ""
    out.print(f"{schedule_id} is disabled{ended}")


@app.command()
def delete(schedule_id: ScheduleId, yes: Yes = False, json: Json = False) -> None:
    """Remove a schedule with its history; running tasks continue."""
    if not yes:
        typer.confirm(f"Delete {schedule_id} and its history?", abort=True)
    perform("schedules delete", lambda api: api.ask("DELETE", path("schedules", schedule_id)))
    print_done({"id": schedule_id, "deleted": True}, f"{schedule_id} is deleted", json=json)


@app.command("run")
def run_now(schedule_id: ScheduleId, json: Json = False) -> None:
    """Run a schedule once, now, beside its own times."""
    execution = perform("schedules run", lambda api: api.ask("POST", path("schedules", schedule_id, "run")))
    if json:
        print_json(execution)
    else:
        out.print(execution["id"])


@app.command("next")
def next_(
    schedule_id: ScheduleId,
    count: Annotated[int, typer.Option(min=1, max=100, help="How many times to print.")] = 5,
    json: Json = False,
) -> None:
    """Print when a schedule is due next."""
    filters = {"count": count}
    times = perform(
        "schedules next", lambda api: api.ask("GET", path("schedules", schedule_id, "next"), params=filters)
    )["times"]
    if json:
        print_json(times)
        return
    for at in times:
        out.print(when(at))


@app.command()
def statistics(schedule_id: ScheduleId, json: Json = False) -> None:
    """How a schedule has done."""
    result = perform("schedules statistics", lambda api: api.ask("GET", path("schedules", schedule_id, "statistics")))
    if json:
        print_json(result)
    else:
        print_fields(result)


def _options(
    cron: str | None,
    interval: int | None,
    run_at: str | None,
    tz: str | None,
    data: str | None,
    labels: Sequence[str] | None,
    description: str | None,
    misfire: str | None,
    max_duration: int | None,
    grace: int | None,
    max_extension: int | None,
    max_retries: int | None,
    max_concurrent: int | None,
    overlap: str | None,
    max_waiting: int | None,
    priority: int | None,
) -> dict[str, Any]:
    """The options of the command line, by the names of a schedule's fields."""
    options = {
        "cron": cron,
        "interval": interval,
        "run_at": None if run_at is None else instant(run_at, "--run-at").isoformat(),
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
    chosen = {name: value for name, value in options.items() if value is not None}
    return chosen | {"max_waiting": None} if max_waiting == 0 else chosen


# -- showing


def _print(schedule: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(schedule)
        return
    _say_warnings(schedule)
    print_fields({name: value for name, value in schedule.items() if name != "warnings"})


def _say_warnings(schedule: dict[str, Any]) -> None:
    for warning in schedule["warnings"]:
        waits = "" if warning["code"] == "past_due" else "its runs will wait. "
        say(f"warning: {waits}{warning['text']}", style="yellow")


def _rhythm(schedule: dict[str, Any]) -> str:
    if schedule["cron"] is not None:
        zone = "" if schedule["timezone"] == "UTC" else f" ({schedule['timezone']})"
        return f"{schedule['cron']}{zone}"
    return f"every {schedule['interval']} s" if schedule["interval"] is not None else "once"
