"""The account of the server, and how root hands it over.

PostgreSQL refuses to run as root. An ordinary user runs the server as itself and nothing here applies. Root gives it
to an ordinary account, and if that account cannot reach the folder (``/root`` and ``mktemp -d`` are closed to others)
lets it keep the one capability that is needed to walk there. docs/why/embedded-postgres.md tells the whole story.
"""

import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.embedded_postgres.errors import AccountUnknown, PrivilegesMissing
from headrace.embedded_postgres.model import Layout

if TYPE_CHECKING:
    import ctypes

# From linux/capability.h, linux/prctl.h and linux/securebits.h.
_DAC_OVERRIDE = 1
_DAC_READ_SEARCH = 2
_PR_CAPBSET_READ = 23
_PR_SET_SECUREBITS = 28
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True, slots=True)
class Account:
    """The ordinary user that the server runs as, and the capability that it keeps, if it needs one."""

    uid: int
    gid: int
    name: str
    capability: int | None = None


def choose(layout: Layout, *, run_as: str | None) -> Account | None:
    """Give the account that root hands the server to; None when we are not root and run it ourselves.

    In this order: the owner of existing data, ``run_as``, the owner of the data folder, ``postgres``, ``nobody``.
    Raises AccountUnknown.
    """
    if os.geteuid() != 0:
        if _by_uid(os.geteuid()) is None:
            raise AccountUnknown(
                f"the user id {os.geteuid()} has no name on this machine, which PostgreSQL insists on: add it to"
                " /etc/passwd, or use a PostgreSQL of your own through HEADRACE_DATABASE_URL"
            )
        return None
    requested = _by_name(run_as) if run_as else None
    if run_as and (requested is None or requested.uid == 0):
        raise AccountUnknown(
            f"the server cannot run as {run_as!r}: name an account of this machine that is not root",
            run_as=run_as,
        )
    owner = _by_uid(layout.cluster.lstat().st_uid) if layout.cluster.exists() else None
    if owner is not None and owner.uid != 0:
        if requested is not None and requested.uid != owner.uid:
            raise AccountUnknown(
                f"the data belongs to {owner.name}, so the server cannot run as {requested.name}: stop it and run"
                f" `chown -R {requested.name} '{layout.cluster}'`, or leave HEADRACE_POSTGRES_RUN_AS out",
                run_as=run_as,
            )
        return owner
    account = requested or _by_uid(layout.home.stat().st_uid)
    if account is None or account.uid == 0:
        account = _by_name("postgres") or _by_name("nobody")
    if account is None:
        raise AccountUnknown(
            "PostgreSQL does not run as root, and there is no account postgres or nobody: name an account in"
            " HEADRACE_POSTGRES_RUN_AS"
        )
    return account


def _by_name(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)


def _by_uid(uid: int) -> Account | None:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)


def take_over(cluster: Path, account: Account | None) -> None:
    """Give a cluster that root copied to the account: PostgreSQL insists that its folder is its own."""
    if account is None or cluster.lstat().st_uid != 0:
        return
    for folder, _, names in os.walk(cluster):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def with_reach(account: Account, *, home: Path, programs: list[Path]) -> Account:
    """Give the account with the least that lets it start the programs and enter the folder.

    Tried in earnest, because modes, access lists and mount options together decide it: first as it is, then with the
    right to read and search everywhere, then, where a container's bounding set lacks that one, with the right to
    ignore modes. Raises PrivilegesMissing when nothing helps.
    """
    refusal = _try(account, home, programs)
    if refusal is None:
        return account
    if sys.platform == "linux":
        for capability in (_DAC_READ_SEARCH, _DAC_OVERRIDE):
            able = replace(account, capability=capability)
            if _libc().prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1 and _try(able, home, programs) is None:
                return able
    raise PrivilegesMissing(
        f"the account {account.name} cannot reach {home} or {programs[0]} ({refusal}): move the project to a folder"
        " that others may enter, start as an ordinary user, or name an account that can in HEADRACE_POSTGRES_RUN_AS",
        account=account.name,
    )


def _try(account: Account, home: Path, programs: list[Path]) -> str | None:
    for program in programs:
        try:
            ran = subprocess.run(
                [program, "-V"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                preexec_fn=become(account, inside=home),
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as exc:
            return str(exc)
        if ran.returncode != 0:
            return ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else f"exit status {ran.returncode}"
    return None


def become(account: Account | None, *, inside: Path | None = None) -> Callable[[], None] | None:
    """Give what a child must do between fork and exec to be that account; None when there is nothing to do."""
    if account is None:
        return None
    if account.capability is not None:
        _libc()  # load it before the fork: the child should do as little as possible

    def enter() -> None:
        if account.capability is not None:
            # Keeps the capabilities over setuid. It also makes access(2), by which PostgreSQL checks its own
            # programs, count them: for other users that call otherwise looks at the plain modes alone.
            _check(_libc().prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0), "securebits")
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
        if account.capability is not None:
            _keep_only(account.capability)
        if inside is not None:
            os.chdir(inside)

    return enter


def _keep_only(capability: int) -> None:
    """Drop every capability but one, and raise that one so that it outlives exec."""
    import ctypes

    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Two words each of effective, permitted, inheritable; ours lie in the first word.
    mask = 1 << capability
    data = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    _check(_libc().capset(header, data), "capset")
    _check(_libc().prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability, 0, 0), "ambient")


def _check(result: int, what: str) -> None:
    if result != 0:
        import ctypes

        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")


@cache
def _libc() -> "ctypes.CDLL":
    # ctypes is slow to import, and only this rare path needs it.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return libc
