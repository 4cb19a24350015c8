"""Resets a forgotten password by a link that is sent by e-mail.

The request is answered before anything is looked up, so neither the answer nor its time tells whether there is such an
account. The link works once and for half an hour.
"""

from datetime import datetime

from headrace import audit, logs
from headrace.accounts import mail_texts, rules, throttle, tokens
from headrace.accounts.errors import InvalidLink, MailOff
from headrace.accounts.mail import Mailer
from headrace.accounts.model import LinkPurpose, User
from headrace.accounts.registration import user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import links as store
from headrace.accounts.store import sessions as sessions_store
from headrace.accounts.store import users as users_store
from headrace.audit import Action, Who
from headrace.database import Database, Tx

log = logs.get(__name__)


def mailer_of(accounts: Accounts) -> Mailer:
    """The mailer, or ``MailOff``."""
    if accounts.mailer is None:
        raise MailOff
    return accounts.mailer


def request_reset(
    db: Database, accounts: Accounts, who: Who, *, login: str, language: mail_texts.Language = "en"
) -> None:
    """Send links to the active accounts with this name or e-mail address, in the background."""
    mailer = mailer_of(accounts)
    mailer.require_room()
    mailer.start(send_links(db, accounts, who, login=login, language=language))


async def send_links(
    db: Database,
    accounts: Accounts,
    who: Who,
    *,
    login: str,
    language: mail_texts.Language = "en",
    now: datetime | None = None,
) -> None:
    """Look the accounts up, and send each its link. Audited; at most a few an hour for each account."""
    name = login.strip()
    async with db.transaction() as tx:
        found = await store.find_accounts(tx, rules.fold(name), name)
        made = [
            (user, token)
            for user in found
            if (token := await make_link(tx, accounts, user, LinkPurpose.PASSWORD_RESET, user.email or "", now=now))
        ]
        for user, _ in made:
            facts = {"purpose": "reset", "method": "email", "verb": "request"}
            await audit.record(tx, who, Action.READ, user_resource(user), data=facts)
    log.info("password_reset.requested", accounts=len(found), links=len(made))
    for user, token in made:
        await send_link(accounts, user, LinkPurpose.PASSWORD_RESET, token, to=user.email or "", language=language)


async def make_link(
    tx: Tx, accounts: Accounts, user: User, purpose: LinkPurpose, email: str, *, now: datetime | None = None
) -> str | None:
    """Store a link and return its token; None if the user has the maximum of this hour."""
    config = accounts.config.links
    if await users_store.lock_user(tx, user.id) is None:
        return None
    if await store.count_recent(tx, user.id, purpose, now=now) >= config.max_per_hour:
        return None
    token = tokens.new(tokens.LINK)
    await store.insert_link(
        tx, user.id, purpose, token_hash=tokens.digest(token), email=email, lifetime=config.lifetime, now=now
    )
    return token


async def send_link(
    accounts: Accounts, user: User, purpose: LinkPurpose, token: str, *, to: str, language: mail_texts.Language
) -> None:
    mailer = mailer_of(accounts)
    subject, text = mail_texts.link_mail(
        purpose,
        language,
        console_url=mailer.config.console_url,
        username=user.username or "",
        token=token,
        minutes=round(accounts.config.links.lifetime.total_seconds() / 60),
    )
    await mailer.send(to, subject, text)


async def reset_password(
    db: Database, accounts: Accounts, who: Who, *, token: str, new: str, now: datetime | None = None
) -> None:
    """Set the password of the link's account and end all its sessions. ``InvalidLink`` if it was used or has expired.

    The second factor stays: the next login asks for it.
    """
    async with db.transaction(readonly=True) as tx:
        link = await store.find_link(tx, tokens.digest(token), LinkPurpose.PASSWORD_RESET, now=now)
        user = None if link is None else await users_store.find_user(tx, link.user_id)
    if link is None or user is None or user.username is None or not user.is_active:
        raise InvalidLink(field="token")
    rules.check_password(new, username=user.username, config=accounts.config.passwords, field="new_password")
    hashed = await accounts.passwords.hash(new)
    async with db.transaction() as tx:
        # The user is locked before its links, here and where links are made: another order could deadlock.
        old = await users_store.lock_user(tx, user.id)
        if old is None or not old.is_active or await store.use_link(tx, link.id, now=now) is None:
            raise InvalidLink(field="token")
        changed = await users_store.set_password(tx, old, hashed)
        await store.delete_links(tx, old.id)
        ended = await sessions_store.revoke_all(tx, old.id)
        # Guesses by others must not block the owner's first login with the new password.
        await throttle.forgive(tx, user.username)
        facts = {"purpose": "reset", "method": "email", "sessions_ended": str(ended)}
        await audit.record(
            tx, changed.acting(who), Action.UPDATED, user_resource(changed), old=old, new=changed, data=facts
        )


async def forget_links(tx: Tx, *, limit: int, now: datetime | None = None) -> int:
    """Delete at most ``limit`` expired links; returns their number. For maintenance."""
    return await store.forget(tx, limit=limit, now=now)
