"""The operating system account of this process, for the audit trail."""

import os
import pwd


def local_account() -> str:
    """The account's name by its uid: variables such as ``LOGNAME`` can be set to anything."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in containers a uid may have no name
        return f"uid {os.getuid()}"
