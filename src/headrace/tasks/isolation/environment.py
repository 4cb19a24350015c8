"""The environment of child processes: the variables that programs need, without secrets.

Children decode untrusted files. They do not get the database's address, keys and other variables of the worker;
a type declares the further variables that it needs.
"""

import os
from collections.abc import Iterable, Mapping

ALLOWED = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TZDIR", "TMPDIR", "TMP", "TEMP",
        "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV",
        "PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONHASHSEED", "PYTHONWARNINGS",
        "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONNOUSERSITE", "PYTHONUSERBASE",
    }
)  # fmt: skip
_ALLOWED_PREFIX = "LC_"


def clean_environment(declared: Iterable[str] = (), source: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a child gets of ``source`` (by default this process's own environment).

    ``declared`` are a type's own: ``NAME`` passes a variable on, if it is set; ``NAME=value`` sets one.
    """
    own = os.environ if source is None else source
    env = {name: value for name, value in own.items() if name in ALLOWED or name.startswith(_ALLOWED_PREFIX)}
    for entry in declared:
        name, is_set, value = entry.partition("=")
        if is_set:
            env[name] = value
        elif name in own:
            env[name] = own[name]
    return env
