"""The process of guardian.py. It imports next to nothing, so that it is small and there at once."""

import os
import signal
import sys


def guard() -> None:
    """Keep the list of groups read from the input, and kill them when the input ends."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        change = groups.add if line.startswith("+") else groups.discard
        change(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:  # it is gone; the next may not be
            continue


if __name__ == "__main__":
    guard()
