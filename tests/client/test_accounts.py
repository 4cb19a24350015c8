"""``client.users``, ``client.api_keys`` and ``client.me`` against the real API."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from headrace.access import Role
from headrace.accounts.service import Accounts
from headrace.client import Client, SyncClient
from headrace.client.errors import ApiError
from headrace.database import Database
from tests.accounts.conftest import PASSWORD, MakeUser, accounts, make_user
from tests.accounts.test_routes import make_app
from tests.client.conftest import served

__all__ = ["accounts", "make_user"]


@pytest.fixture
async def url(db: Database, accounts: Accounts, make_user: MakeUser) -> AsyncIterator[str]:
    await make_user("root", role=Role.ADMIN)
    async with served(make_app(db, accounts)) as address:
        yield address


async def token_of(url: str, username: str, password: str = PASSWORD) -> str:
    async with httpx2.AsyncClient(base_url=url) as client:
        reply = await client.post("/v1/auth/login", json={"username": username, "password": password})
    token: str = reply.json()["token"]
    return token


async def test_an_administrator_sees_to_users(url: str) -> None:
    async with Client(url, await token_of(url, "root")) as client:
        ada = await client.users.create("ada", email="ada@example.org")
        assert ada.password is not None
        assert ada.password not in repr(ada)
        assert (await client.users.set_role(ada.id, "ADMIN", version=ada.version)).role == "ADMIN"
        assert (await client.users.suspend(ada.id)).status == "SUSPENDED"
        with pytest.raises(ApiError) as late:
            await client.users.reinstate(ada.id, version=ada.version)
        assert late.value.code == "precondition_failed"
        assert (await client.users.reinstate(ada.id)).status == "ACTIVE"
        again = await client.users.reset_password(ada.id)
        assert again.password not in (None, ada.password)
        assert (await client.users.get(ada.id)).password is None
        assert [user.username async for user in client.users.list(role="ADMIN")] == ["ada", "root"]
    assert await token_of(url, "ada", again.password or "")


async def test_a_person_makes_a_key_and_a_program_cannot(url: str) -> None:
    async with Client(url, await token_of(url, "root")) as person:
        made = await person.api_keys.create("nightly", ["account:read", "account:write"])
        assert made.key is not None
        assert made.key not in repr(made)
        async with Client(url, made.key) as program:
            me = await program.me()
            assert (me.user.username, me.api_key_id, me.scopes) == ("root", made.id, ["account:read", "account:write"])
            with pytest.raises(ApiError) as refused:
                await program.api_keys.create("another", ["account:read"])
            assert refused.value.code == "session_needed"
        assert [(await person.api_keys.get(each.id)).key async for each in person.api_keys.list()] == [None]
        await person.api_keys.revoke(made.id)
        assert [each async for each in person.api_keys.list()] == []


async def test_without_an_event_loop(url: str) -> None:
    token = await token_of(url, "root")

    def work() -> None:
        with SyncClient(url, token) as client:
            ada = client.users.create("ada", password="a long phrase is best")
            assert ada.password is None
            for changed in (
                client.users.suspend(ada.id), client.users.reinstate(ada.id), client.users.set_role(ada.id, "USER"),
                client.users.reset_password(ada.id), client.users.get(ada.id), *client.users.list(username="ada"),
            ):  # fmt: skip
                assert changed.id == ada.id
            made = client.api_keys.create("mine", ["account:read"])
            assert [each.id for each in client.api_keys.list()] == [client.api_keys.get(made.id).id]
            client.api_keys.revoke(made.id)
            assert client.me().user.username == "root"

    await asyncio.to_thread(work)
