"""The deployment's secret: from the settings, or from a file in the data folder."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from headrace.accounts.store.users import admin_exists
from headrace.assembly.deployment import DataFolderClosed, Notify, data_folder, secret_file
from headrace.audit.verified_head import PURPOSE
from headrace.database import Database
from headrace.embedded_postgres import files
from headrace.errors import Invalid
from headrace.settings import Settings
from headrace.vault import derive_key


class SecretKeyMissing(Invalid):
    """No secret key: set HEADRACE_SECRET_KEY to the same value for all processes (`openssl rand -hex 32` makes one)."""

    code = "secret_key_missing"


def secret_key(chosen: Settings, *, make: bool = False) -> bytes:
    """The deployment's secret, from the settings or from the data folder, where ``make`` puts one once."""
    if chosen.secret_key is not None:
        return chosen.secret_key.get_secret_value().encode()
    file = secret_file(chosen)
    try:
        if make:
            data_folder(chosen)
            _write_once(file, secrets.token_hex(32))
        return file.read_bytes()
    except FileNotFoundError:
        raise SecretKeyMissing from None
    except OSError as exc:
        raise DataFolderClosed(f"{file} cannot be read or written: {exc.strerror}.") from exc


async def lost_key(chosen: Settings, db: Database) -> str | None:
    """The warning for a lost key, to be shown before a new one is made; None if it exists or never did.

    The first administrator is made after the key: a database that has one had a key.
    """
    file = secret_file(chosen)
    if chosen.secret_key is not None or file.exists():
        return None
    async with db.transaction() as tx:
        if not await admin_exists(tx):
            return None
    return (
        f"{file} is missing, but this database was used with a key: what was encrypted with that one (secrets of "
        "webhooks, second factors, passwords of PDFs that wait, stored answers to repeated requests) cannot be read "
        "with another. Put the file back, or set HEADRACE_SECRET_KEY to what it held; if it is lost, give each webhook "
        "a new secret (`headrace webhooks rotate-secret`), turn second factors off (`headrace admin "
        "disable-second-factor`) and order locked PDFs again"
    )


def head_key(chosen: Settings) -> bytes | None:
    """What protects the verified head of the audit trail; None where this process has no secret key."""
    try:
        return derive_key(secret_key(chosen), PURPOSE)
    except (SecretKeyMissing, DataFolderClosed):
        return None


async def secret_key_for(chosen: Settings, db: Database, *, make: bool, notify: Notify) -> bytes:
    """The deployment's secret, where one may be made: not without a word if there was another."""
    if make and (warning := await lost_key(chosen, db)) is not None:
        notify(f"warning: {warning}. A new key is made now.")
    return secret_key(chosen, make=make)


def _write_once(file: Path, content: str) -> None:
    """Write a file that only its owner can read, unless it exists; never partially, also under a race or a crash."""
    if file.exists():
        return
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        files.write(draft, content, durable=True)
        with suppress(FileExistsError):  # another process was faster, and theirs counts
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
