"""Must be seen: whatever is wrong with the surroundings is said in one line that tells what to do.

Each command that can meet it, with an exit code that scripts can tell apart and never a traceback.
"""

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Place
from tests.cli.test_doctor import with_password
from tests.conftest import TestServer
from tests.e2e.program import CHEAP, SECRET_KEY, run_program

DATABASE = ["up", "api", "migrate"]


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield str(listening.getsockname()[1])


@pytest.fixture
def nobody_there() -> str:
    """The address of a PostgreSQL that does not run."""
    with socket.create_server(("127.0.0.1", 0)) as once:
        return f"postgresql://ada:swordfish@127.0.0.1:{once.getsockname()[1]}/headrace"


@pytest.mark.parametrize("command", [*DATABASE, "settings show", "admin create"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HEADRACE_API_PORT", "99999", "HEADRACE_API_PORT: Input should be less than or equal to 65535"),
        ("HEADRACE_API_PROT", "80", "HEADRACE_API_PROT is not a setting (did you mean HEADRACE_API_PORT?)"),
        ("HEADRACE_SECRET_KEY", "hunter2", "`openssl rand -hex 32` makes one"),
        ("HEADRACE_CONFIG", "nowhere.toml", "HEADRACE_CONFIG names nowhere.toml, and there is no such file."),
    ],
)
def test_bad_settings(call: Call, command: str, name: str, value: str, said: str, tmp_path: Path) -> None:
    done = call(*command.split(), settings={name: value})
    assert (done.code, done.out) == (2, "")
    assert said in done.complaint
    assert "hunter2" not in done.err
    assert list(tmp_path.iterdir()) == [], "nothing was begun"


@pytest.mark.parametrize("command", ["up", "api"])
def test_a_port_that_was_chosen_and_is_taken(call: Call, migrated: Place, command: str, taken: str) -> None:
    for words, chosen in ((["--port", taken], {}), ([], {"HEADRACE_API_PORT": taken})):
        done = call(command, *words, settings={**migrated.settings, **chosen})
        assert done.code == 7
        assert done.complaint == (
            f"Port {taken} is taken by another program: stop it, or choose another as HEADRACE_API_PORT."
        )


@pytest.mark.parametrize("command", ["up", "api"])
@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_that_this_machine_does_not_have(call: Call, migrated: Place, command: str, host: str) -> None:
    done = call(command, "--host", host, settings=migrated.settings)
    assert done.code == 2
    assert "HEADRACE_API_HOST" in done.complaint


@pytest.mark.parametrize("command", ["up", "migrate", "admin create"])  # an API waits for it
def test_a_database_that_cannot_be_reached(call: Call, command: str, nobody_there: str) -> None:
    done = call(*command.split(), settings={**CHEAP, **SECRET_KEY, "HEADRACE_DATABASE_URL": nobody_there})
    assert done.code == 7
    assert "cannot be reached: start it, or correct HEADRACE_DATABASE_URL" in done.complaint
    assert "swordfish" not in done.err


@pytest.mark.parametrize("command", [*DATABASE, "admin create"])
def test_a_password_that_is_wrong(call: Call, migrated: Place, command: str) -> None:
    wrong = with_password(migrated.owner_url, "swordfish")
    done = call(*command.split(), settings={**CHEAP, **SECRET_KEY, "HEADRACE_DATABASE_URL": wrong})
    assert done.code == 2
    assert "refuses the user or the password: check HEADRACE_DATABASE_URL" in done.complaint
    assert "swordfish" not in done.err


@pytest.mark.parametrize("command", DATABASE)
def test_a_database_that_is_not_on_the_server(call: Call, server: TestServer, command: str) -> None:
    absent = server.url("headrace_never_made")
    done = call(command, settings={**SECRET_KEY, "HEADRACE_DATABASE_URL": absent})
    assert done.code == 2
    assert "There is no such database" in done.complaint


@pytest.mark.parametrize("command", DATABASE)
def test_an_address_that_is_none(call: Call, command: str) -> None:
    done = call(command, settings={**SECRET_KEY, "HEADRACE_DATABASE_URL": "swordfish"})
    assert done.code == 2
    assert "it looks like postgresql://user:password@host:5432/database" in done.complaint
    assert "swordfish" not in done.err


@pytest.mark.parametrize("command", [*DATABASE, "migrate --down --yes", "admin create"])
def test_a_schema_from_the_future(call: Call, future: Place, command: str) -> None:
    done = call(*command.split(), settings=future.settings)
    assert done.code == 4
    assert "9999_teleport" in done.complaint
    assert "update the program" in done.complaint


def test_an_api_before_its_schema(call: Call, empty: Place) -> None:
    done = call("api", settings=empty.settings)
    assert done.code == 4
    assert "run `headrace migrate`" in done.complaint


def test_an_api_without_a_secret(call: Call, migrated: Place) -> None:
    done = call("api", settings={"HEADRACE_DATABASE_URL": migrated.app_url})
    assert done.code == 2
    assert "set HEADRACE_SECRET_KEY" in done.complaint


@pytest.mark.parametrize("command", ["up", "doctor", "admin create"])
def test_a_data_folder_that_cannot_be_made(call: Call, command: str) -> None:
    done = call(*command.split(), settings={"HEADRACE_DATA_DIR": "/dev/null/data"})
    assert done.code == (1 if command == "doctor" else 7)
    assert "set HEADRACE_DATA_DIR" in (done.out if command == "doctor" else done.complaint)


@pytest.mark.parametrize("command", ["tasks list", "submit greet", "admin create", "audit verify"])
def test_a_folder_without_a_database_is_left_as_it_is(call: Call, command: str, tmp_path: Path) -> None:
    done = call(*command.split())
    assert done.code == 7
    assert f"There is no database in {tmp_path / '.headrace'} yet: `headrace up` makes one." in done.complaint
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
async def stranger(server: TestServer, migrated: Place) -> AsyncIterator[str]:
    """The address of the database as a user who may connect and nothing else."""
    name = migrated.name.replace("headrace_test", "headrace_stranger")
    await server.run(f"CREATE ROLE {name}")
    yield server.url(migrated.name, role=name)
    await server.run(f"DROP ROLE {name}")


@pytest.mark.parametrize("command", ["api", "migrate", "migrate --status", "admin create"])
def test_a_user_without_rights(call: Call, stranger: str, command: str) -> None:
    done = call(*command.split(), settings={**CHEAP, **SECRET_KEY, "HEADRACE_DATABASE_URL": stranger})
    assert done.code == 5
    assert "GRANT headrace_app TO" in done.complaint


@pytest.mark.parametrize("command", ["up", "migrate"])  # an API waits for it
def test_the_real_program_says_no_more(command: str, nobody_there: str, tmp_path: Path) -> None:
    """The tests above run in this process; here nothing of ours is between the program and what it prints."""
    settings = {**SECRET_KEY, "HEADRACE_DATABASE_URL": nobody_there}
    done = run_program(command, folder=tmp_path, settings=settings)
    assert (done.code, done.out) == (7, "")
    assert "cannot be reached" in done.complaint


@pytest.mark.parametrize("command", ["up", "tasks list", "doctor"])
def test_a_file_where_the_data_folder_should_be(call: Call, command: str, tmp_path: Path) -> None:
    (tmp_path / ".headrace").touch()
    done = call(*command.split())
    assert "is a file, and the data folder should be there: move it" in (
        done.out if command == "doctor" else done.complaint
    )
    assert done.code == (1 if command == "doctor" else 7)


def test_whoever_only_looks_makes_no_data_folder(call: Call, tmp_path: Path) -> None:
    done = call("doctor")
    assert ".headrace is not there yet: `headrace up` makes it" in done.out
    assert list(tmp_path.iterdir()) == []
