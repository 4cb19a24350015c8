"""``headrace migrate``: bring the database's schema up, back, or say where it stands."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from headrace import migrations
from headrace.archive import minimums
from headrace.assembly.deployment import database_of
from headrace.assembly.retention_settings import chosen_retention
from headrace.cli.output import LOOKING, Json, Yes, out, print_json, print_table, progress, say
from headrace.cli.session import load_settings, operator, run
from headrace.migrations import checking, script


def migrate(
    to: Annotated[int | None, typer.Option(help="Stop at this migration; 0 with --down removes everything.")] = None,
    down: Annotated[bool, typer.Option("--down", help="Go back: one migration, or to --to.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Only list applied and missing migrations.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only list the missing ones' locks and durations, and whether running processes can continue.",
        ),
    ] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Only print the SQL that would be run.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Bring the schema to what this program needs. Safe at any time, from any number of processes."""
    settings = load_settings()
    with ExitStack() as stack:
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role="migrate", report=report, make=True))
            status_ = run(migrations.status(deployment.owner))
        if status:
            _print_status(status_, json=json)
            return
        if check:
            _print_checks(*run(checking.check(deployment.owner)), json=json)
            return
        if sql:
            steps = _steps(status_, to=to, down=down)
            then = minimums.script(chosen_retention(settings)) if not down and to is None else ""
            out.print(script.for_psql(steps, stale=status_.stale, down=down, then=then), soft_wrap=True)
            return
        if down and not yes:
            typer.confirm(
                "Going back deletes the tables that those migrations made, with their data. Continue?",
                abort=True,
                err=True,
            )
        move = migrations.roll_back if down else migrations.migrate
        with progress("moving the schema") as report:
            done = run(
                move(deployment.owner, to=to, lock_timeout=settings.database_migrate_lock_timeout, report=report)
            )
        kept = [] if down else run(minimums.declare(deployment.owner, chosen_retention(settings), operator("migrate")))
    if json:
        moved = {"direction": "down" if down else "up", "applied": [str(step) for step in done]}
        print_json(moved if down else moved | {"retention": {each.table_name: each.shown for each in kept}})
    else:
        defined = 0 if down else len(list(status_.stale))
        parts = [f"{len(done)} migration{'s' * (len(done) != 1)} {'undone' if down else 'applied'}"] * bool(done)
        parts += [f"{defined} functions, triggers and views defined"] * bool(defined)
        parts += [f"months of {minimum.table_name} stay for at least {minimum.shown}" for minimum in kept]
        say("; ".join(parts) or "nothing to do")


def _steps(status: migrations.Status, *, to: int | None, down: bool) -> list[migrations.Migration]:
    if not down:
        return [step for step in status.pending if to is None or step.number <= to]
    floor = status.current - 1 if to is None else to
    applied = {entry.number for entry in status.applied}
    return [step for step in reversed(migrations.available()) if step.number in applied and step.number > floor]


def _print_status(status: migrations.Status, *, json: bool) -> None:
    changed = {entry.number for entry in status.changed}
    if json:
        print_json(
            {
                "current": status.current,
                "applied": [{"number": e.number, "name": e.name, "applied_at": e.applied_at} for e in status.applied],
                "pending": [{"number": step.number, "name": step.name} for step in status.pending],
                "unknown": [entry.number for entry in status.unknown],
                "changed": sorted(changed),
                "stale": [str(definition) for definition in status.stale],
            }
        )
        return
    rows = [
        (
            f"{entry.number:04}",
            entry.name,
            f"{entry.applied_at:%Y-%m-%d %H:%M:%S} UTC"
            + (" (its file was edited since)" if entry.number in changed else ""),
        )
        for entry in status.applied
    ]
    rows += [(f"{step.number:04}", step.name, "missing") for step in status.pending]
    if status.stale:
        rows.append(("", "functions, triggers, views", f"{len(list(status.stale))} missing or of another version"))
    print_table(("number", "name", "applied"), rows)


def _print_checks(status: migrations.Status, checks: Sequence[checking.Check], *, json: bool) -> None:
    if json:
        print_json(
            {
                "pending": checking.as_json(checks),
                "definitions": [str(each) for each in status.stale],
                "newer": status.is_newer,
            }
        )
        return
    if status.is_newer:
        out.print("The schema is of a newer release, and has all that this program needs.")
        return
    rows = []
    for each in checks:
        processes = "continue" if each.expands else f"end first those older than {each.migration.needs:04}"
        rows.append((str(each.migration), "", "", _duration(each.seconds), processes))
        rows += [("", effect.statement, effect.lock, _duration(effect.seconds), "") for effect in each.effects]
    if status.stale:
        number = len(list(status.stale))
        rows.append((f"{number} functions, triggers, views", "", "SHARE ROW EXCLUSIVE for triggers", "", "continue"))
    if not rows:
        out.print("nothing to do")
        return
    print_table(("migration", "statement", "lock", "about", "running processes"), rows)
    out.print("Durations are estimates from the sizes of the tables; waiting for locks is not in them.")


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "< 1 s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
