"""The first administrator's password waits in a file until it is used, and is never one that nobody knows."""

from pathlib import Path

import pytest

from headrace.accounts import administration
from headrace.accounts.service import Accounts
from headrace.accounts.store import users
from headrace.assembly.first_password import FirstPassword
from headrace.audit import Who
from headrace.database import Database


@pytest.fixture
def first(tmp_path: Path) -> FirstPassword:
    return FirstPassword.within(tmp_path)


async def test_it_stays_until_the_password_is_replaced(db: Database, accounts: Accounts, first: FirstPassword) -> None:
    made = await administration.ensure_first_admin(db, accounts, keep=first.keep)
    assert made is not None
    await first.forget_if_used(db)
    assert first.read() == ("admin", made.password)
    await administration.reset_password(db, accounts, Who.system(), made.user.id, "another long phrase")
    await first.forget_if_used(db)
    assert first.read() is None


async def test_what_cannot_be_kept_is_not_made(db: Database, accounts: Accounts, tmp_path: Path) -> None:
    nowhere = FirstPassword.within(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        await administration.ensure_first_admin(db, accounts, keep=nowhere.keep)
    async with db.transaction() as tx:
        assert not await users.admin_exists(tx)


async def test_a_file_about_nobody_is_removed(db: Database, first: FirstPassword) -> None:
    first.file.write_text("admin\nof a start that was killed\n")
    await first.forget_if_used(db)
    assert not first.file.exists()
