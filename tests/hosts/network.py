"""Hosts on one machine: network namespaces on a bridge of their own, in which the real programs run."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PREFIX = "10.213.77"


def why_not() -> str | None:
    """Why there can be no hosts here; None if there can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    if shutil.which("ip") is None:
        return "ip is not installed: apt-get install iproute2"
    name = f"hr-{uuid.uuid4().hex[:8]}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode != 0:
        return "this kernel makes no network namespaces"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Host:
    """A network namespace with one address."""

    def __init__(self, namespace: str, address: str, folder: Path) -> None:
        self.namespace = namespace
        self.address = address
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def command(self, words: Sequence[str | Path], user: str | None = None) -> list[str]:
        become = [] if user is None else ["runuser", "-u", user, "--"]
        return ["ip", "netns", "exec", self.namespace, *become, *map(str, words)]

    def run(self, *words: str | Path, user: str | None = None, env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            self.command(words, user),
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=self.folder,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *words: str | Path, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{self.namespace}.log").open("ab") as log:
            process = subprocess.Popen(self.command(words), env=env, stdout=log, stderr=log, cwd=self.folder)
        self.started.append(process)
        return process

    def cut_off(self) -> None:
        """Drop what this host sends, without a word to anybody: a pulled cable, a firewall, no power."""
        _ip("-n", self.namespace, "rule", "add", "blackhole", "from", "all", "pref", "1")

    def reconnect(self) -> None:
        _ip("-n", self.namespace, "rule", "del", "blackhole", "from", "all", "pref", "1")

    def logs(self) -> str:
        return (self.folder / f"{self.namespace}.log").read_text()[-4000:]

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


@contextmanager
def hosts(folder: Path, count: int) -> Iterator[list[Host]]:
    """So many hosts that reach each other and nothing else; everything in them ends with it."""
    own = uuid.uuid4().hex[:6]
    hub = f"hr-{own}-hub"
    made: list[Host] = []
    _ip("netns", "add", hub)
    try:
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for number in range(1, count + 1):
            namespace, address = f"hr-{own}-{number}", f"{PREFIX}.{number}"
            _ip("netns", "add", namespace)
            made.append(Host(namespace, address, folder))
            _ip(
                "link", "add", "uplink", "netns", namespace, "type", "veth", "peer", "name", f"to{number}", "netns", hub
            )
            _ip("-n", namespace, "address", "add", f"{address}/24", "dev", "uplink")
            for link in ("lo", "uplink"):
                _ip("-n", namespace, "link", "set", link, "up")
            _ip("-n", hub, "link", "set", f"to{number}", "master", "bridge", "up")
        yield made
    finally:
        for host in made:
            host.end()
            subprocess.run(["ip", "netns", "del", host.namespace], check=False)
        subprocess.run(["ip", "netns", "del", hub], check=False)
