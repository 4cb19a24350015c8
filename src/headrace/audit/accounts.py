"""The account on this machine that a process runs as, for trails."""

import os
import pwd


def local_account() -> str:
    """Its name, by its number: variables such as ``LOGNAME`` say what anybody set them to."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in containers an account may have a number and no name
        return f"uid {os.getuid()}"
