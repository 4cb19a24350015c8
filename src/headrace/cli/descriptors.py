"""How many files and connections this process may have open."""

import resource


def allow_descriptors(number: int) -> int:
    """Raise this process's limit of open files as far as permitted; gives the new limit. Never lowers it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return number
    allowed = number if hard == resource.RLIM_INFINITY else min(number, hard)
    # The usual 1024 is meant for programs that use select(); uvloop does not.
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
