"""``headrace users``: who there is; make, suspend and reinstate users, set their role."""

from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.passwords import read_password
from headrace.cli.requests import Api
from headrace.cli.showing import print_fields, when
from headrace.cli.words import one_of

app = typer.Typer(help="Users: list, make, suspend and reinstate them, set their role.", no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="The username, or the id: u_….")]
_ROLES = ("USER", "ADMIN")


@app.command("list")
def list_(
    status: Annotated[str | None, one_of(offered=("ACTIVE", "SUSPENDED", "DELETED"), help="Only these.")] = None,
    role: Annotated[str | None, one_of(offered=_ROLES, help="Only with this role.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of users.")] = 100,
    json: Json = False,
) -> None:
    """List users, newest first."""
    filters = drop_none(status=status, role=role)
    rows = perform("users list", lambda api: api.list(path("admin", "users"), filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "username", "role", "status", "created"),
        [(user["id"], user["username"], user["role"], user["status"], when(user["created_at"])) for user in rows],
    )


@app.command()
def show(user: User, json: Json = False) -> None:
    """Everything about one user."""

    async def act(api: Api) -> Any:
        return await api.ask("GET", path("admin", "users", str(await user_id_of(api, user))))

    result = perform("users show", act)
    if json:
        print_json(result)
    else:
        print_fields(result)


@app.command()
def create(
    username: Annotated[str, typer.Argument(help="The name to log in with.")],
    email: Annotated[str | None, typer.Option(help="The user's email address.")] = None,
    role: Annotated[str, one_of(offered=_ROLES, help="Their role.")] = "USER",
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input; without it one is made up.")
    ] = False,
    json: Json = False,
) -> None:
    """Make a user, also where registration is closed. A password that is made up is shown once."""
    body = drop_none(username=username, email=email, role=role, password=read_password() if password_stdin else None)
    made = perform("users create", lambda api: api.ask("POST", path("admin", "users"), body=body))
    if json:
        print_json(made)
    elif made["password"] is None:
        out.print(f"{made['user']['username']} can log in.")
    else:
        message = f"{made['user']['username']} can log in with the password {made['password']} (shown only now)."
        out.print(message, soft_wrap=True)


@app.command()
def suspend(user: User, json: Json = False) -> None:
    """Shut a user out: their sessions end and their API keys stop working at once."""
    _change("suspend", user, json=json)


@app.command()
def reinstate(user: User, json: Json = False) -> None:
    """Let a suspended user in again."""
    _change("reinstate", user, json=json)


@app.command()
def role(
    user: User,
    role: Annotated[str, typer.Argument(metavar="USER|ADMIN", help="Their new role.")],
    json: Json = False,
) -> None:
    """Make a user an administrator, or no longer one."""
    _change("role", user, body={"role": role.upper()}, json=json)


def _change(verb: str, name: str, *, body: Any = None, json: bool) -> None:
    async def act(api: Api) -> Any:
        user_id = str(await user_id_of(api, name))
        return await api.ask("POST", path("admin", "users", user_id, verb), body=body)

    user = perform(f"users {verb}", act)
    if json:
        print_json(user)
    else:
        out.print(f"{user['username'] or user['id']} is {user['status']}, {user['role']}")
