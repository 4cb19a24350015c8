"""What holds for the whole program: version, help, settings, completion and exit codes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import __version__, errors
from headrace.cli.app import COMMANDS
from headrace.cli.later import Later
from headrace.cli.output import EXIT_CODES, POOR_RESULT, exit_code
from headrace.settings import Settings
from tests.cli.conftest import Call
from tests.e2e.program import HEADRACE, environment, run_program

ROOT = Path(__file__).parents[2]
SECRETS = {
    "HEADRACE_SECRET_KEY": "swordfish-swordfish-swordfish-swordfish",
    "HEADRACE_DATABASE_URL": "postgresql://ada:swordfish@db.example/headrace",
    "HEADRACE_DATABASE_OWNER_URL": "postgresql://owner:swordfish@db.example/headrace",
    "HEADRACE_WECHAT_APP_ID": "wx1",
    "HEADRACE_WECHAT_APP_SECRET": "swordfish",
}


def test_the_version(call: Call) -> None:
    assert call("--version").out == f"headrace {__version__}\n"


@pytest.mark.parametrize("option", ["--url", "--key", "--profile"])
def test_an_option_before_the_command_is_refused_with_its_place(call: Call, option: str) -> None:
    done = call(option, "x", "tasks", "list")
    assert (done.code, f"{option} goes behind the command: headrace tasks list {option} …" in done.err) == (2, True), (
        done.err
    )


def test_the_module_and_the_script_are_the_same_program(tmp_path: Path) -> None:
    assert run_program("--version", folder=tmp_path).out == f"headrace {__version__}\n"
    script = Path(sys.executable).with_name("headrace")
    if script.exists():
        ran = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=False)
        assert ran.stdout == f"headrace {__version__}\n"


def test_help_names_every_command(call: Call) -> None:
    done = call("--help")
    assert done.code == 0
    for command in ("up", "api", "migrate", "doctor", "admin", "settings"):
        assert re.search(rf"\b{command}\b", done.out)
    assert call("-h").out == done.out


@pytest.mark.parametrize("words", [["dance"], ["migrate", "--sideways"], ["migrate", "--to", "soon"], ["api", "x"]])
def test_a_command_line_that_is_none(call: Call, words: list[str]) -> None:
    done = call(*words)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


@pytest.mark.parametrize("words", [["settings", "show"], ["settings", "show", "--json"]])
def test_settings_are_shown_without_their_secrets(call: Call, words: list[str]) -> None:
    done = call(*words, settings=SECRETS)
    assert done.code == 0
    assert "swordfish" not in done.out + done.err
    assert done.out.count("••••••") == 4


def test_settings_are_shown_whole_to_a_pipe(call: Call) -> None:
    proxies = ",".join(f"10.{number}.0.0/16" for number in range(40))
    done = call("settings", "show", settings={"HEADRACE_API_TRUSTED_PROXIES": proxies})
    rows = [line.split() for line in done.out.splitlines()[1:]]
    assert [row[0] for row in rows] == [f"HEADRACE_{name.upper()}" for name in Settings.model_fields]
    assert ["HEADRACE_API_TRUSTED_PROXIES", proxies, "set"] in rows
    assert ["HEADRACE_SESSION_LIFETIME", "30d", "default"] in rows
    shown = json.loads(call("settings", "show", "--json", settings={"HEADRACE_API_TRUSTED_PROXIES": proxies}).out)
    assert shown["api_trusted_proxies"] == proxies
    assert shown.keys() == Settings.model_fields.keys()


def test_the_file_counts_and_the_command_line_wins(call: Call, tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("api_port = 9000\n")
    assert json.loads(call("settings", "show", "--json").out)["api_port"] == "9000"
    done = call("settings", "show", "--json", settings={"HEADRACE_API_PORT": "9001"})
    assert json.loads(done.out)["api_port"] == "9001"


@pytest.fixture
def called_from(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Typer looks for a shell among our ancestors; tests may have been started by something else."""
    return lambda shell: monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "COMPREPLY"), ("zsh", "#compdef"), ("fish", "complete --command")]
)
def test_completion_prints_a_script_for_the_program_s_name(
    call: Call, called_from: Callable[[str], None], shell: str, word: str
) -> None:
    called_from(shell)
    done = call("--show-completion")
    assert done.code == 0
    assert word in done.out
    assert "_HEADRACE_COMPLETE" in done.out
    assert "python" not in done.out


def test_the_completion_script_is_one_that_bash_takes(call: Call, called_from: Callable[[str], None]) -> None:
    called_from("bash")
    script = call("--show-completion").out
    assert script
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_each_kind_of_error_has_the_exit_code_that_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    documented = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)}
    assert documented.keys() == {0, 1, POOR_RESULT, 130, *EXIT_CODES.values()}
    for kind, code in EXIT_CODES.items():
        assert documented[code] == (kind.__doc__ or "").partition("\n")[0]
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type)}
    for kind in kinds:
        if issubclass(kind, errors.HeadraceError) and kind is not errors.HeadraceError:
            assert exit_code(kind("x")) != 1, f"{kind.__name__} has no exit code of its own"


def test_a_reader_that_goes_away_is_not_complained_about(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [*HEADRACE, "settings", "show"],
            cwd=tmp_path,
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert ran.stderr == ""


def test_help_says_of_each_command_what_the_command_says_itself() -> None:
    """The lines are written where nothing has to be loaded for them; here they are held against the commands."""
    for name, entry in COMMANDS.items():
        loaded = Later(name, entry).loaded
        assert (loaded.name, loaded.help) == (name, entry.help)


def test_no_command_loads_what_only_some_need() -> None:
    script = """
import sys
from importlib import import_module
import headrace.cli.app
print(*sys.modules)
for name in "admin audit configs doctor locks migrate queues risks schedules settings submit tasks worker".split():
    import_module(f"headrace.cli.{name}")
print(*sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    for_help, for_all_but_servers = (set(line.split()) for line in ran.stdout.splitlines())
    assert not for_help & {"asyncio", "asyncpg", "pydantic", "structlog"}
    assert not for_all_but_servers & {"fastapi", "starlette", "httpx2", "jsonschema", "prometheus_client"}
