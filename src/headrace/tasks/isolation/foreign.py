"""A program of the system that has to read a stranger's file, with nothing but one folder:
``python -P -m headrace.tasks.isolation.foreign FOLDER PROGRAM [ARGUMENT…]``.

Gives up what ``sandbox.confine_program`` takes, sets limits that cannot be raised again, and becomes the program. Where
the kernel cannot confine it, it is not run: the exit status is ``CANNOT_CONFINE``.
"""

import os
import resource
import sys

from headrace.tasks.isolation import sandbox

CANNOT_CONFINE = 78  # EX_CONFIG
_LIMITS = {
    resource.RLIMIT_AS: 4 * 1024**3,
    resource.RLIMIT_CPU: 300,
    resource.RLIMIT_FSIZE: 1024**3,
    resource.RLIMIT_NOFILE: 512,
    resource.RLIMIT_CORE: 0,
}


def main() -> None:
    folder, *command = sys.argv[1:]
    for kind, most in _LIMITS.items():
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))
    missing = sandbox.confine_program(folder)
    if {"files", "network"} & set(missing):
        sys.exit(CANNOT_CONFINE)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
