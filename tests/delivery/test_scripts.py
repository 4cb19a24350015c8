"""The scripts of the pipeline, with stand-ins for docker, ssh and curl that write down what they are told."""  # D-09

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.delivery import ROOT

FILES = "--file compose.yml --file compose.prod.yml"
OLD, NEW = "registry.example/headrace:old", "registry.example/headrace:new"


class Server:
    """A folder with the stand-ins on its PATH. What each was called with is in ``calls``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.journal = folder / "calls"
        self.journal.touch()
        self.stand_in("docker", 'echo "docker $* image=${IMAGE:-}" >> "$JOURNAL"; exit 0')
        self.stand_in("curl", 'echo "curl" >> "$JOURNAL"; exit 0')

    def stand_in(self, name: str, script: str) -> None:
        path = self.bin / name
        # Where the API answers is asked again and again, and changes nothing: it is not written down.
        asked = 'case "$*" in *" port api 8080") echo 127.0.0.1:8081; exit 0;; esac\n' if name == "docker" else ""
        path.write_text(f"#!/bin/sh\n{asked}{script}\n")
        path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.journal.read_text().splitlines()

    def run(self, *command: object, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "JOURNAL": str(self.journal),
        }
        return subprocess.run(
            [str(part) for part in command],
            input=stdin, capture_output=True, text=True, check=False, env=environment | variables, cwd=self.folder,
            timeout=120,
        )  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Server:
    made = Server(tmp_path / "server")
    for source in ("compose.yml", "compose.staging.yml", "compose.prod.yml", "ci/lib", "ci/rollout"):
        target = made.folder / Path(source).name
        target.write_bytes((ROOT / "deploy" / source).read_bytes())
        target.chmod(0o755)
    return made


def roll_out(
    server: Server, image: str = NEW, stage: str = "prod", **variables: str
) -> subprocess.CompletedProcess[str]:
    quick = {"READY_WITHIN": "1", "READY_EVERY": "0.1"}
    return server.run(server.folder / "rollout", stage, image, **quick | variables)


def test_a_rollout_pulls_starts_and_checks(server: Server) -> None:
    ran = roll_out(server)
    assert ran.returncode == 0, ran.stderr
    assert server.calls == [
        f"docker compose {FILES} config --quiet image={NEW}",
        f"docker pull {NEW} image=",
        f"docker pull {NEW}-media image=",
        f"docker compose {FILES} up --detach --no-build --remove-orphans image={NEW}",
        "curl",
    ]
    assert (server.folder / ".image").read_text().strip() == NEW


@pytest.mark.parametrize("place", ["variable", ".env"])
def test_one_image_of_your_own_is_pulled_once(server: Server, place: str) -> None:
    if place == ".env":
        (server.folder / ".env").write_text("MEDIA_SUFFIX=\n")
    ran = roll_out(server, **({"MEDIA_SUFFIX": ""} if place == "variable" else {}))
    assert ran.returncode == 0, ran.stderr
    assert [call.split(" image=")[0] for call in server.calls if " pull " in call] == [f"docker pull {NEW}"]


def test_the_api_is_asked_at_the_port_that_docker_gave_it(server: Server) -> None:
    server.stand_in("curl", 'echo "$*" >> "$JOURNAL"')
    ran = roll_out(server)
    assert ran.returncode == 0, ran.stderr
    assert server.calls[-1].endswith(" http://127.0.0.1:8081/readyz")


@pytest.mark.parametrize(
    "failing",
    [
        'echo "docker $* image=${IMAGE:-}" >> "$JOURNAL"; case "$*$IMAGE" in *up*new) exit 1;; esac',
        None,
    ],
    ids=["does not start", "is never ready"],
)
def test_what_fails_is_rolled_back(server: Server, failing: str | None) -> None:
    (server.folder / ".image").write_text(OLD + "\n")
    if failing:
        server.stand_in("docker", failing)
    else:
        server.stand_in("curl", f'grep -q "up .*image={OLD}" "$JOURNAL"')
    ran = roll_out(server)
    assert ran.returncode == 1
    assert f"{NEW} failed and {OLD} runs again" in ran.stderr
    assert server.calls[-2 if failing else -1].endswith(f"image={OLD}")
    assert (server.folder / ".image").read_text().strip() == OLD


def test_a_first_rollout_that_fails_says_that_there_is_no_way_back(server: Server) -> None:
    server.stand_in("curl", "exit 22")
    ran = roll_out(server)
    assert ran.returncode == 1
    assert "no previous image" in ran.stderr
    assert not (server.folder / ".image").exists()


def test_when_neither_is_ready_it_says_so(server: Server) -> None:
    (server.folder / ".image").write_text(OLD)
    server.stand_in("curl", "exit 22")
    ran = roll_out(server)
    assert ran.returncode == 1
    assert f"neither {NEW} nor {OLD}" in ran.stderr


def test_an_image_that_cannot_be_pulled_changes_nothing(server: Server) -> None:
    (server.folder / ".image").write_text(OLD)
    server.stand_in("docker", 'echo "docker $*" >> "$JOURNAL"; [ "$1" != pull ]')
    assert roll_out(server).returncode != 0
    assert server.calls[1:] == [f"docker pull {NEW}"]


def test_a_variable_that_is_missing_on_the_server_changes_nothing(server: Server) -> None:
    server.stand_in("docker", 'echo "docker $*" >> "$JOURNAL"; case "$*" in *config*) exit 15;; esac')
    ran = roll_out(server)
    assert ran.returncode == 1
    assert f"set what is missing in {server.folder}/.env: docs/howto/containers.md" in ran.stderr
    assert len(server.calls) == 1


def test_a_token_is_used_for_one_pull_and_stays_nowhere_on_the_server(server: Server) -> None:
    server.stand_in("docker", REGISTRY)
    quick = {"READY_WITHIN": "1", "REGISTRY": "registry.example", "REGISTRY_USER": "bot"}
    ran = server.run(server.folder / "rollout", "prod", NEW, **quick, stdin="token-of-the-job")
    assert ran.returncode == 0, ran.stderr
    assert server.calls[1:4] == [
        "docker login registry.example --username bot --password-stdin",
        f"docker pull {NEW}",
        f"docker pull {NEW}-media",
    ]
    assert server.journal.with_suffix(".token").read_text() == "token-of-the-job"
    assert not Path(server.journal.with_suffix(".config").read_text().strip()).exists()
    left = [path for path in server.folder.rglob("*") if path.is_file() and path.suffix != ".token"]
    assert not any("token-of-the-job" in path.read_text() for path in left)


CONNECTION = {
    "STAGE": "staging",
    "IMAGE": "registry.example/headrace",
    "REVISION": "0123abc",
    "HOST": "staging.example",
    "SSH_USER": "deployer",
    "SSH_KEY": "-----BEGIN KEY-----\nsecret\n-----END KEY-----",
    "KNOWN_HOSTS": "staging.example ssh-ed25519 AAAA",
}
# A shell on this machine: what would happen on the server happens in a folder.
SSH = """
while [ "$1" != "deployer@staging.example" ]; do
  if [ "$1" = -i ]; then stat -c "key %a" "$2" >> "$JOURNAL"; fi
  shift
done
shift
exec sh -c "$*"
"""
REGISTRY = """
echo "docker $*" >> "$JOURNAL"
if [ "$1" = login ]; then
  tee "$DOCKER_CONFIG/given" > "$JOURNAL.token"
  echo "$DOCKER_CONFIG" > "$JOURNAL.config"
fi
"""


def test_a_deployment_sends_its_files_and_rolls_out_on_the_server(tmp_path: Path) -> None:
    server = Server(tmp_path / "server")
    target = tmp_path / "opt"
    server.stand_in("ssh", SSH)
    ran = server.run(ROOT / "deploy" / "ci" / "deploy", **CONNECTION, DEPLOY_FOLDER=str(target), READY_WITHIN="5")
    assert ran.returncode == 0, ran.stderr
    assert {path.name for path in target.iterdir()} >= {
        "compose.yml",
        "compose.staging.yml",
        "rollout",
        "lib",
        ".image",
    }
    assert "compose.prod.yml" not in {path.name for path in target.iterdir()}
    assert server.calls[0] == "key 600"
    assert any(call.startswith("docker pull registry.example/headrace:0123abc ") for call in server.calls)
    assert "secret" not in ran.stdout + ran.stderr + "".join(server.calls)


def test_a_deployment_hands_its_token_to_the_server_and_the_image_has_a_name_that_registries_take(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path / "server")
    server.stand_in("ssh", SSH.replace("shift\nexec", 'shift\necho "ssh $*" >> "$JOURNAL"\nexec'))
    server.stand_in("docker", REGISTRY)
    chosen = {
        "IMAGE": "registry.example/Some-Owner/headrace",
        "READY_WITHIN": "5",
        "DEPLOY_FOLDER": str(tmp_path / "o"),
    }
    login = {"REGISTRY": "registry.example", "REGISTRY_USER": "Some-Owner", "REGISTRY_TOKEN": "token-of-the-job"}
    ran = server.run(ROOT / "deploy" / "ci" / "deploy", **CONNECTION | chosen | login)
    assert ran.returncode == 0, ran.stderr
    assert "docker login registry.example --username Some-Owner --password-stdin" in server.calls
    assert "docker pull registry.example/some-owner/headrace:0123abc" in server.calls
    assert server.journal.with_suffix(".token").read_text() == "token-of-the-job"
    assert "token-of-the-job" not in ran.stdout + ran.stderr + "".join(server.calls)


@pytest.mark.parametrize(
    "wrong",
    [
        {"KNOWN_HOSTS": ""},
        {"SSH_KEY": ""},
        {"STAGE": "everywhere"},
        {"REVISION": "a; rm -rf /"},
        {"DEPLOY_FOLDER": "/opt/$(id)"},
        {"REGISTRY_TOKEN": "t", "REGISTRY": "registry.example", "REGISTRY_USER": "a; id"},
        {"REGISTRY_TOKEN": "t", "REGISTRY_USER": "bot"},
    ],
    ids=lambda wrong: " ".join(wrong),
)
def test_a_deployment_that_lacks_something_connects_to_nobody(tmp_path: Path, wrong: dict[str, str]) -> None:
    server = Server(tmp_path / "server")
    server.stand_in("ssh", 'echo ssh >> "$JOURNAL"')
    ran = server.run(ROOT / "deploy" / "ci" / "deploy", **CONNECTION | wrong)
    assert ran.returncode == 1
    assert server.calls == []


def test_pushing_gives_the_token_on_standard_input_and_leaves_no_login_behind(tmp_path: Path) -> None:
    server = Server(tmp_path / "server")
    server.stand_in("docker", REGISTRY)
    chosen = {"IMAGE": "registry.example/Bot/headrace", "REVISION": "0123abc", "REGISTRY": "registry.example"}
    login = {"REGISTRY_USER": "bot", "REGISTRY_TOKEN": "token-of-the-bot"}
    ran = server.run(ROOT / "deploy" / "ci" / "push-image", **chosen, **login)
    assert ran.returncode == 0, ran.stderr
    assert server.calls == [
        "docker login registry.example --username bot --password-stdin",
        "docker push registry.example/bot/headrace:0123abc",
        "docker push registry.example/bot/headrace:0123abc-media",
    ]
    assert not Path(server.journal.with_suffix(".config").read_text().strip()).exists()


def test_an_image_is_made_of_one_wheel(tmp_path: Path) -> None:
    server = Server(tmp_path / "server")
    for source in ("deploy/ci/build-image", "deploy/ci/lib"):
        target = tmp_path / "clone" / source
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / source).read_bytes())
        target.chmod(target.stat().st_mode | stat.S_IXUSR)
    build = tmp_path / "clone" / "deploy" / "ci" / "build-image"
    chosen = {"IMAGE": "registry.example/Headrace", "REVISION": "0123abc"}
    assert server.run(build, **chosen).returncode == 1
    wheel = tmp_path / "clone" / "dist" / "headrace-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    assert server.run(build, **chosen).returncode == 0
    assert server.calls[0].startswith(
        "docker build --build-arg REVISION=0123abc --target base --tag registry.example/headrace:0123abc ."
    )
    assert server.calls[1].startswith(
        "docker build --build-arg REVISION=0123abc --target media --tag registry.example/headrace:0123abc-media ."
    )
    wheel.with_name("headrace-0.2.0-py3-none-any.whl").touch()
    assert server.run(build, **chosen).returncode == 1


def test_the_test_of_the_image_says_that_it_takes_root(server: Server) -> None:
    server.stand_in("id", "echo 1000")
    ran = server.run(ROOT / "scripts" / "image-test")
    assert ran.returncode == 0, ran.stderr
    assert "nothing was tried: it takes root" in ran.stderr
    assert server.calls == []


# -- retries


def test_at_most_two_failed_tests_are_retried_and_each_is_named(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for folder in ("scripts", ".venv/bin", ".pytest_cache/v/cache"):
        (clone / folder).mkdir(parents=True)
    shutil.copy(ROOT / "scripts/test-again", clone / "scripts")
    python = clone / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\n[ "$1" = - ] && exec {sys.executable} -\necho "$*"\nexit "$RESULT"\n')
    python.chmod(0o755)

    def retry(*failed: str, result: int = 0) -> subprocess.CompletedProcess[str]:
        (clone / ".pytest_cache/v/cache/lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
        command, variables = [clone / "scripts/test-again"], os.environ | {"RESULT": str(result)}
        return subprocess.run(command, capture_output=True, text=True, env=variables, check=False, timeout=60)

    two = retry("tests/test_a.py::test_a[with a space]", "tests/test_a.py::test_b")
    assert (two.returncode, "--last-failed" in two.stdout) == (0, True)
    assert [line.rpartition("mend it: ")[2] for line in two.stderr.splitlines()] == [
        "tests/test_a.py::test_a[with a space]", "tests/test_a.py::test_b"
    ]  # fmt: skip
    assert retry("tests/test_a.py::test_a", result=1).returncode == 1
    three = retry("one", "two", "three")
    assert (three.returncode, three.stdout) == (1, "")
    assert {"one", "two", "three"} <= set(three.stderr.split())
    assert retry().returncode == 1
