"""Settings that change while the product runs. W-21."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from headrace import ids
from headrace.access import PreconditionFailed
from headrace.audit import Who
from headrace.configs import cache, erasure, keys, service, store
from headrace.configs.cache import Configs
from headrace.configs.errors import ConfigNotFound, InvalidConfigScope, InvalidConfigValue, UnknownConfigKey
from headrace.configs.model import Config, ConfigScope, ConfigTarget
from headrace.configs.registry import ConfigKey, Registry
from headrace.database import Database, DatabaseConfig, Note, Row, Tx
from headrace.ids import InvalidId


class Sizes(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pages: Annotated[int, Field(gt=0, le=1000)] = 10
    name: str = "small"


SIZES: ConfigKey[Sizes] = ConfigKey("sizes", Sizes, Sizes(), "How large things may be.")
REGISTRY = Registry([*keys.GENERAL, SIZES])
ADA = ids.new("u")
GLOBAL, TENANT, USER = ConfigTarget(), ConfigTarget(ConfigScope.TENANT, "acme"), ConfigTarget(ConfigScope.USER, ADA)


async def put(db: Database, who: Who, target: ConfigTarget, value: object, **options: Any) -> Config:
    async with db.transaction() as tx:
        return await service.set_config(tx, REGISTRY, who, "sizes", target, value, **options)


async def trail(db: Database) -> list[Row]:
    return await db.fetch_alone(
        "SELECT action, resource ->> 'identifier' AS of, diff_object FROM headrace.audit_events "
        "WHERE resource_type = 'systemConfig' ORDER BY seq"
    )


async def test_a_value_is_set_changed_and_removed_and_the_trail_is_its_history(db: Database, who: Who) -> None:
    made = await put(db, who, GLOBAL, {"pages": 20})
    assert (made.version, made.config_value, made.is_active) == (1, {"pages": 20, "name": "small"}, True)
    changed = await put(db, who, GLOBAL, {"pages": 30}, expected=1)
    assert changed.version == 2
    assert await put(db, who, GLOBAL, {"pages": 30}) == changed  # the same again changes nothing
    async with db.transaction() as tx:
        off = await service.set_active(tx, who, "sizes", GLOBAL, is_active=False)
        assert (off.version, off.is_active) == (3, False)
        await service.unset_config(tx, who, "sizes", GLOBAL, expected=3)
        with pytest.raises(ConfigNotFound):
            await service.get_config(tx, "sizes", GLOBAL)
    events = await trail(db)
    assert [(event["action"], event["of"]) for event in events] == [
        ("created", "sizes"),
        ("updated", "sizes"),
        ("disabled", "sizes"),
        ("deleted", "sizes"),
    ]
    assert '"pages":20' in events[1]["diff_object"]["old_object"]
    assert '"pages":30' in events[1]["diff_object"]["new_object"]


async def test_a_stale_change_is_refused(db: Database, who: Who) -> None:  # W-09
    await put(db, who, GLOBAL, {"pages": 20}, expected=0)
    for expected in (0, 2):
        with pytest.raises(PreconditionFailed):
            await put(db, who, GLOBAL, {"pages": 30}, expected=expected)
    results = await asyncio.gather(
        *(put(db, who, GLOBAL, {"pages": pages}, expected=1) for pages in (40, 50)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["Config", "PreconditionFailed"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"pages": "many"}, "value.pages"),
        ({"pages": 0}, "value.pages"),
        ({"leaves": 3}, "value.leaves"),
        ([1], "value"),
        (None, "value"),
    ],
)
async def test_a_wrong_value_is_refused_with_the_fields_name(db: Database, who: Who, value: object, field: str) -> None:
    with pytest.raises(InvalidConfigValue) as refused:
        await put(db, who, GLOBAL, value)
    assert field in refused.value.message
    errors: Any = refused.value.details["errors"]
    assert errors[0]["field"] == field
    assert "many" not in str(refused.value.details)  # it may be a secret in the wrong place
    assert await trail(db) == []


async def test_an_unknown_key_is_refused_with_the_one_that_was_meant(db: Database, who: Who) -> None:
    async with db.transaction() as tx:
        with pytest.raises(UnknownConfigKey, match="did you mean sizes"):
            await service.set_config(tx, REGISTRY, who, "size", GLOBAL, {})


def test_a_scope_says_whose_value_it_is() -> None:
    for scope, scope_id in ((ConfigScope.GLOBAL, "acme"), (ConfigScope.TENANT, ""), (ConfigScope.USER, "")):
        with pytest.raises(InvalidConfigScope):
            ConfigTarget(scope, scope_id)
    with pytest.raises(InvalidConfigScope):
        ConfigTarget(ConfigScope.TENANT, "x" * 65)
    with pytest.raises(InvalidId):
        ConfigTarget(ConfigScope.USER, "ada")
    assert service.identifier("sizes", USER) == f"sizes@USER:{ADA}"


def test_two_keys_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two config keys"):
        Registry([SIZES, SIZES])


# -- what holds


@pytest.fixture
async def held(db: Database) -> AsyncIterator[Configs]:
    async with cache.open_configs(db) as opened:
        yield opened


async def pages(held: Configs, *, user: str | None = ADA, tenant: str | None = "acme") -> int:
    return (await held.get(SIZES, user_id=user, tenant_id=tenant)).pages


async def eventually(held: Configs, wanted: int, **whose: str | None) -> None:
    async with asyncio.timeout(60):
        while await pages(held, **whose) != wanted:
            await asyncio.sleep(0.01)


async def test_the_narrower_scope_wins_and_what_is_not_active_does_not_count(
    db: Database, held: Configs, who: Who
) -> None:
    assert await pages(held) == 10  # the default
    for target, value in ((GLOBAL, 1), (TENANT, 2), (USER, 3)):
        await put(db, who, target, {"pages": value})
        await eventually(held, value)
    assert await pages(held, user=ids.new("u")) == 2
    assert await pages(held, user=None, tenant=None) == 1
    assert await pages(held, user=None, tenant="other") == 1
    async with db.transaction() as tx:
        await service.set_active(tx, who, "sizes", USER, is_active=False)
    await eventually(held, 2)
    async with db.transaction() as tx:
        await service.unset_config(tx, who, "sizes", TENANT)
    await eventually(held, 1)


async def test_what_is_at_hand_is_not_read_again_until_it_changes(db: Database, who: Who) -> None:
    held = Configs(db)  # nobody listens
    assert await pages(held) == 10
    await put(db, who, GLOBAL, {"pages": 20})
    assert await pages(held) == 10
    held.forget(Note("headrace_configs", "features"))
    assert await pages(held) == 10
    held.forget(Note("headrace_configs", "sizes"))
    assert await pages(held) == 20
    await put(db, who, GLOBAL, {"pages": 30})
    held.forget(Note("", "", resumed=True))  # some notes may have been missed
    assert await pages(held) == 30


async def test_a_change_by_hand_is_told_too(db: Database, held: Configs, who: Who) -> None:
    await put(db, who, GLOBAL, {"pages": 20})
    await eventually(held, 20)
    await db.fetch_alone("UPDATE headrace.system_configs SET config_value = '{\"pages\": 21}'")
    await eventually(held, 21)
    await db.fetch_alone("DELETE FROM headrace.system_configs")
    await eventually(held, 10)


async def test_without_notifications_changes_are_found_by_looking(database_url: str, db: Database, who: Who) -> None:
    pooled = replace(DatabaseConfig(database_url), pooled=True)
    async with await Database.connect(pooled) as polling, cache.open_configs(polling) as held:
        assert await pages(held) == 10
        await put(db, who, GLOBAL, {"pages": 20})
        await eventually(held, 20)


async def test_what_was_read_while_it_changed_is_not_kept(db: Database, who: Who, monkeypatch: Any) -> None:
    held = Configs(db)
    await put(db, who, GLOBAL, {"pages": 20})
    real = store.resolve

    async def overtaken(tx: Tx, key: str, **whose: Any) -> Any:
        found = await real(tx, key, **whose)
        await put(db, who, GLOBAL, {"pages": 30})
        held.forget(Note("headrace_configs", "sizes"))  # before the reader comes to keep what it has read
        return found

    with monkeypatch.context() as patch:
        patch.setattr(store, "resolve", overtaken)
        assert await pages(held) == 20
    assert await pages(held) == 30


async def test_a_value_that_no_longer_fits_is_as_good_as_none(db: Database) -> None:
    await db.fetch_alone("INSERT INTO headrace.system_configs (config_key, config_value) VALUES ('sizes', '7')")
    assert await pages(Configs(db)) == 10


async def test_when_an_account_goes_its_values_go(db: Database, who: Who) -> None:  # W-16
    for target in (GLOBAL, USER):
        await put(db, who, target, {"pages": 20})
    assert [gone async for gone in erasure.ForgetConfigs().erase(db, ADA)] == [1]
    async with db.transaction() as tx:
        assert [each.config_scope for each in await service.list_configs(tx, limit=10)] == ["GLOBAL"]


async def test_look_ups_use_their_index(owner_tx: Tx) -> None:  # W-20
    await owner_tx.execute(
        """
        INSERT INTO headrace.system_configs (config_key, config_scope, scope_id, config_value, created_at)
          SELECT 'key-' || n % 50, 'USER', 'u_' || n, '1', now() - n * interval '1 s'
          FROM generate_series(1, 20000) AS n;
        ANALYZE headrace.system_configs;
        SET LOCAL plan_cache_mode = force_generic_plan;
        """
    )
    page = "ORDER BY created_at DESC, id DESC LIMIT 21"
    queries: list[tuple[str, tuple[object, ...]]] = [
        (store.RESOLVE, ("key-7", "u_7", "acme")),
        (store.FIND, ("key-7", "USER", "u_7")),
        (store.DELETE_OF_USER, ("u_7",)),
        (f"{store.SELECT_CONFIGS} {page}", ()),
        (f"{store.SELECT_CONFIGS} WHERE is_active = $1 AND config_key = $2 {page}", (True, "key-7")),
    ]
    for sql, args in queries:
        plan = "\n".join(row[0] for row in await owner_tx.fetch(f"EXPLAIN {sql}", *args))
        assert "Index" in plan, plan
        assert "Seq Scan" not in plan, plan
