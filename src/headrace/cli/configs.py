"""``headrace configs``: settings that change while Headrace runs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
import typer

from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.output import Json, print_done, print_json, print_table
from headrace.cli.requests import Api
from headrace.errors import Invalid

app = typer.Typer(help="Settings that change while Headrace runs.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The key; `headrace configs keys` lists them.")]
Tenant = Annotated[str | None, typer.Option(help="For this tenant, by id.")]
User = Annotated[str | None, typer.Option(help="For this user, by username or id.")]


@app.command()
def keys(json: Json = False) -> None:
    """List the config keys with their defaults."""
    where = path("admin", "configs", "keys")
    rows = perform("configs keys", lambda api: api.list(where, limit=None), needs_database=False)
    if json:
        print_json(rows)
        return
    print_table(
        ("key", "default", "meaning"),
        [(key["key"], orjson.dumps(key["default"]).decode(), key["description"]) for key in rows],
    )


@app.command("list")
def list_(
    key: Annotated[str | None, typer.Option(help="Only of this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of values.")] = 100,
    json: Json = False,
) -> None:
    """Values that are set, newest first."""
    filters = drop_none(key=key)
    _print_all(perform("configs list", lambda api: api.list(path("admin", "configs"), filters, limit=limit)), json=json)


@app.command()
def show(key: Key, tenant: Tenant = None, user: User = None, json: Json = False) -> None:
    """The value that is set for exactly this scope."""

    async def act(api: Api) -> Any:
        return await api.ask("GET", path("admin", "configs", key), params=await _scope(api, tenant, user))

    _print(perform("configs show", act), json=json)


@app.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(help="As JSON: '{\"beta\": true}'.")],
    tenant: Tenant = None,
    user: User = None,
    json: Json = False,
) -> None:
    """Set a value for everyone, a tenant or a user; the narrower wins."""
    body = {"value": _parse(value)}

    async def act(api: Api) -> Any:
        scope = await _scope(api, tenant, user)
        return await api.ask("PUT", path("admin", "configs", key), params=scope, body=body)

    _print(perform("configs set", act), json=json)


@app.command()
def unset(key: Key, tenant: Tenant = None, user: User = None, json: Json = False) -> None:
    """Remove a value: the wider scope's holds then, or the default."""

    async def act(api: Api) -> None:
        await api.ask("DELETE", path("admin", "configs", key), params=await _scope(api, tenant, user))

    perform("configs unset", act)
    print_done({"key": key, "deleted": True}, f"{key} is unset", json=json)


@app.command()
def enable(key: Key, tenant: Tenant = None, user: User = None, json: Json = False) -> None:
    """Let a value hold again."""
    _print(_switch("configs enable", key, tenant, user, is_active=True), json=json)


@app.command()
def disable(key: Key, tenant: Tenant = None, user: User = None, json: Json = False) -> None:
    """Keep a value without letting it hold."""
    _print(_switch("configs disable", key, tenant, user, is_active=False), json=json)


def _switch(command: str, key: str, tenant: str | None, user: str | None, *, is_active: bool) -> Any:
    where = path("admin", "configs", key)

    async def act(api: Api) -> Any:
        scope = await _scope(api, tenant, user)
        result = await api.ask("GET", where, params=scope)
        body = {"value": result["value"], "is_active": is_active}
        return await api.ask("PUT", where, params=scope, body=body, version=result["version"])

    return perform(command, act)


async def _scope(api: Api, tenant: str | None, user: str | None) -> Mapping[str, str]:
    if tenant is not None and user is not None:
        raise Invalid("A value is for a tenant or for a user, not for both: leave one of --tenant and --user out.")
    if user is not None:
        return {"scope": "USER", "scope_id": str(await user_id_of(api, user))}
    return {} if tenant is None else {"scope": "TENANT", "scope_id": tenant}


def _parse(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Invalid("The value is not JSON: text needs quotes of its own, '\"like this\"'.") from None


def _print(config: Mapping[str, Any], *, json: bool) -> None:
    if json:
        print_json(config)
    else:
        _print_all([config], json=False)


def _print_all(rows: Sequence[Mapping[str, Any]], *, json: bool) -> None:
    if json:
        print_json(rows)
        return
    print_table(
        ("key", "for", "version", "value", ""),
        [
            (
                config["key"],
                "everyone" if config["scope"] == "GLOBAL" else config["scope_id"],
                config["version"],
                orjson.dumps(config["value"]).decode(),
                "" if config["is_active"] else "not active",
            )
            for config in rows
        ],
    )
