"""Secrets are nowhere in the open, and outlive their keys. A-09, W-13."""

from contextlib import redirect_stderr
from datetime import timedelta
from io import StringIO

import pytest
import standardwebhooks

from headrace.database import Database
from headrace.vault import Keyring, SecretUnreadable
from headrace.webhooks import secrets, service
from headrace.webhooks.errors import SecretInvalid
from headrace.webhooks.model import EndpointSpec
from headrace.webhooks.secrets import keyring_of
from headrace.webhooks.sending import Sender
from headrace.webhooks.service import Webhooks
from headrace.webhooks.store import endpoints
from tests.webhooks import stand
from tests.webhooks.receiver import receiving, says

OLD, NEW = b"old key " * 5, b"new key " * 5


async def everything_in(db: Database) -> str:
    """Every row of every table, as text."""
    tables = await db.fetch_alone(
        "SELECT relname FROM pg_class WHERE relnamespace = 'headrace'::regnamespace AND relkind IN ('r', 'p')"
    )
    texts = []
    for table in tables:
        rows = await db.fetch_alone(f"SELECT t::text AS row FROM headrace.{table['relname']} AS t")
        texts += [row["row"] for row in rows]
    return "\n".join(texts)


async def test_a_secret_appears_nowhere(db: Database, capfd: pytest.CaptureFixture[str]) -> None:
    ada = await stand.make_user(db, "ada")
    said = StringIO()
    with redirect_stderr(said):
        async with receiving(says(500, body="who are you?")) as receiver:
            endpoint, first = await stand.make_endpoint(db, ada, receiver.url, max_retries=1)
            async with db.transaction() as tx:
                _, second = await service.rotate_secret(tx, stand.HOOKS, ada, endpoint.id)
            await stand.happen(db, ada, 2)
            await stand.relay(db)
            async with stand.sending(db):
                await stand.until(lambda: stand.is_empty(db))
            broken = Sender(db, stand.http_client(), keyring_of(b"another key, which does not fit here"), stand.QUICK)
            await stand.happen(db, ada)
            await stand.relay(db)
            await db.fetch_alone("DELETE FROM headrace.webhook_health")
            assert await broken.run_once() == 1
            with pytest.raises(SecretInvalid):
                async with db.transaction() as tx:
                    await service.rotate_secret(tx, stand.HOOKS, ada, endpoint.id, secret=first.text + "!")
    shown = await everything_in(db) + said.getvalue() + "".join(capfd.readouterr())
    assert endpoint.id in shown
    for secret in (first, second):
        assert secret.text not in shown
        assert secret.text.removeprefix("whsec_") not in shown
        assert secret.key.hex() not in shown
    unreadable = [row for row in await stand.attempts(db) if "cannot be read" in (row["error"] or "")]
    assert len(unreadable) == 1


async def test_while_the_overlap_lasts_both_secrets_sign(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving() as receiver:
        endpoint, old = await stand.make_endpoint(db, ada, receiver.url)
        async with db.transaction() as tx:
            _, new = await service.rotate_secret(tx, stand.HOOKS, ada, endpoint.id)
        await stand.happen(db, ada)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
            for secret in (old, new):
                (request,) = receiver.requests
                standardwebhooks.Webhook(secret.text).verify(request.body, request.headers)
            receiver.requests.clear()
            await db.fetch_alone(
                "UPDATE headrace.webhook_endpoints SET secret_rotated_at = now() - interval '25 hours'"
            )
            await stand.happen(db, ada)
            await stand.relay(db)
            await stand.until(lambda: stand.is_empty(db))
    (request,) = receiver.requests
    standardwebhooks.Webhook(new.text).verify(request.body, request.headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(old.text).verify(request.body, request.headers)
    async with db.transaction() as tx:
        assert await endpoints.forget_old_secrets(tx, 10, overlap=timedelta(hours=24)) == 1
        assert await endpoints.forget_old_secrets(tx, 10, overlap=timedelta(hours=24)) == 0


async def test_keys_are_rotated_without_losing_a_delivery(db: Database) -> None:
    """The new key encrypts, the old one reads, everything is encrypted anew while deliveries go on; then it can go."""
    ada = await stand.make_user(db, "ada")
    before, during, after = keyring_of(OLD), keyring_of(NEW, (OLD,)), keyring_of(NEW)
    async with receiving() as receiver:
        made = {}
        for number in range(5):
            async with db.transaction() as tx:
                spec = EndpointSpec("hook", f"{receiver.url}/{number}", ("*",))
                endpoint, secret = await service.create_endpoint(tx, Webhooks(before, stand.LOCAL), ada, spec)
            made[f"/hooks/{number}"] = secret
        http = stand.http_client()
        rings: list[Keyring] = [before, during, during, after]
        for step, ring in enumerate(rings):
            if step == 2:
                last: str | None = ""
                changed = 0
                while last is not None:
                    async with db.transaction() as tx:
                        last, batch = await service.reseal_after(tx, during, ada.who, last, limit=2)
                        changed += batch
                assert changed == 5
                async with db.transaction() as tx:
                    assert (await service.reseal_after(tx, during, ada.who, ""))[1] == 0
            await stand.happen(db, ada)
            await stand.relay(db)
            assert await Sender(db, http, ring, stand.QUICK).run_once() == 5
        await http.close()
    assert len(receiver.requests) == 20
    for request in receiver.requests:
        standardwebhooks.Webhook(made[request.path].text).verify(request.body, request.headers)
    assert {row["status"] for row in await stand.attempts(db)} == {"SUCCESS"}
    async with db.transaction() as tx:
        found = await service.get_endpoint(tx, ada, endpoint.id)
    with pytest.raises(SecretUnreadable):
        secrets.unseal(before, found.id, found.secret_ciphertext)
    with pytest.raises(SecretUnreadable):  # moved to another row
        secrets.unseal(after, "whe_other", found.secret_ciphertext)
