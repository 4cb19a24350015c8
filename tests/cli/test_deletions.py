"""``headrace admin delete``, ``keep`` and ``deletions``. W-16."""

import json

from tests.cli.conftest import Call, Place
from tests.cli.test_admin import fetch, log_in


def make(call: Call, place: Place, name: str) -> str:
    return str(json.loads(call("admin", "create", name, "--json", settings=place.settings).out)["password"])


def test_an_account_is_deleted_and_kept_after_all(call: Call, migrated: Place) -> None:
    make(call, migrated, "root")
    password = make(call, migrated, "ada")
    asked = call("admin", "delete", "ada", "--yes", settings=migrated.settings)
    assert asked.code == 0, asked.err
    assert "`headrace admin keep` undoes it" in asked.out
    assert log_in(migrated, "ada", password) is None
    (listed,) = json.loads(call("admin", "deletions", "--json", settings=migrated.settings).out)
    assert (listed["status"], listed["steps_done"]) == ("WAITING", [])
    assert "WAITING" in call("admin", "deletions", settings=migrated.settings).out
    kept = call("admin", "keep", "ada", settings=migrated.settings)
    assert "is kept" in kept.out
    assert log_in(migrated, "ada", password) == "ADMIN"


def test_at_once_it_is_done_when_the_command_ends(call: Call, migrated: Place) -> None:
    make(call, migrated, "root")
    make(call, migrated, "ada")
    done = json.loads(call("admin", "delete", "ada", "--at-once", "--yes", "--json", settings=migrated.settings).out)
    assert done["status"] == "COMPLETED"
    assert done["steps_done"][-1] == "accounts.credentials"
    (user,) = fetch(migrated, f"SELECT status, username FROM headrace.users WHERE id = '{done['user_id']}'")
    assert (user["status"], user["username"]) == ("DELETED", None)
    again = call("admin", "delete", "ada", "--yes", settings=migrated.settings)
    assert (again.code, again.complaint) == (3, "There is no user ada: give the username, or the id: u_….")


def test_it_asks_first_and_the_last_administrator_stays(call: Call, migrated: Place) -> None:
    make(call, migrated, "root")
    assert call("admin", "delete", "root", settings=migrated.settings, stdin="n\n").code != 0
    refused = call("admin", "delete", "root", "--yes", settings=migrated.settings)
    assert (refused.code, "last active administrator" in refused.complaint) == (4, True)
