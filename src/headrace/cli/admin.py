"""``headrace admin``: what an operator with access to the database does to accounts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer

from headrace import migrations
from headrace.access import Role
from headrace.accounts import administration, registration, service
from headrace.accounts.passwords import generate
from headrace.assembly.newcomers import newcomers
from headrace.cli import deletions
from headrace.cli.calls import Api, given, path, perform, user_id_of
from headrace.cli.opening import operator
from headrace.cli.output import LOOKING, Json, out, print_json, progress
from headrace.cli.passwords import read_password
from headrace.cli.place import on_the_machine
from headrace.cli.wiring import Deployment, accounts_config, database_of, load_settings, run, secret_key_for
from headrace.database import Database
from headrace.settings import Settings

app = typer.Typer(help="Accounts, for an operator with access to the database.", no_args_is_help=True)

Username = Annotated[str, typer.Argument(help="The name to log in with.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input; without it one is made up.")
]


app.command()(deletions.delete)
app.command()(deletions.keep)
app.command("deletions")(deletions.deletions)


@app.command()
@on_the_machine
def create(
    username: Username = "admin",
    email: Annotated[str | None, typer.Option(help="An address, for people to be reached at.")] = None,
    password_stdin: PasswordStdin = False,
    json: Json = False,
) -> None:
    """Make an administrator. A password that is made up is shown once."""
    settings = load_settings()
    password = read_password() if password_stdin else None
    with (
        progress(LOOKING) as report,
        database_of(settings, role="admin", report=report) as deployment,
    ):
        name, made = run(_create(settings, deployment, username, email, password))
    _print_made(name, None if password else made, json=json)


@app.command("reset-password")
def reset_password(username: Username, password_stdin: PasswordStdin = False, json: Json = False) -> None:
    """Give a user another password and end all their sessions."""
    body = given(password=read_password() if password_stdin else None)

    async def act(api: Api) -> Any:
        user_id = str(await user_id_of(api, username))
        return await api.ask("POST", path("admin", "users", user_id, "password"), body=body)

    _print_made(username, perform("admin", act)["password"], json=json)


async def _create(
    settings: Settings, deployment: Deployment, username: str, email: str | None, password: str | None
) -> tuple[str, str]:
    async with _open(settings, deployment) as (db, known):
        chosen = password or generate(known.config.passwords)
        new = await registration.prepare(
            known, username=username, password=chosen, email=email, role=Role.ADMIN, by_operator=True
        )
        async with db.transaction() as tx:
            await administration.create_admin(tx, operator("admin"), new, welcomes=known.welcomes)
        return new.username, chosen


@asynccontextmanager
async def _open(settings: Settings, deployment: Deployment) -> AsyncIterator[tuple[Database, service.Accounts]]:
    await migrations.verify_current(deployment.app)
    async with await Database.connect(deployment.app) as db:
        secret = await secret_key_for(settings, db, make=deployment.embedded)
        async with service.open_accounts(accounts_config(settings), secret=secret, welcomes=newcomers()) as known:
            yield db, known


def _print_made(username: str, password: str | None, *, json: bool) -> None:
    if json:
        print_json({"username": username, "password": password})
    elif password is None:
        out.print(f"{username} can log in.")
    else:
        out.print(f"{username} can log in with the password {password} (shown only now).", soft_wrap=True)
