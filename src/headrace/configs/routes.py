"""Routes of configs: administrators change them, clients read them."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from headrace.access import PreconditionFailed
from headrace.configs import service, views
from headrace.configs.cache import Configs
from headrace.configs.errors import ConfigNotFound, InvalidConfigScope, InvalidConfigValue, UnknownConfigKey
from headrace.configs.model import Config, ConfigScope, ConfigTarget
from headrace.configs.registry import Registry
from headrace.configs.schemas import CapabilitiesOut, ConfigIn, ConfigKeyOut, ConfigOut, Offer
from headrace.edge.authorization import Admin, MaybeCaller
from headrace.edge.bodies import body_at_most
from headrace.edge.errors import InvalidCursor, InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.text import Text
from headrace.ids import InvalidId

_MAX_BODY_BYTES = 64 * 1024

admin = Router(prefix="/admin/configs", tags=["Configs"], dependencies=[Depends(body_at_most(_MAX_BODY_BYTES))])
clients = Router(tags=["Configs"])

Key = Annotated[str, Path(min_length=1, max_length=128, examples=["features"])]
ScopeId = Annotated[Text, Query(max_length=64, description="The id of the tenant or user; empty for GLOBAL.")]
_WHERE = (ConfigNotFound, InvalidConfigScope, InvalidId)
_CHANGE = (PreconditionFailed, InvalidIfMatch)


def create_router(registry: Registry, configs: Configs, offer: Offer) -> Router:
    """All routes of this package."""

    async def give(request: Request) -> None:
        request.state.config_keys = registry
        request.state.configs = configs
        request.state.offer = offer

    router = Router(prefix="/v1", dependencies=[Depends(give)])
    router.include(clients, admin, views.router)
    return router


async def _registry(request: Request) -> Registry:
    registry = request.state.config_keys
    assert isinstance(registry, Registry)
    return registry


Keys = Annotated[Registry, Depends(_registry)]


@clients.get("/capabilities", response_model=CapabilitiesOut, summary="What this installation offers")
async def get_capabilities(caller: MaybeCaller, keys: Keys, request: Request) -> CapabilitiesOut:
    """Features and limits for clients; no login needed. Users who are logged in get their own values."""
    configs, offer = request.state.configs, request.state.offer
    assert isinstance(configs, Configs)
    assert isinstance(offer, Offer)
    user_id = caller.user_id if caller else None
    public = {key.name: key.as_json(await configs.get(key, user_id=user_id)) for key in keys if key.public}
    return CapabilitiesOut(**offer.model_dump(), configs=public)


@admin.get("/keys", response_model=Page[ConfigKeyOut], summary="List config keys")
async def list_config_keys(caller: Admin, keys: Keys) -> Page[ConfigKeyOut]:  # noqa: ARG001 - required for authorization
    """All keys, with the schema and default of each value."""
    return Page(items=[ConfigKeyOut.of(key) for key in keys])


@admin.get("", response_model=Page[ConfigOut], summary="List configs", responses=problems(InvalidCursor))
async def list_configs(
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
    paging: Paging,
    key: Annotated[Text | None, Query(max_length=128)] = None,
    scope: ConfigScope | None = None,
    scope_id: Annotated[Text | None, Query(max_length=64)] = None,
    is_active: bool | None = None,
) -> Page[ConfigOut]:
    """All set values, newest first."""
    listing = paging.of("configs", key=key, scope=scope, scope_id=scope_id, is_active=is_active)
    async with db.transaction(readonly=True) as tx:
        rows = await service.list_configs(
            tx,
            key=key,
            scope=scope,
            scope_id=scope_id,
            is_active=is_active,
            older_than=listing.after,
            limit=listing.fetch,
        )
    return listing.page(rows, mark=lambda config: (config.created_at, str(config.id)), item=ConfigOut.of)


@admin.get("/{key}", response_model=ConfigOut, summary="Read a config", responses=problems(*_WHERE))
async def get_config(
    key: Key,
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
    response: Response,
    scope: ConfigScope = ConfigScope.GLOBAL,
    scope_id: ScopeId = "",
) -> ConfigOut:
    """The value of exactly this scope."""
    async with db.transaction(readonly=True) as tx:
        return _shown(response, await service.get_config(tx, key, ConfigTarget(scope, scope_id)))


@admin.put(
    "/{key}",
    response_model=ConfigOut,
    summary="Set a config",
    responses=problems(UnknownConfigKey, InvalidConfigValue, InvalidConfigScope, InvalidId, *_CHANGE),
)
async def set_config(
    key: Key,
    body: ConfigIn,
    caller: Admin,
    db: Db,
    keys: Keys,
    expected: ExpectedVersion,
    response: Response,
    scope: ConfigScope = ConfigScope.GLOBAL,
    scope_id: ScopeId = "",
) -> ConfigOut:
    """Set a value for all users, a tenant or a user; the narrower wins. `If-Match: "0"` sets it if there is none."""
    async with db.transaction() as tx:
        config = await service.set_config(
            tx,
            keys,
            caller.who,
            key,
            ConfigTarget(scope, scope_id),
            body.value,
            is_active=body.is_active,
            expected=expected,
        )
    return _shown(response, config)


@admin.delete("/{key}", status_code=204, summary="Unset a config", responses=problems(*_WHERE, *_CHANGE))
async def unset_config(
    key: Key,
    caller: Admin,
    db: Db,
    expected: ExpectedVersion,
    scope: ConfigScope = ConfigScope.GLOBAL,
    scope_id: ScopeId = "",
) -> None:
    """Remove a value: the wider scope's applies then, or the default."""
    async with db.transaction() as tx:
        await service.unset_config(tx, caller.who, key, ConfigTarget(scope, scope_id), expected=expected)


def _shown(response: Response, config: Config) -> ConfigOut:
    response.headers["ETag"] = etag(config.version)
    return ConfigOut.of(config)
