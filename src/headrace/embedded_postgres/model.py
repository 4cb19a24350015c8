"""The embedded PostgreSQL's options, the places of its files, and its state while it runs."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

DATABASE = "headrace"
SUPERUSER = "postgres"
OWNER = "headrace_owner"
APP = "headrace_app"

# A socket's path must fit in sockaddr_un with its closing zero byte.
_SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107


@dataclass(frozen=True, slots=True)
class EmbeddedConfig:
    """One embedded server: a folder and how to run it.

    ``binaries`` is a folder with ``initdb`` and ``postgres``, or one whose ``bin`` holds them; without it those of the
    installed wheel are used. ``port`` None takes a free one and keeps it. ``run_as`` matters only when started by
    root. ``settings`` are extra lines of postgresql.conf; they count from the next start of the server on.
    """

    data_dir: Path
    binaries: Path | None = None
    port: int | None = None
    run_as: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


class Layout(NamedTuple):
    """The files of one server. Only ``cluster`` belongs to the account that the server runs as."""

    home: Path

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data directory."""
        return self.home / "cluster"

    @property
    def credentials(self) -> Path:
        return self.home / "credentials.json"

    @property
    def state(self) -> Path:
        """The keeper's last report about the server."""
        return self.home / "state.json"

    @property
    def kept(self) -> Path:
        """The port, chosen once."""
        return self.home / "port"

    @property
    def conf(self) -> Path:
        return self.home / "postgresql.conf"

    @property
    def hba(self) -> Path:
        return self.home / "pg_hba.conf"

    @property
    def start_lock(self) -> Path:
        """Held while a process attaches or detaches, so that they do so one after the other."""
        return self.home / "start.lock"

    @property
    def users_lock(self) -> Path:
        """Held shared by every user, and alone by the keeper once it stops the server."""
        return self.home / "users.lock"

    @property
    def keeper_lock(self) -> Path:
        return self.home / "keeper.lock"

    @property
    def server_lock(self) -> Path:
        """Held by every process of the server, backends too: free means that nothing touches the data."""
        return self.home / "server.lock"

    @property
    def keeper_log(self) -> Path:
        return self.home / "keeper.log"

    @property
    def startup_log(self) -> Path:
        """What the server says before its own log is open."""
        return self.home / "startup.log"

    @property
    def name(self) -> str:
        """The cluster's name, seen in the title of each of its processes.

        Made from the path, so that a copied folder is another cluster.
        """
        return "headrace-" + hashlib.sha256(str(self.home).encode(errors="surrogateescape")).hexdigest()[:12]

    def socket_dir(self) -> Path | None:
        """The folder of the Unix socket, or None where its path would be too long for one."""
        longest = self.cluster / ".s.PGSQL.65535"
        fits = len(str(longest).encode(errors="surrogateescape")) <= _SOCKET_PATH_LIMIT
        return self.cluster if fits else None


class Phase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class State:
    """What the keeper tells of the server: the port holds as long as anyone is attached."""

    phase: Phase
    port: int = 0
    version: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a keeper needs to know; it travels on its command line, so no secret may be in it."""

    home: str
    binaries: list[str]
    prefer_first: bool
    port: int | None
    run_as: str | None
    settings: dict[str, str]
