"""``headrace executions``: the runs of schedules."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.times import instant_or_utc
from headrace.cli.words import one_of, stored_words
from headrace.edge.vocabulary import shown, words_of
from headrace.errors import Conflict, NotFound
from headrace.schedules import executions
from headrace.schedules.executions import RunExplanation
from headrace.schedules.model import Execution, ExecutionState, Trigger
from headrace.schedules.schemas import ExecutionItemOut, ExecutionOut, RunWhyOut
from headrace.schedules.store.executions import ExecutionFilter

app = typer.Typer(help="The runs of schedules: look at them, cancel them.", no_args_is_help=True)

_PAGE = 200

Uid = Annotated[str, typer.Argument(metavar="EXECUTION", help="The run's id: exe_….")]
Uids = Annotated[list[str], typer.Argument(metavar="EXECUTION...", help="The runs' ids: exe_….")]


@app.command("list")
def list_(
    schedule: Annotated[str | None, typer.Option(help="Only of this schedule, by id.")] = None,
    status: Annotated[
        list[str] | None,
        one_of(offered=words_of(ExecutionState), help="Only these; say it several times for several."),
    ] = None,
    trigger: Annotated[Trigger | None, typer.Option(help="Only what was fired like this.")] = None,
    task_type: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    since: Annotated[str | None, typer.Option(help="Only what was due from this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only what was due before this time.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")] = 20,
    json: Json = False,
) -> None:
    """List runs, those that were due last first."""
    wanted = ExecutionFilter(
        None,
        schedule,
        stored_words(ExecutionState, status),
        trigger,
        task_type,
        None if since is None else instant_or_utc(since, "--since"),
        None if until is None else instant_or_utc(until, "--until"),
    )
    found = [
        ExecutionItemOut.of(run).model_dump()
        for run in as_operator("executions list", lambda session: _list(session, wanted, limit))
    ]
    if json:
        print_json(found)
        return
    print_table(
        ("id", "schedule", "status", "due", "attempt", "took", "trigger", "error"),
        [
            (
                run["id"],
                run["schedule_name"],
                f"{run['status']} {run['progress']} %" if run["status"] == "RUNNING" else run["status"],
                _time(run["scheduled_at"]),
                run["retry_count"] + 1,
                f"{run['duration_ms']:,} ms" if run["finished_at"] else None,
                run["trigger_type"],
                (run["error_message"] or "").partition("\n")[0][:60],
            )
            for run in found
        ],
    )


@app.command()
def show(uid: Uid, json: Json = False) -> None:
    """Everything about one run."""

    async def act(session: OperatorSession) -> Execution:
        async with session.db.transaction() as tx:
            return await executions.get_execution(tx, session.caller, uid)

    run = ExecutionOut.of(as_operator("executions show", act))
    if json:
        print_json(run.model_dump(mode="json"))
        return
    fields = run.model_dump()
    stack = fields.pop("error_stack")
    print_table(
        ("field", "value"),
        [(name, _time(value) if isinstance(value, datetime) else value) for name, value in fields.items() if value],
    )
    if stack:
        out.print(stack, markup=False, soft_wrap=True)


@app.command()
def cancel(uids: Uids, json: Json = False) -> None:
    """Cancel runs: one that waits is over at once, one that runs is told to stop."""

    async def act(session: OperatorSession) -> list[Execution]:
        canceled = []
        async with session.db.transaction() as tx:  # all of them or none
            for uid in uids:
                try:
                    canceled.append(await executions.cancel_execution(tx, session.tasks, session.caller, uid))
                except (NotFound, Conflict) as exc:
                    others = " The others are as they were." if len(uids) > 1 else ""
                    raise type(exc)(f"{uid}: {exc.message}{others}") from exc
        return canceled

    canceled = as_operator("executions cancel", act)
    if json:
        print_json([ExecutionOut.of(run).model_dump(mode="json") for run in canceled])
        return
    for run in canceled:
        said = f"is {shown(run.state)}" if run.state.is_over else "is told to stop"
        out.print(f"{run.execution_uid} {said}", markup=False)


@app.command()
def why(uid: Uid, json: Json = False) -> None:
    """Why a run is not running: the first reason is the one to look at first."""

    async def act(session: OperatorSession) -> RunExplanation:
        async with session.db.transaction() as tx:
            return await executions.explain_execution(tx, session.caller, uid)

    explained = as_operator("executions why", act)
    if json:
        print_json(RunWhyOut.of(explained).model_dump(mode="json"))
        return
    out.print(f"{uid} is {shown(explained.execution.state)}", markup=False)
    for reason in explained.reasons:
        out.print(f"  {reason.text}", markup=False, soft_wrap=True)


async def _list(session: OperatorSession, wanted: ExecutionFilter, limit: int) -> Sequence[Execution]:
    found: list[Execution] = []
    mark = None
    async with session.db.transaction() as tx:
        while len(found) < limit:
            asked = min(_PAGE, limit - len(found))
            page = await executions.list_executions(tx, session.caller, wanted, older_than=mark, limit=asked)
            found += page.executions
            if page.resume is None and len(page.executions) < asked:
                break
            mark = page.resume or (found[-1].scheduled_at, found[-1].execution_uid)
    return found


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
