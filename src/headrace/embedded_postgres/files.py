"""Writing the small files beside the cluster so that a reader finds the old text or the new, never half of one."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from headrace.embedded_postgres.errors import DiskFull, FolderNotWritable, FolderUnusable


def open_own(path: Path, flags: int) -> int:
    """Open one of our files, created if missing, for this user and the folder's owner only.

    If root runs this, new files are given to the owner of the folder, who must be able to open them later. Existing
    files keep their owner, and links are not followed: the owner could have put one there.
    """
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)
    _give_to_owner(fd, path.parent)
    return fd


def _give_to_owner(fd: int, folder: Path) -> None:
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(fd, owner.st_uid, owner.st_gid)


def write(path: Path, text: str, *, mode: int = 0o600, durable: bool = False) -> None:
    """Replace the file with this text in one step, owned by the owner of the folder."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, mode)  # whatever the umask says
            _give_to_owner(fd, path.parent)
            file.write(text.encode())
            file.flush()
            if durable:
                os.fsync(fd)
        new.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make renames in the folder outlive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def tail(path: Path, *, lines: int) -> list[str]:
    """Give the last lines of the file; none when it is not there.

    Follows no link: root reads files here that lie in another account's folder.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(fd, "rb") as file:
        file.seek(max(0, os.fstat(fd).st_size - 16_384))
        return file.read().decode(errors="replace").splitlines()[-lines:]


def make_home(home: Path) -> None:
    """Make the data folder if it does not exist, and make sure that we may write in it.

    Root makes it for the owner of the folder above, so that a first `sudo` does not lock that user out of it.
    """
    with naming_the_folder(home):
        missing: list[Path] = []
        above = home
        while not above.exists():
            missing.append(above)
            above = above.parent
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o755)
                if os.geteuid() == 0:
                    owner = folder.parent.stat()
                    os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)
        if not home.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(home))
    if not os.access(home, os.W_OK | os.X_OK):
        raise _not_writable(home)


@contextlib.contextmanager
def naming_the_folder(home: Path) -> Iterator[None]:
    """Turn a system error about files in the folder into an error with a remedy."""
    try:
        yield
    except OSError as exc:
        if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise _not_writable(home) from exc
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(home) from exc
        if exc.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise FolderUnusable(
                f"the file system of {home} has no locks: name a data folder on a local disk", folder=home
            ) from exc
        if exc.errno == errno.ENOTDIR:
            raise FolderUnusable(f"{home} is not a folder: remove it or name another data folder", folder=home) from exc
        raise


def _not_writable(home: Path) -> FolderNotWritable:
    return FolderNotWritable(
        f"the data folder {home} cannot be written by this user: give it to this user with chown, start as the user"
        " that made it, or name another data folder",
        folder=home,
    )


def disk_full(home: Path) -> DiskFull:
    """Give the error for a full disk."""
    return DiskFull(f"the disk that holds {home} is full: free some space and start again", folder=home)
