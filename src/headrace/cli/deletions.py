"""``headrace admin delete``, ``keep`` and ``deletions``: the end of an account, from the machine."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from headrace.accounts.model import DeletionStatus
from headrace.cli import place
from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, Yes, out, print_json, print_table
from headrace.cli.requests import Api
from headrace.cli.showing import when
from headrace.cli.words import one_of

Name = Annotated[str, typer.Argument(metavar="USER", help="The username, or the id: u_….")]


def delete(
    user: Name,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="Without the grace period, and on the database done here and now.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Delete an account: its logins end now, its data goes when the grace period is over."""
    if not yes:
        typer.confirm(f"Delete the account {user}?", abort=True, err=True)
    deletion = perform("admin delete", lambda api: _ask(api, user, "POST", {"at_once": at_once}))
    if at_once and place.server() is None:
        as_operator("admin delete", _delete_now)
        deletion = perform("admin delete", lambda api: _ask(api, deletion["user_id"], "GET"))
    _print(deletion, json=json)


def keep(user: Name, json: Json = False) -> None:
    """Undo the deletion of an account that has not begun."""

    async def act(api: Api) -> Any:
        kept = await _ask(api, user, "DELETE")
        return await _ask(api, kept["id"], "GET")

    _print(perform("admin keep", act), json=json)


def deletions(
    status: Annotated[str | None, one_of(offered=[*DeletionStatus], help="Only these.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of deletions.")] = 50,
    json: Json = False,
) -> None:
    """List deletions of accounts, newest first."""
    filters = drop_none(status=status)
    rows = perform("admin deletions", lambda api: api.list(path("admin", "deletions"), filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("user", "status", "due", "steps done", ""),
        [
            (each["user_id"], each["status"], when(each["due_at"]), ", ".join(each["steps_done"]), each["obstacle"])
            for each in rows
        ],
    )


async def _ask(api: Api, name: str, method: str, body: Any = None) -> Any:
    user_id = str(await user_id_of(api, name))
    return await api.ask(method, path("admin", "users", user_id, "deletion"), body=body)


async def _delete_now(session: OperatorSession) -> None:
    from headrace.accounts.deletion.machine import Deletions
    from headrace.assembly.accounts import accounts_config
    from headrace.assembly.erasers import erasers
    from headrace.assembly.files import files_of

    files = partial(files_of, session.settings)
    machine = Deletions(session.db, erasers(session.tasks, files), accounts_config(session.settings).deletion)
    while await machine.run_once():  # also of other accounts that are due
        pass


def _print(deletion: Mapping[str, Any], *, json: bool) -> None:
    if json:
        print_json(deletion)
        return
    outcomes = {
        "WAITING": f"is deleted from {when(deletion['due_at'])} on; until then, `headrace admin keep` undoes it",
        "RUNNING": f"is being deleted: {deletion['obstacle'] or 'any running Headrace continues it'}",
        "COMPLETED": "is deleted",
        "CANCELED": "is kept",
    }
    out.print(f"{deletion['user_id']} {outcomes[deletion['status']]}", soft_wrap=True)
