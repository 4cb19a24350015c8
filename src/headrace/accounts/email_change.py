"""Changes the caller's e-mail address: the new one counts once a link that was sent there is opened."""

from dataclasses import dataclass
from datetime import datetime

from headrace import audit
from headrace.access import Caller
from headrace.accounts import confirmation, mail_texts, password_reset, rules, throttle, tokens
from headrace.accounts.errors import InvalidLink, TooManyLinks, UserNotFound
from headrace.accounts.model import LinkPurpose, User
from headrace.accounts.registration import user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import links as store
from headrace.accounts.store import users as users_store
from headrace.audit import Action, Who
from headrace.database import Database


@dataclass(frozen=True, slots=True)
class EmailChange:
    """The user, and the address that a link was sent to, if it has to be confirmed."""

    user: User
    sent_to: str | None


async def change_email(
    db: Database,
    accounts: Accounts,
    caller: Caller,
    *,
    email: str | None,
    password: str,
    language: mail_texts.Language = "en",
    now: datetime | None = None,
) -> EmailChange:
    """Set or remove the caller's address. Requires the password, with throttled guesses.

    Where e-mail can be sent, a new address counts only after it is confirmed; the old one stays until then.
    """
    address = rules.check_email(email)
    if accounts.mailer is not None and address is not None:
        accounts.mailer.require_room()
    confirmed = await confirmation.confirm(db, accounts, caller, password, purpose="email", field="password", now=now)
    token: str | None = None
    async with db.transaction() as tx:
        old = await users_store.lock_user(tx, caller.user_id)
        if old is None:
            raise UserNotFound
        await throttle.succeed(tx, confirmed.attempt)
        if address == old.email:
            return EmailChange(old, None)
        if accounts.mailer is None or address is None:
            new = await users_store.set_email(tx, old, address)
            await store.delete_links(tx, old.id)
            await audit.record(tx, caller.who, Action.UPDATED, user_resource(new), old=old, new=new)
            return EmailChange(new, None)
        token = await password_reset.make_link(tx, accounts, old, LinkPurpose.EMAIL_CHANGE, address, now=now)
        if token is None:
            raise TooManyLinks
        facts = {"purpose": "email", "verb": "request"}
        await audit.record(tx, caller.who, Action.UPDATED, user_resource(old), old=old, new=old, data=facts)
    accounts.mailer.start(
        password_reset.send_link(accounts, old, LinkPurpose.EMAIL_CHANGE, token, to=address, language=language)
    )
    return EmailChange(old, address)


async def confirm_email(
    db: Database,
    accounts: Accounts,
    who: Who,
    *,
    token: str,
    language: mail_texts.Language = "en",
    now: datetime | None = None,
) -> None:
    """Set the address that the link was sent to, and notify the former one; ``InvalidLink`` for a used or old link."""
    async with db.transaction() as tx:
        link = await store.find_link(tx, tokens.digest(token), LinkPurpose.EMAIL_CHANGE, now=now)
        old = None if link is None else await users_store.lock_user(tx, link.user_id)
        if link is None or old is None or await store.use_link(tx, link.id, now=now) is None:
            raise InvalidLink(field="token")
        new = await users_store.set_email(tx, old, link.email)
        # Links to the former address must not reset the password any more.
        await store.delete_links(tx, old.id)
        facts = {"purpose": "email", "method": "email"}
        await audit.record(tx, new.acting(who), Action.UPDATED, user_resource(new), old=old, new=new, data=facts)
    if old.email is not None and accounts.mailer is not None:
        subject, text = mail_texts.changed_mail(language, username=new.username or "")
        accounts.mailer.start(accounts.mailer.send(old.email, subject, text))
