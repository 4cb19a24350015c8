"""Forgotten passwords and changed e-mail addresses, with a real SMTP server on loopback."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from headrace.accounts import email_change, login, password_reset, service
from headrace.accounts.config import LinkConfig, MailConfig
from headrace.accounts.errors import InvalidLink, MailBusy, MailOff, TooManyLinks, WrongPassword
from headrace.accounts.mail import Mailer
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database
from headrace.edge.limits import LimitConfig
from headrace.errors import Unauthenticated
from tests.accounts.conftest import CHEAP, PASSWORD, SECRET, LogIn, events, everything_in
from tests.accounts.smtp import Mailbox, open_mailbox, token_in
from tests.accounts.test_routes import bearer, client_of, make_app

NEW = "a new long phrase"
ADDRESS = "ada@example.org"


@pytest.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with open_mailbox() as opened:
        yield opened


@pytest.fixture
async def accounts(mailbox: Mailbox) -> AsyncIterator[Accounts]:
    mail = MailConfig(
        host="127.0.0.1",
        port=mailbox.port,
        security="none",
        sender="Headrace <no-reply@example.org>",
        console_url="https://headrace.test",
        retry_delays=(timedelta(0), timedelta(0)),
    )
    links = LinkConfig(limit=LimitConfig(per_minute=60_000, burst=10_000))
    async with service.open_accounts(replace(CHEAP, mail=mail, links=links), secret=SECRET) as opened:
        yield opened


@pytest.fixture
async def client(db: Database, accounts: Accounts) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(make_app(db, accounts)) as opened:
        yield opened


async def register(client: httpx2.AsyncClient, name: str = "ada", email: str | None = ADDRESS) -> None:
    body = {"username": name, "password": PASSWORD, "email": email}
    assert (await client.post("/v1/auth/register", json=body)).status_code == 201


async def forgot(client: httpx2.AsyncClient, login: str, language: str = "en") -> None:
    reply = await client.post("/v1/auth/password/forgot", json={"login": login, "language": language})
    assert (reply.status_code, reply.content) == (204, b"")


async def reset(client: httpx2.AsyncClient, token: str, password: str = NEW) -> httpx2.Response:
    return await client.post("/v1/auth/password/reset", json={"token": token, "new_password": password})


@pytest.mark.parametrize("named_by", ["ada", "ADA", ADDRESS, "Ada@Example.org"])
async def test_a_forgotten_password_is_reset_by_a_link(
    client: httpx2.AsyncClient, mailbox: Mailbox, db: Database, named_by: str
) -> None:
    await register(client)
    session = await bearer(client)
    await forgot(client, named_by)
    (message,) = await mailbox.wait(1)
    assert message["To"] == ADDRESS
    assert "https://headrace.test/reset-password#token=" in message.get_content()
    token = token_in(message)
    assert (await reset(client, token)).status_code == 204
    assert (await client.get("/v1/me", headers=session)).status_code == 401, "all sessions end"
    refused = await client.post("/v1/auth/login", json={"username": "ada", "password": PASSWORD})
    assert refused.status_code == 401
    await bearer(client, password=NEW)
    again = await reset(client, token, "another long phrase")
    assert (again.status_code, again.json()["code"]) == (400, "invalid_link"), "it works once"
    told = [event["data"] for event in await events(db, "updated")]
    assert {"purpose": "reset", "method": "email", "sessions_ended": "1"} in told
    trail = await everything_in(db)
    assert token not in trail
    assert ADDRESS not in trail
    assert token not in str([dict(row) for row in await db.fetch_alone("SELECT * FROM headrace.account_links")])


async def test_the_answer_does_not_tell_whether_there_is_an_account(
    client: httpx2.AsyncClient, mailbox: Mailbox, accounts: Accounts
) -> None:
    await register(client)
    await register(client, "eve", email=None)
    for name in ("nobody", "nobody@example.org", "eve", "", "\u2028 %_", "ada"):
        if name:
            await forgot(client, name)
    (message,) = await mailbox.wait(1)
    assert message["To"] == ADDRESS


async def test_a_suspended_user_gets_no_link(
    client: httpx2.AsyncClient, mailbox: Mailbox, db: Database, accounts: Accounts, who: Who
) -> None:
    await register(client)
    await db.fetch_alone("UPDATE headrace.users SET status = 'SUSPENDED' WHERE username = 'ada' RETURNING 1")
    await password_reset.send_links(db, accounts, who, login="ada")
    assert mailbox.messages == []


async def test_one_account_gets_three_links_an_hour(
    client: httpx2.AsyncClient, mailbox: Mailbox, db: Database, accounts: Accounts, who: Who
) -> None:
    await register(client)
    for _ in range(5):
        await password_reset.send_links(db, accounts, who, login="ada")
    assert len(mailbox.messages) == 3
    later = datetime.now(UTC) + timedelta(hours=1, minutes=1)
    await password_reset.send_links(db, accounts, who, login="ada", now=later)
    assert len(mailbox.messages) == 4


async def test_requests_of_one_address_are_limited(db: Database, accounts: Accounts) -> None:
    strict = replace(
        accounts, config=replace(accounts.config, links=LinkConfig(limit=LimitConfig(per_minute=1, burst=2)))
    )
    async with client_of(make_app(db, strict)) as client:
        codes = [
            (await client.post("/v1/auth/password/forgot", json={"login": "nobody"})).status_code for _ in range(3)
        ]
    assert codes == [204, 204, 429]


async def test_a_link_ends_after_half_an_hour(
    client: httpx2.AsyncClient, mailbox: Mailbox, db: Database, accounts: Accounts, who: Who
) -> None:
    await register(client)
    await forgot(client, "ada")
    token = token_in((await mailbox.wait(1))[0])
    late = datetime.now(UTC) + timedelta(minutes=31)
    with pytest.raises(InvalidLink):
        await password_reset.reset_password(db, accounts, who, token=token, new=NEW, now=late)
    async with db.transaction() as tx:
        assert await password_reset.forget_links(tx, limit=10, now=late + timedelta(hours=1)) == 1


async def test_a_reset_uses_up_all_links_of_the_account(client: httpx2.AsyncClient, mailbox: Mailbox) -> None:
    await register(client)
    await forgot(client, "ada")
    await mailbox.wait(1)
    await forgot(client, "ada", "zh")
    first, second = (token_in(message) for message in await mailbox.wait(2))
    assert mailbox.messages[1]["Subject"] == "重置您的密码"
    weak = await reset(client, first, "short")
    assert (weak.status_code, weak.json()["code"]) == (400, "invalid_password"), "and the link can be used again"
    assert (await reset(client, first)).status_code == 204
    assert (await reset(client, second)).json()["code"] == "invalid_link"


async def test_another_password_ends_the_links(client: httpx2.AsyncClient, mailbox: Mailbox) -> None:
    await register(client)
    await forgot(client, "ada")
    (message,) = await mailbox.wait(1)
    token = token_in(message)
    changed = await client.post(
        "/v1/auth/password", json={"current_password": PASSWORD, "new_password": NEW}, headers=await bearer(client)
    )
    assert changed.is_success, changed.text
    assert (await reset(client, token, "yet another long phrase")).json()["code"] == "invalid_link"


async def test_without_a_mail_server_the_answer_says_what_to_do(db: Database, accounts: Accounts) -> None:
    async with client_of(make_app(db, replace(accounts, mailer=None))) as client:
        reply = await client.post("/v1/auth/password/forgot", json={"login": "ada"})
    assert (reply.status_code, reply.json()["code"]) == (403, "mail_off")
    assert "headrace admin reset-password" in reply.json()["detail"]


async def test_a_busy_server_is_asked_again_and_a_final_refusal_is_not(accounts: Accounts, mailbox: Mailbox) -> None:
    mailer = accounts.mailer
    assert mailer is not None
    mailbox.refusals += ["451 later", "451 later"]
    await mailer.send(ADDRESS, "hello", "text")
    assert len(mailbox.messages) == 1
    mailbox.refusals += ["550 never", "550 never"]
    mailer.start(mailer.send(ADDRESS, "hello", "text"))
    await mailer.close()
    assert (len(mailbox.messages), len(mailbox.refusals)) == (1, 1)


def _mail_of(accounts: Accounts) -> MailConfig:
    assert accounts.config.mail is not None
    return accounts.config.mail


async def test_a_flood_of_mails_is_refused(accounts: Accounts) -> None:
    mailer = Mailer(replace(_mail_of(accounts), max_waiting=0))
    with pytest.raises(MailBusy):
        mailer.require_room()


async def test_a_new_address_counts_after_its_link_was_opened(
    client: httpx2.AsyncClient, mailbox: Mailbox, db: Database
) -> None:
    await register(client)
    session = await bearer(client)
    body = {"email": "ada@example.net", "password": PASSWORD}
    reply = await client.post("/v1/me/email", json=body, headers=session)
    assert (reply.status_code, reply.json()["sent_to"]) == (200, "ada@example.net")
    assert reply.json()["user"]["email"] == ADDRESS
    (message,) = await mailbox.wait(1)
    assert message["To"] == "ada@example.net"
    await forgot(client, "ada")
    to_the_old = token_in((await mailbox.wait(2))[1])
    confirm = {"token": token_in(message)}
    assert (await client.post("/v1/auth/email/confirm", json=confirm)).status_code == 204
    assert (await client.get("/v1/me", headers=session)).json()["user"]["email"] == "ada@example.net"
    assert (await client.post("/v1/auth/email/confirm", json=confirm)).json()["code"] == "invalid_link"
    assert (await reset(client, to_the_old)).json()["code"] == "invalid_link", "links to the former address end"
    notice = (await mailbox.wait(3))[2]
    assert (notice["To"], notice["Subject"]) == (ADDRESS, "Your e-mail address was changed")
    assert "example.net" not in await everything_in(db)


async def test_an_address_needs_the_password_and_a_few_mails_are_the_most(
    db: Database, accounts: Accounts, client: httpx2.AsyncClient, log_in: LogIn, mailbox: Mailbox
) -> None:
    await register(client)
    caller = await log_in()
    with pytest.raises(WrongPassword):
        await email_change.change_email(db, accounts, caller, email="x@example.net", password="not it at all")
    for number in range(3):
        await email_change.change_email(db, accounts, caller, email=f"{number}@example.net", password=PASSWORD)
    with pytest.raises(TooManyLinks):
        await email_change.change_email(db, accounts, caller, email="4@example.net", password=PASSWORD)
    await mailbox.wait(3)


async def test_without_a_mail_server_an_address_is_changed_at_once(
    db: Database, accounts: Accounts, client: httpx2.AsyncClient, log_in: LogIn
) -> None:
    await register(client)
    caller = await log_in()
    silent = replace(accounts, mailer=None)
    changed = await email_change.change_email(db, silent, caller, email="x@example.net", password=PASSWORD)
    assert (changed.user.email, changed.sent_to) == ("x@example.net", None)
    gone = await email_change.change_email(db, accounts, caller, email=None, password=PASSWORD)
    assert (gone.user.email, gone.sent_to) == (None, None)
    with pytest.raises(MailOff):
        password_reset.mailer_of(silent)


async def test_a_link_of_the_other_purpose_is_refused(
    db: Database, accounts: Accounts, client: httpx2.AsyncClient, mailbox: Mailbox, who: Who
) -> None:
    await register(client)
    await forgot(client, "ada")
    token = token_in((await mailbox.wait(1))[0])
    assert (await client.post("/v1/auth/email/confirm", json={"token": token})).json()["code"] == "invalid_link"
    with pytest.raises(Unauthenticated):
        await login.log_in(db, accounts, who, username="ada", password=token)
