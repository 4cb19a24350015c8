"""Types that are in no program: as a part of the product declares them, in a module of its own."""

import ctypes
import os
import resource
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation.preloading import preloads
from headrace.tasks.registry import Registry

own = Registry()


@own.task("own", isolation="process", environment=("SHOP_WORD", "SHOP_SET=here", "SHOP_UNSET"))
def run_own(context: BlockingTaskContext, payload: Any) -> dict[str, Any]:
    shop = {name: value for name, value in os.environ.items() if name.startswith("SHOP_")}
    return {"pid": os.getpid(), "payload": payload, "shop": shop}


class Group:
    @staticmethod
    def static(_context: BlockingTaskContext, _payload: Any) -> str:
        return "static"

    @classmethod
    def of_class(cls, _context: BlockingTaskContext, _payload: Any) -> str:
        return cls.__name__

    def of_one(self, context: BlockingTaskContext, payload: Any) -> None: ...


def hidden(context: BlockingTaskContext, payload: Any) -> None: ...


registered_before = hidden


def hidden(context: BlockingTaskContext, payload: Any) -> None:  # type: ignore[no-redef]
    raise AssertionError("not the one that was registered")


shut_in = Registry()


@shut_in.task("shut_in", isolation="process", network=False, files=False)
def run_shut_in(context: BlockingTaskContext, payload: dict[str, str]) -> dict[str, Any]:
    (handed,) = context.descriptors
    with os.fdopen(handed, "r+b", closefd=False) as file:
        file.seek(0)  # the place in it is shared with whoever handed it over
        text = file.read().decode().rstrip("!")
        file.write(b"!")
    return {
        "handed": text,
        "descriptors": sorted(entry.name for entry in Path("/proc/self/fd").iterdir()),
        "has_landlock": ctypes.CDLL(None).syscall(444, None, 0, 1) >= 2,
        "read": _outcome(Path(payload["secret"]).read_text),
        "list": _outcome(lambda: list(Path(payload["folder"]).iterdir())),
        "write": _outcome(Path(payload["folder"], "new").touch),
        "run": _outcome(lambda: subprocess.run(["/bin/true"], check=False)),
        "reopen": _outcome(Path(f"/proc/self/fd/{handed}").read_text),
        "socket": _outcome(socket.socket),
        "fork": _outcome(_fork),
        "setsid": _outcome(os.setsid),
        "chmod": _outcome(lambda: Path(payload["secret"]).chmod(0o777)),
        "fchmod": _outcome(lambda: os.fchmod(handed, 0o777)),
        "chown": _outcome(lambda: os.chown(payload["secret"], 1, 1)),
        "utime": _outcome(lambda: os.utime(payload["secret"], (0, 0))),
        "chroot": _outcome(lambda: os.chroot(payload["folder"])),
        "setxattr": _outcome(lambda: os.setxattr(payload["secret"], "user.mark", b"x")),
        "setrlimit": _outcome(lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1))),
        "prlimit": _outcome(lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (50, 50))),
        "limits": [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)],
        "capabilities": sorted(
            {
                line.partition(":")[2].strip()
                for line in Path("/proc/self/status").read_text().splitlines()
                if line.startswith(("CapEff", "CapPrm", "CapBnd"))
            }
        )
        if os.getuid() == 0
        else ["0" * 16],
        "thread": _in_thread(),
    }


narrow = Registry()
narrow.task(
    "narrow", isolation="process", network=False, files=False, limits=ProcessLimits(open_files=20, file_bytes=4096)
)(run_shut_in)


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _in_thread() -> str:
    done: list[str] = []
    thread = threading.Thread(target=lambda: done.append("ran"))
    thread.start()
    thread.join()
    return done[0]


def _outcome(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except OSError as exc:
        return type(exc).__name__
    return None


prepared = Registry()
loaded: list[int] = []


def load() -> None:
    loaded.append(os.getpid())


@prepared.task("prepared", isolation="process")
@preloads(load)
def run_prepared(context: BlockingTaskContext, payload: Any) -> dict[str, Any]:
    return {"pid": os.getpid(), "loaded": loaded}
