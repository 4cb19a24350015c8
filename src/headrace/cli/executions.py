"""``headrace executions``: the runs of schedules."""

from typing import Annotated

import typer

from headrace.cli.calls import drop_none, list_all, path, perform
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.showing import print_fields, print_reasons, when
from headrace.cli.tasks import for_each
from headrace.cli.times import instant_or_utc
from headrace.cli.words import one_of

app = typer.Typer(help="The runs of schedules: list and cancel them.", no_args_is_help=True)

RunId = Annotated[str, typer.Argument(metavar="EXECUTION", help="The run's id: exe_….")]
RunIds = Annotated[list[str], typer.Argument(metavar="EXECUTION...", help="The runs' ids: exe_….")]

_STATUSES = ("PENDING", "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "INTERRUPTED")


@app.command("list")
def list_(
    schedule: Annotated[str | None, typer.Option(help="Only of this schedule, by id.")] = None,
    status: Annotated[list[str] | None, one_of(offered=_STATUSES, help="Only these; may be repeated.")] = None,
    trigger: Annotated[str | None, one_of(offered=("scheduled", "manual"), help="Only runs with this trigger.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only runs of this type.")] = None,
    since: Annotated[str | None, typer.Option(help="Only runs due from this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only runs due before this time.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of runs.")] = 20,
    json: Json = False,
) -> None:
    """List runs, those that were due last first."""
    filters = drop_none(
        schedule_id=schedule,
        status=status or None,
        trigger=trigger,
        type=type_,
        due_after=None if since is None else instant_or_utc(since, "--since").isoformat(),
        due_before=None if until is None else instant_or_utc(until, "--until").isoformat(),
    )
    rows = perform("executions list", lambda api: list_all(api, path("executions"), filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "schedule", "status", "due", "attempt", "took", "trigger", "error"),
        [
            (
                run["id"],
                run["schedule_name"],
                f"{run['status']} {run['progress']} %" if run["status"] == "RUNNING" else run["status"],
                when(run["scheduled_at"]),
                run["retry_count"] + 1,
                f"{run['duration_ms']:,} ms" if run["finished_at"] else None,
                run["trigger_type"],
                (run["error_message"] or "").partition("\n")[0][:60],
            )
            for run in rows
        ],
    )


@app.command()
def show(run_id: RunId, json: Json = False) -> None:
    """Everything about one run."""
    run = perform("executions show", lambda api: api.ask("GET", path("executions", run_id)))
    if json:
        print_json(run)
    else:
        print_fields(run, last=("error_stack",))


@app.command()
def cancel(run_ids: RunIds, json: Json = False) -> None:
    """Cancel runs: a waiting one ends at once, a running one is asked to stop."""
    canceled = perform(
        "executions cancel",
        lambda api: for_each(api, "POST", run_ids, lambda run_id: path("executions", run_id, "cancel")),
    )
    if json:
        print_json(canceled)
        return
    for run in canceled:
        outcome = f"is {run['status']}" if run["finished_at"] else "is asked to stop"
        out.print(f"{run['id']} {outcome}")


@app.command()
def why(run_id: RunId, json: Json = False) -> None:
    """Show why a run is not running, the most important reason first."""
    explained = perform("executions why", lambda api: api.ask("GET", path("executions", run_id, "why")))
    if json:
        print_json(explained)
        return
    out.print(f"{run_id} is {explained['status']}")
    print_reasons(explained["reasons"])
