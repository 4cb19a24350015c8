"""Passwords, as commands are given them: never on the command line, where everybody on the machine can read them."""

import getpass
import sys

from headrace.errors import Invalid


def read_password(prompt: str = "Password: ") -> str:
    password = getpass.getpass(prompt) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    # Nothing is not "make one up": an empty file or a failed command before the pipe must not change a password.
    if not password:
        raise Invalid("There is no password on standard input: its first line is empty.")
    return password
