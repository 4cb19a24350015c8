"""``headrace admin``: what an operator with access to the database does to accounts."""

from typing import Annotated, Any

import typer

from headrace.cli import deletions
from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.output import Json, out, print_json
from headrace.cli.passwords import read_password
from headrace.cli.requests import Api

app = typer.Typer(help="Accounts, for an operator with access to the database.", no_args_is_help=True)

Username = Annotated[str, typer.Argument(help="The name to log in with.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input; without it one is made up.")
]


app.command()(deletions.delete)
app.command()(deletions.keep)
app.command("deletions")(deletions.deletions)


@app.command()
def create(
    username: Username = "admin",
    email: Annotated[str | None, typer.Option(help="An address, for people to be reached at.")] = None,
    password_stdin: PasswordStdin = False,
    json: Json = False,
) -> None:
    """Make an administrator. A password that is made up is shown once."""
    password = read_password() if password_stdin else None
    body = drop_none(username=username, email=email, password=password, role="ADMIN")
    made = perform("admin", lambda api: api.ask("POST", path("admin", "users"), body=body))
    _print_made(made["user"]["username"], made["password"], json=json)


@app.command("reset-password")
def reset_password(username: Username, password_stdin: PasswordStdin = False, json: Json = False) -> None:
    """Give a user another password and end all their sessions."""
    body = drop_none(password=read_password() if password_stdin else None)

    async def act(api: Api) -> Any:
        user_id = str(await user_id_of(api, username))
        return await api.ask("POST", path("admin", "users", user_id, "password"), body=body)

    _print_made(username, perform("admin", act)["password"], json=json)


@app.command("disable-second-factor")
def disable_second_factor(username: Username, json: Json = False) -> None:
    """Turn a user's second factor off, when they lost their phone and their recovery codes."""

    async def act(api: Api) -> Any:
        user_id = str(await user_id_of(api, username))
        return await api.ask("DELETE", path("admin", "users", user_id, "second-factor"))

    user = perform("admin", act)
    if json:
        print_json(user)
    else:
        out.print(f"{username} logs in with the password alone.")


def _print_made(username: str, password: str | None, *, json: bool) -> None:
    if json:
        print_json({"username": username, "password": password})
    elif password is None:
        out.print(f"{username} can log in.")
    else:
        out.print(f"{username} can log in with the password {password} (shown only now).", soft_wrap=True)
