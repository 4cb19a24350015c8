"""``headrace keys``: API keys, for programs."""

from typing import Annotated, Any

import typer

from headrace.cli import place
from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.output import Json, out, print_json, print_table, say
from headrace.cli.passwords import read_password
from headrace.cli.requests import ActingFor, Api
from headrace.cli.showing import when
from headrace.cli.times import instant
from headrace.errors import Invalid

app = typer.Typer(help="API keys, for programs: list, make and revoke them.", no_args_is_help=True)

User = Annotated[
    str | None,
    typer.Option(help="Whose, by username or id; needed on the database. Over an API they are your own."),
]


@app.command("list")
def list_(
    user: User = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of keys.")] = 100,
    json: Json = False,
) -> None:
    """List the keys that work, newest first; without the secrets, which are not stored."""

    async def act(api: Api) -> Any:
        return await api.list(path("api-keys"), limit=limit, acting_for=await _whose(api, user))

    rows = perform("keys list", act)
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "name", "ends in", "scopes", "created", "expires", "last used"),
        [
            (
                key["id"],
                key["name"],
                key["hint"],
                ", ".join(key["scopes"]),
                when(key["created_at"]),
                when(key["expires_at"]) or "never",
                when(key["last_used_at"]) or "never",
            )
            for key in rows
        ],
    )


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Its purpose; unique among the user's keys.")],
    scope: Annotated[list[str], typer.Option(help="Its scopes: tasks:read, tasks:write, …. Repeatable.")],
    user: User = None,
    expires: Annotated[str | None, typer.Option(help="Until when: 2027-03-01T08:00:00Z. For ever by default.")] = None,
    login: Annotated[
        str | None,
        typer.Option(help="Over an API: log in with this username; the password is asked for, or read from a pipe."),
    ] = None,
    json: Json = False,
) -> None:
    """Make a key and print it. It is shown only now. Over an API this needs a login: --login names the user."""
    body = drop_none(
        name=name,
        scopes=[each for text in scope for each in text.replace(",", " ").split()],
        expires_at=None if expires is None else instant(expires, "--expires").isoformat(),
    )

    async def act(api: Api) -> Any:
        return await api.ask("POST", path("api-keys"), body=body, acting_for=await _whose(api, user))

    server = place.server()
    if login is not None and server is not None:
        from headrace.cli import remote

        made = remote.perform_as_person(server, login, read_password(f"Password of {login}: "), act)
    elif login is not None:
        raise Invalid("--login is for a server elsewhere: say which with --url. On the database --user is enough.")
    else:
        made = perform("keys create", act)
    if json:
        print_json(made)
        return
    say(f"{made['id']} is made; the key is shown only now:")
    out.print(made["key"])


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id: key_….")],
    user: User = None,
    json: Json = False,
) -> None:
    """End a key: from now on nothing can be done with it."""

    async def act(api: Api) -> None:
        await api.ask("DELETE", path("api-keys", key_id), acting_for=await _whose(api, user))

    perform("keys revoke", act)
    if json:
        print_json({"id": key_id, "revoked": True})
    else:
        out.print(f"{key_id} is revoked")


async def _whose(api: Api, user: str | None) -> ActingFor | None:
    if api.is_remote:
        if user is not None:
            raise Invalid("Over an API keys are your own: leave --user out, or act on the database.")
        return None
    if user is None:
        raise Invalid("Say whose keys with --user: a username, or an id.")
    result = await api.ask("GET", path("admin", "users", str(await user_id_of(api, user))))
    return ActingFor(result["id"], result["role"])
