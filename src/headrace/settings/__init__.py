"""Every setting, documented where it is defined: a module for each group, one group for a package.

Values come from ``HEADRACE_…`` environment variables, then from a TOML file (``headrace.toml`` in the working folder,
or the file that ``HEADRACE_CONFIG`` names), then from the defaults here. Unknown names are refused: a misspelt
setting must not silently use its default. ``headrace docs`` renders this package to ``docs/reference/settings.md``.

Only the edge (``cli``) reads settings; other packages receive values or small frozen configs.
"""

from headrace.settings.kinds import PREFIX, Duration
from headrace.settings.loading import BadSettings, Settings, config_file, load
from headrace.settings.rendering import reference_page, shown, shown_as

__all__ = [
    "PREFIX",
    "BadSettings",
    "Duration",
    "Settings",
    "config_file",
    "load",
    "reference_page",
    "shown",
    "shown_as",
]
