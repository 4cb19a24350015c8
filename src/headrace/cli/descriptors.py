"""How many files and connections this process may have open."""

import resource


def allow_descriptors(number: int) -> int:
    """Let this process open so many files, as far as it may; gives how many it can. Never lowers what was allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return number
    allowed = number if hard == resource.RLIM_INFINITY else min(number, hard)
    # The usual 1024 is there for programs that use select(); uvloop does not.
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
