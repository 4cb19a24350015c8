"""Making the cluster: its data folder, its roles and passwords, and the configuration beside it."""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.embedded_postgres import files
from headrace.embedded_postgres.account import Account, become
from headrace.embedded_postgres.binaries import Binaries
from headrace.embedded_postgres.errors import DidNotStart, DiskFull, FolderUnusable, SettingRefused
from headrace.embedded_postgres.model import APP, DATABASE, OWNER, SUPERUSER, Layout

_WORK = "cluster.new."

# Ours: changing one of them would make the launcher lose its server.
_RESERVED = frozenset(
    {
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "include",
        "include_dir",
        "include_if_exists",
        "listen_addresses",
        "port",
        "unix_socket_directories",
        "unix_socket_permissions",
    }
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The passwords of the three roles."""

    superuser: str
    owner: str
    app: str


def read_credentials(layout: Layout) -> Credentials:
    """Read the passwords. Raises FolderUnusable; what the file holds is not shown."""
    try:
        words = Credentials(**json.loads(layout.credentials.read_text()))
    except FileNotFoundError:  # it was there when the server started
        raise FolderUnusable(
            f"{layout.credentials} is gone: stop all of Headrace here and start it again, which makes new passwords for"
            " the embedded PostgreSQL; the data stays",
            folder=layout.home,
        ) from None
    except (ValueError, TypeError):
        words = None
    if words is None or not all(isinstance(word, str) and word for word in asdict(words).values()):
        raise FolderUnusable(
            f"{layout.credentials} is damaged: stop all of Headrace here, delete this file and start again, which makes"
            " new passwords for the embedded PostgreSQL; the data stays",
            folder=layout.home,
        )
    return words


def data_major(layout: Layout) -> int | None:
    """Give the major version that wrote the data, or None when there is no data yet. Raises FolderUnusable.

    A link is refused: root changes the owner of its target, and the owner of the folder could have any file given away.
    """
    if layout.cluster.is_symlink():
        raise FolderUnusable(
            f"{layout.cluster} is a link: name the data folder where it really is", folder=layout.cluster
        )
    try:
        text = (layout.cluster / "PG_VERSION").read_text()
    except FileNotFoundError:
        if layout.cluster.exists() and any(layout.cluster.iterdir()):
            raise _unusable(layout) from None
        return None
    try:
        return int(text.strip())
    except ValueError:
        raise _unusable(layout) from None


def _unusable(layout: Layout) -> FolderUnusable:
    return FolderUnusable(
        f"{layout.cluster} holds files but no PostgreSQL data: move them away, or restore the data from a backup",
        folder=layout.cluster,
    )


def make(
    layout: Layout,
    binaries: Binaries,
    account: Account | None,
    *,
    settings: Mapping[str, str],
    keep_open: int,
) -> None:
    """Make the data folder with its roles and the database, whole or not at all.

    It grows under another name and is renamed when it is complete and on the disk. Only one may do this at a time (the
    caller holds the server lock, ``keep_open``, which the children inherit: should this process be killed, the next one
    waits for them to end). Raises DiskFull, DidNotStart.
    """
    for left_over in layout.home.glob(f"{_WORK}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        # An empty folder by that name (a fresh volume); data_major has refused a full one.
        layout.cluster.rmdir()
    words = _new_credentials(layout)
    work = layout.home / f"{_WORK}{os.getpid()}"
    work.mkdir(mode=0o700)
    try:
        _fill(work, binaries, account, words, layout, keep_open, durable=settings.get("fsync") != "off")
        (work / "data").rename(layout.cluster)
        files.sync_folder(layout.home)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fill(
    work: Path,
    binaries: Binaries,
    account: Account | None,
    words: Credentials,
    layout: Layout,
    keep_open: int,
    *,
    durable: bool,
) -> None:
    password_file = work / "password"
    files.write(password_file, words.superuser + "\n")
    if account is not None:
        os.chown(password_file, account.uid, account.gid)
        os.chown(work, account.uid, account.gid)
    data = work / "data"
    # A locale that is everywhere and sorts by code point. Newer versions bring one that also knows letters beyond
    # ASCII for upper() and lower().
    locale = ["--locale=C"]
    if binaries.major >= 17:
        locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    # Nothing is synced while it is written: once at the end is several times faster and as safe, because the folder
    # gets its name only afterwards.
    initdb: list[str | Path] = [binaries.bin / "initdb", "-D", data]
    _run(
        [
            *initdb,
            f"--username={SUPERUSER}",
            "--encoding=UTF8",
            *locale,
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--data-checksums",
            "--no-sync",
            "--no-instructions",
        ],
        layout,
        account,
        keep_open,
    )
    _alone(data, _CREATE_ROLES.format(**asdict(words)), layout, binaries, account, keep_open)
    if durable:
        _run([*initdb, "--sync-only"], layout, account, keep_open)


# In single-user mode a statement ends with a semicolon and an empty line. The passwords are URL-safe: no quotes.
_CREATE_ROLES = f"""\
CREATE ROLE {OWNER} LOGIN PASSWORD '{{owner}}';

CREATE ROLE {APP} LOGIN PASSWORD '{{app}}';

CREATE DATABASE {DATABASE} OWNER {OWNER};

"""

_SET_PASSWORDS = f"""\
ALTER ROLE {SUPERUSER} PASSWORD '{{superuser}}';

ALTER ROLE {OWNER} PASSWORD '{{owner}}';

ALTER ROLE {APP} PASSWORD '{{app}}';

"""


def replace_credentials(layout: Layout, binaries: Binaries, account: Account | None, *, keep_open: int) -> None:
    """Give the roles new passwords, when the file with the old ones was lost. The server must not run."""
    words = _random_credentials()
    _alone(layout.cluster, _SET_PASSWORDS.format(**asdict(words)), layout, binaries, account, keep_open)
    files.write(layout.credentials, json.dumps(asdict(words), indent=2) + "\n", durable=True)


def _new_credentials(layout: Layout) -> Credentials:
    words = _random_credentials()
    files.write(layout.credentials, json.dumps(asdict(words), indent=2) + "\n", durable=True)
    return words


def _random_credentials() -> Credentials:
    return Credentials(*(secrets.token_urlsafe(24) for _ in range(3)))


def _alone(data: Path, sql: str, layout: Layout, binaries: Binaries, account: Account | None, keep_open: int) -> None:
    """Run SQL in single-user mode: no port is open and no password is asked, so no client can connect meanwhile."""
    options = ["-F", "-j", "-c", "exit_on_error=on", "-c", "log_checkpoints=off"]
    # Nothing that fails may put a password into an error's text.
    options += ["-c", "log_min_error_statement=panic"]
    _run(
        [binaries.bin / "postgres", "--single", "-D", data, *options, "postgres"],
        layout,
        account,
        keep_open,
        sql,
    )


def _run(
    command: Sequence[str | Path], layout: Layout, account: Account | None, keep_open: int, given: str = ""
) -> None:
    ran = subprocess.run(
        [str(word) for word in command],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment(),
        cwd="/",
        preexec_fn=become(account),
        pass_fds=(keep_open,),
        check=False,
    )
    if ran.returncode != 0:
        raise failure(layout, ran.stdout.splitlines(), f"{Path(command[0]).name} failed")


def environment() -> dict[str, str]:
    """Give the environment for PostgreSQL's programs: English messages, and none of the caller's PG* variables."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def failure(layout: Layout, output: Sequence[str], what: str) -> DidNotStart | DiskFull:
    """Give the error for the output of a program of PostgreSQL that failed."""
    if any("No space left on device" in line or "Disk quota exceeded" in line for line in output):
        return files.disk_full(layout.home)
    telling = [line.strip() for line in output if line.strip()]
    return DidNotStart(
        f"{what}: {' | '.join(telling[-6:]) or 'it said nothing'} (the logs are in {layout.home})",
        log=telling,
    )


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings that are no settings or are ours to decide. Raises SettingRefused."""
    for name, value in settings.items():
        if not re.fullmatch(r"[a-z_][a-z0-9_.]*", name) or name in _RESERVED or re.search(r"[\0\r\n]", value):
            raise SettingRefused(f"the PostgreSQL setting {name!r} cannot be given here: leave it out", name=name)


def write_configuration(layout: Layout, *, port: int, settings: Mapping[str, str]) -> None:
    """Write postgresql.conf and pg_hba.conf, beside the cluster: what root writes must not lie in another's folder."""
    ours = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        # Relative to the cluster, where the server stands: no trouble with long paths or odd characters.
        "unix_socket_directories": "." if layout.socket_dir() else "",
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "shared_buffers": f"{_shared_megabytes()}MB",
        "max_wal_size": "2GB",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "logging_collector": "on",
        "log_directory": "log",
        "log_filename": "postgresql-%a.log",  # one for each day of the week, each overwritten after a week
        "log_truncate_on_rotation": "on",
        "log_rotation_age": "1d",
        "log_rotation_size": "0",
        "log_line_prefix": "%m [%p] %q%u@%d ",
        "log_checkpoints": "off",
        **settings,
    }
    lines = [f"{name} = {_quoted(value)}" for name, value in ours.items()]
    files.write(layout.conf, "\n".join([_CONF_HEAD, *lines, ""]), mode=0o644)
    files.write(layout.hba, _HBA, mode=0o644)


# initdb found out what this machine can do and wrote it into the cluster; a person may have added to it.
_CONF_HEAD = """\
# Written by Headrace at each start: add your own lines to cluster/postgresql.conf; those below win over it.
include 'cluster/postgresql.conf'"""

_HBA = """\
# Written by Headrace at each start. Passwords only, and only from this machine.
local  all  all                scram-sha-256
host   all  all  127.0.0.1/32  scram-sha-256
"""


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _shared_megabytes() -> int:
    """Give an eighth of the memory, within bounds: enough for the queue's hot rows, harmless beside other programs."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(max(memory // 8 // 1024**2, 64), 512)
