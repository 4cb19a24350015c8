"""VerifyMode a server that speaks as WeChat's does."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from headrace.access import Credentials
from headrace.accounts import administration, login, model
from headrace.accounts.config import WeChatConfig
from headrace.accounts.deletion import service
from headrace.accounts.errors import (
    AccountBeingDeleted,
    AccountSuspended,
    InvalidWeChatCode,
    NoPassword,
    RegistrationClosed,
    WeChatBlocked,
    WeChatOff,
    WeChatUnavailable,
)
from headrace.accounts.service import Accounts
from headrace.accounts.wechat import WeChat
from headrace.audit import Who
from headrace.database import Database
from headrace.errors import HeadraceError
from tests.accounts.conftest import configured, events, everything_in

SECRET = "the-app-secret-nobody-may-see"


@dataclass
class FakeWeChat:
    """Answers every request with ``body``, and remembers what it was asked."""

    url: str = ""
    status: int = 200
    body: bytes = b'{"openid": "o-ada", "session_key": "never-stored"}'
    delay: float = 0
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = urlsplit(head.split()[1])
            self.paths.append(target.path)
            self.asked.append(parse_qs(target.query))
            await asyncio.sleep(self.delay)
            writer.write(
                f"HTTP/1.1 {self.status} X\r\nContent-Type: text/plain\r\nContent-Length: {len(self.body)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + self.body
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeChat]:
    server = FakeWeChat()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    yield server
    listening.close()


@pytest.fixture
async def wechat(fake: FakeWeChat) -> AsyncIterator[WeChat]:
    client = WeChat(WeChatConfig("app-id", SECRET, fake.url, timeout=timedelta(minutes=1)))
    yield client
    await client.close()


@pytest.fixture
def ours(accounts: Accounts, wechat: WeChat) -> Accounts:
    return replace(accounts, wechat=wechat)


async def enter(db: Database, ours: Accounts, who: Who) -> model.LoggedIn:
    return await login.log_in_with_wechat(db, ours, who, code="c")


async def test_a_code_becomes_an_openid(fake: FakeWeChat, wechat: WeChat) -> None:
    assert await wechat.openid_of("the code & more") == "o-ada"
    assert fake.paths == ["/sns/jscode2session"]
    assert fake.asked == [
        {
            "appid": ["app-id"],
            "secret": [SECRET],
            "js_code": ["the code & more"],
            "grant_type": ["authorization_code"],
        }
    ]


@pytest.mark.parametrize(
    ("errcode", "error"),
    [
        (40029, InvalidWeChatCode),
        (40163, InvalidWeChatCode),
        (40226, WeChatBlocked),
        (45011, WeChatUnavailable),
        (-1, WeChatUnavailable),
        (40125, WeChatUnavailable),
        ("odd", WeChatUnavailable),
    ],
)
async def test_wechat_s_errors_are_ours(
    fake: FakeWeChat, wechat: WeChat, errcode: object, error: type[HeadraceError]
) -> None:
    fake.body = json.dumps({"errcode": errcode, "errmsg": f"invalid, secret {SECRET}"}).encode()
    with pytest.raises(error) as refused:
        await wechat.openid_of("c")
    assert refused.type is error
    assert SECRET not in repr(refused.value) + refused.value.message


async def test_zero_is_no_error(fake: FakeWeChat, wechat: WeChat) -> None:
    fake.body = b'{"errcode": 0, "openid": "o-ada"}'
    assert await wechat.openid_of("c") == "o-ada"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b"null"),
        (200, b"{}"),
        (200, b'{"openid": 5}'),
        (200, b'{"openid": ""}'),
        (200, b'{"openid": "a\\u0000b"}'),
        (200, b'{"openid": "' + b"x" * 129 + b'"}'),
        (200, b'{"openid": "o", "x": "' + b"x" * 100_000 + b'"}'),
        (200, b"[" * 60_000),
        (500, b'{"openid": "o-ada"}'),
        (302, b""),
    ],
)
async def test_garbage_is_no_login(fake: FakeWeChat, wechat: WeChat, status: int, body: bytes) -> None:
    fake.status, fake.body = status, body
    with pytest.raises(WeChatUnavailable):
        await wechat.openid_of("c")


async def test_an_answer_without_end_is_cut_off() -> None:
    sent, hung_up = 0, asyncio.Event()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x" * 10_000)
                sent += 10_000
                await writer.drain()
        hung_up.set()

    async with await asyncio.start_server(pour, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        client = WeChat(WeChatConfig("app-id", SECRET, url, timeout=timedelta(minutes=2)))
        async with asyncio.timeout(60):
            with pytest.raises(WeChatUnavailable):
                await client.openid_of("c")
            await hung_up.wait()
        await client.close()
    assert sent < 20_000_000, "what lies in the buffers of the network, and no more"


async def test_a_silent_server_is_given_up(fake: FakeWeChat) -> None:
    fake.delay = 600
    client = WeChat(WeChatConfig("app-id", SECRET, fake.url, timeout=timedelta(milliseconds=200)))
    async with asyncio.timeout(60):
        with pytest.raises(WeChatUnavailable):
            await client.openid_of("c")
    await client.close()


async def test_no_server_is_unavailable_and_the_secret_stays_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    client = WeChat(WeChatConfig("app-id", SECRET, "http://127.0.0.1:1"))
    with pytest.raises(WeChatUnavailable) as refused:
        await client.openid_of("c")
    await client.close()
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
    assert SECRET not in caplog.text
    assert SECRET not in repr(WeChatConfig("app-id", SECRET))


async def test_the_first_login_makes_the_user(db: Database, ours: Accounts, who: Who) -> None:
    first, second = await enter(db, ours, who), await enter(db, ours, who)
    assert first.user.id == second.user.id
    assert first.session.id != second.session.id
    assert (first.user.username, first.user.wechat_openid) == (None, "o-ada")
    assert len(await events(db, "created")) == 1
    logins = await events(db, "login")
    assert [event["data"]["method"] for event in logins] == ["wechat", "wechat"]
    trail = await everything_in(db)
    assert "o-ada" not in trail
    assert "never-stored" not in trail


async def test_ten_first_logins_at_once_make_one_user(db: Database, ours: Accounts, who: Who) -> None:
    entered = await asyncio.gather(*(enter(db, ours, who) for _ in range(10)))
    assert len({logged_in.user.id for logged_in in entered}) == 1
    assert len(await events(db, "created")) == 1


async def test_a_suspended_user_stays_out(db: Database, ours: Accounts, who: Who) -> None:
    user = (await enter(db, ours, who)).user
    async with db.transaction() as tx:
        await administration.suspend(tx, who, user.id)
    with pytest.raises(AccountSuspended):
        await enter(db, ours, who)
    assert (await events(db, "login"))[-1]["data"] == {"outcome": "failure", "reason": "suspended"}


async def test_a_closed_house_lets_in_whom_it_knows(db: Database, ours: Accounts, who: Who) -> None:
    closed = configured(ours, registration_open=False)
    with pytest.raises(RegistrationClosed):
        await enter(db, closed, who)
    await enter(db, ours, who)
    await enter(db, closed, who)


async def test_without_an_app_id_it_is_off(db: Database, accounts: Accounts, who: Who) -> None:
    with pytest.raises(WeChatOff):
        await enter(db, accounts, who)


async def test_an_account_without_a_password_is_deleted_and_kept_by_a_code(
    db: Database, ours: Accounts, who: Who, fake: FakeWeChat
) -> None:  # W-16
    entered = await enter(db, ours, who)
    caller = await ours.authenticate(db, who, Credentials(entered.token, None, None), True)
    mine, fake.body = fake.body, b'{"openid": "o-somebody-else"}'
    with pytest.raises(InvalidWeChatCode, match="another user"):
        await service.delete_own_wechat_account(db, ours, caller, code="c")
    with pytest.raises(NoPassword):
        await service.delete_own_account(db, ours, caller, password="any")
    fake.body = mine
    await service.delete_own_wechat_account(db, ours, caller, code="c")
    with pytest.raises(AccountBeingDeleted):
        await enter(db, ours, who)
    kept = await login.log_in_with_wechat(db, ours, who, code="c", keep_account=True)
    assert kept.user.id == entered.user.id
