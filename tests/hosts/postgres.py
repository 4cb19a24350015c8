"""A primary and its replica, on hosts of their own."""

import shutil
import time
from pathlib import Path

from tests.hosts.network import Host

BINARIES = Path("/usr/lib/postgresql/15/bin")
USER = "postgres"
SETTINGS = """
listen_addresses = '*'
fsync = off
wal_level = replica
hot_standby = on
max_connections = 100
"""


class Postgres:
    """One server. Its programs run in its host's network."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self._folder = folder
        self._data = folder / f"data-{host.namespace}"

    def _run(self, program: str, *words: str | Path) -> str:
        return self.host.run(BINARIES / program, *words, user=USER)

    def begin(self) -> None:
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", USER)
        (self._data / "postgresql.auto.conf").write_text(SETTINGS + f"unix_socket_directories = '{self._folder}'\n")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all trust\nhost replication all all trust\n")
        self._start()

    def follow(self, primary: "Postgres") -> None:
        self._run(
            "pg_basebackup",
            "-h",
            primary.host.address,
            "-p",
            str(primary.port),
            "-U",
            USER,
            "-D",
            self._data,
            "-R",
            "-X",
            "stream",
        )
        self._start()

    def _start(self) -> None:
        # A port of its own for the socket: all hosts share the file system.
        port = 5400 + int(self.host.address.rpartition(".")[2])
        log = self._folder / f"{self.host.namespace}-postgres.log"
        self._run("pg_ctl", "-D", self._data, "-l", log, "-w", "-o", f"-p {port}", "start")
        self.port = port

    def sql(self, statement: str) -> str:
        return self._run("psql", "-h", self.host.address, "-p", str(self.port), "-U", USER, "-XAtc", statement).strip()

    def promote(self) -> float:
        """Make this replica the primary; gives how long it took."""
        began = time.monotonic()
        self._run("pg_ctl", "-D", self._data, "-w", "promote")
        return time.monotonic() - began

    def end(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")
        shutil.rmtree(self._data)

    @property
    def place(self) -> str:
        return f"{self.host.address}:{self.port}"
