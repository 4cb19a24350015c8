"""``headrace configs``: settings that change while Headrace runs."""

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
import typer

from headrace.assembly.config_registry import config_keys
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.people import user_id_of
from headrace.configs import service
from headrace.configs.model import Config, ConfigScope, ConfigTarget
from headrace.configs.schemas import ConfigKeyOut, ConfigOut
from headrace.errors import Invalid

app = typer.Typer(help="Settings that change while Headrace runs.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The key; `headrace configs keys` lists them.")]
Tenant = Annotated[str | None, typer.Option(help="For this tenant, by id.")]
User = Annotated[str | None, typer.Option(help="For this user, by username or id.")]


@app.command()
def keys(json: Json = False) -> None:
    """What can be set, and what holds where nothing is set."""
    shown = [ConfigKeyOut.of(key) for key in config_keys()]
    if json:
        print_json([key.model_dump(mode="json") for key in shown])
        return
    print_table(
        ("key", "default", "meaning"), [(key.key, orjson.dumps(key.default).decode(), key.description) for key in shown]
    )


@app.command("list")
def list_(
    key: Annotated[str | None, typer.Option(help="Only of this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")] = 100,
    json: Json = False,
) -> None:
    """Values that are set, newest first."""

    async def act(session: OperatorSession) -> Sequence[Config]:
        async with session.db.transaction(readonly=True) as tx:
            return await service.list_configs(tx, key=key, limit=limit)

    _print_all(as_operator("configs list", act), json=json)


@app.command()
def show(key: Key, tenant: Tenant = None, user: User = None, json: Json = False) -> None:
    """The value that is set for exactly this scope."""

    async def act(session: OperatorSession) -> Config:
        target = await _place(session, tenant, user)
        async with session.db.transaction(readonly=True) as tx:
            return await service.get_config(tx, key, target)

    _print(as_operator("configs show", act), json=json)


@app.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(help="As JSON: '{\"beta\": true}'.")],
    tenant: Tenant = None,
    user: User = None,
    json: Json = False,
) -> None:
    """Set a value for everyone, a tenant or a user; the narrower wins."""
    given = _parse(value)

    async def act(session: OperatorSession) -> Config:
        target = await _place(session, tenant, user)
        async with session.db.transaction() as tx:
            return await service.set_config(tx, config_keys(), session.caller.who, key, target, given)

    _print(as_operator("configs set", act), json=json)


@app.command()
def unset(key: Key, tenant: Tenant = None, user: User = None) -> None:
    """Remove a value: the wider scope's holds then, or the default."""

    async def act(session: OperatorSession) -> None:
        target = await _place(session, tenant, user)
        async with session.db.transaction() as tx:
            await service.unset_config(tx, session.caller.who, key, target)

    as_operator("configs unset", act)
    out.print(f"{key} is unset")


@app.command()
def enable(key: Key, tenant: Tenant = None, user: User = None, json: Json = False) -> None:
    """Let a value hold again."""
    _print(_switch("configs enable", key, tenant, user, is_active=True), json=json)


@app.command()
def disable(key: Key, tenant: Tenant = None, user: User = None, json: Json = False) -> None:
    """Keep a value without letting it hold."""
    _print(_switch("configs disable", key, tenant, user, is_active=False), json=json)


def _switch(command: str, key: str, tenant: str | None, user: str | None, *, is_active: bool) -> Config:
    async def act(session: OperatorSession) -> Config:
        target = await _place(session, tenant, user)
        async with session.db.transaction() as tx:
            return await service.set_active(tx, session.caller.who, key, target, is_active=is_active)

    return as_operator(command, act)


async def _place(session: OperatorSession, tenant: str | None, user: str | None) -> ConfigTarget:
    if tenant is not None and user is not None:
        raise Invalid("A value is for a tenant or for a user, not for both: leave one of --tenant and --user out.")
    if user is not None:
        return ConfigTarget(ConfigScope.USER, await user_id_of(session, user))
    return ConfigTarget() if tenant is None else ConfigTarget(ConfigScope.TENANT, tenant)


def _parse(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Invalid("The value is not JSON: text needs quotes of its own, '\"like this\"'.") from None


def _print(config: Config, *, json: bool) -> None:
    if json:
        print_json(ConfigOut.of(config).model_dump(mode="json"))
    else:
        _print_all([config], json=False)


def _print_all(found: Sequence[Config], *, json: bool) -> None:
    if json:
        print_json([ConfigOut.of(config).model_dump(mode="json") for config in found])
        return
    print_table(
        ("key", "for", "version", "value", ""),
        [
            (
                config.config_key,
                "everyone" if config.config_scope is ConfigScope.GLOBAL else config.scope_id,
                config.version,
                orjson.dumps(config.config_value).decode(),
                "" if config.is_active else "not active",
            )
            for config in found
        ],
    )
