"""``headrace admin``: an operator with access to the database makes administrators and gives out passwords."""

import asyncio
import json
import os
import re

import pytest

from headrace.accounts import login, service
from headrace.accounts.config import AccountsConfig, PasswordConfig
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig, Row
from headrace.errors import HeadraceError
from tests.cli.conftest import Call, Place

CHEAP = AccountsConfig(registration_open=True, passwords=PasswordConfig(time_cost=1, memory_kib=64, parallelism=1))
CHOSEN = "a phrase of my own choosing"


def log_in(place: Place, username: str, password: str) -> str | None:
    """The role of whoever logs in so, or None."""

    async def enter() -> str | None:
        async with (
            await Database.connect(DatabaseConfig(place.app_url)) as db,
            service.open_accounts(CHEAP, secret=b"a secret of the tests, 32 characters or more") as known,
        ):
            try:
                return (await login.log_in(db, known, Who.system(), username=username, password=password)).user.role
            except HeadraceError:
                return None

    return asyncio.run(enter())


def fetch(place: Place, sql: str) -> list[Row]:
    async def ask() -> list[Row]:
        async with await Database.connect(DatabaseConfig(place.owner_url)) as db, db.transaction() as tx:
            return await tx.fetch(sql)

    return asyncio.run(ask())


def test_a_password_is_made_up_and_shown_once(call: Call, migrated: Place) -> None:
    done = call("admin", "create", "ada", settings=migrated.settings)
    assert done.code == 0
    said = re.fullmatch(r"ada can log in with the password (\S+) \(shown only now\)\.\n", done.out)
    assert said is not None, done.out
    assert said[1] not in done.err
    assert log_in(migrated, "ada", said[1]) == "ADMIN"
    assert said[1] not in str([dict(row) for row in fetch(migrated, "SELECT * FROM headrace.audit_events")])


def test_without_a_name_it_is_admin(call: Call, migrated: Place) -> None:
    made = json.loads(call("admin", "create", "--json", settings=migrated.settings).out)
    assert made["username"] == "admin"
    assert log_in(migrated, "admin", made["password"]) == "ADMIN"


def test_a_password_from_standard_input_is_not_shown(call: Call, migrated: Place) -> None:
    settings = migrated.settings
    done = call("admin", "create", "Ada", "--password-stdin", settings=settings, stdin=f"{CHOSEN}\n")
    assert (done.code, done.out) == (0, "ada can log in.\n")
    assert CHOSEN not in done.err
    assert log_in(migrated, "ada", CHOSEN) == "ADMIN"
    done = call("admin", "create", "bea", "--password-stdin", "--json", settings=settings, stdin=CHOSEN)
    assert json.loads(done.out) == {"username": "bea", "password": None}


@pytest.mark.parametrize("given", ["short\n", "\n", ""])
def test_a_password_that_is_too_short_is_refused(call: Call, migrated: Place, given: str) -> None:
    done = call("admin", "create", "ada", "--password-stdin", settings=migrated.settings, stdin=given)
    assert done.code == 2, done.out
    assert "password" in done.complaint.lower()
    assert fetch(migrated, "SELECT FROM headrace.users WHERE username = 'ada'") == []


def test_a_name_that_is_taken(call: Call, migrated: Place) -> None:
    first = json.loads(call("admin", "create", "ada", "--json", settings=migrated.settings).out)
    again = call("admin", "create", "ADA", settings=migrated.settings)
    assert (again.code, again.out) == (4, "")
    assert "taken" in again.complaint
    assert log_in(migrated, "ada", first["password"]) == "ADMIN"


def test_a_name_that_is_none(call: Call, migrated: Place) -> None:
    refused = call("admin", "create", "no spaces here", settings=migrated.settings)
    assert refused.code == 2
    assert refused.complaint


def test_another_password_ends_the_old_one_and_all_sessions(call: Call, migrated: Place) -> None:
    first = json.loads(call("admin", "create", "ada", "--json", settings=migrated.settings).out)
    assert log_in(migrated, "ada", first["password"]) == "ADMIN"
    second = json.loads(call("admin", "reset-password", "ada", "--json", settings=migrated.settings).out)
    assert second["password"] != first["password"]
    assert fetch(migrated, "SELECT FROM headrace.sessions WHERE revoked_at IS NULL") == []
    assert log_in(migrated, "ada", first["password"]) is None
    assert log_in(migrated, "ada", second["password"]) == "ADMIN"

    done = call("admin", "reset-password", "ada", "--password-stdin", settings=migrated.settings, stdin=f"{CHOSEN}\n")
    assert (done.code, done.out) == (0, "ada can log in.\n")
    assert log_in(migrated, "ada", CHOSEN) == "ADMIN"


@pytest.mark.parametrize("given", ["short\n", "\n", ""])
def test_a_reset_to_nothing_is_refused(call: Call, migrated: Place, given: str) -> None:
    first = json.loads(call("admin", "create", "ada", "--json", settings=migrated.settings).out)
    done = call("admin", "reset-password", "ada", "--password-stdin", settings=migrated.settings, stdin=given)
    assert done.code == 2, done.out
    assert log_in(migrated, "ada", first["password"]) == "ADMIN"


def test_nobody_of_that_name(call: Call, migrated: Place) -> None:
    refused = call("admin", "reset-password", "nobody.there", settings=migrated.settings)
    assert (refused.code, refused.out) == (3, "")
    assert "nobody.there" in refused.complaint


def test_it_is_audited_as_the_operator_s_act(call: Call, migrated: Place) -> None:
    call("admin", "create", "ada", settings=migrated.settings)
    (event,) = fetch(migrated, "SELECT * FROM headrace.audit_events WHERE action = 'created'")
    assert event["user_agent"].startswith("headrace admin (")


def test_an_account_without_a_name_is_noted_by_its_number(
    call: Call, migrated: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under any user id."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)  # nobody has it here, and root alone could take it on
    assert call("admin", "create", "ada", settings=migrated.settings).code == 0
    (event,) = fetch(migrated, "SELECT * FROM headrace.audit_events WHERE action = 'created'")
    assert event["user_agent"] == "headrace admin (uid 54321)"


def test_a_schema_that_is_missing_is_said_in_one_line(call: Call, empty: Place) -> None:
    refused = call("admin", "create", settings=empty.settings)
    assert refused.code == 4
    assert "run `headrace migrate`" in refused.complaint
