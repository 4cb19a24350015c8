"""Renders settings for people."""

import re
from datetime import timedelta
from typing import get_args

from pydantic import BeforeValidator, ByteSize, SecretStr

from headrace.settings.kinds import FOREVER, PREFIX, UNITS, Group, keep
from headrace.settings.loading import Settings

_HIDDEN = "••••••"
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def shown(value: object) -> str | None:
    """A value as a person would write it; secrets are dots, also those inside a URL."""
    match value:
        case None:
            return None
        case SecretStr():
            return _HIDDEN
        case timedelta():
            seconds = value.total_seconds()
            unit = next((u for u in ("d", "h", "m", "s") if seconds % UNITS[u] == 0), "ms")
            return f"{seconds / UNITS[unit]:g}{unit}"
        case ByteSize():
            return value.human_readable(separator=" ")
        case tuple():
            return ",".join(filter(None, map(shown, value)))
        case _:
            return _CREDENTIALS.sub(f"//{_HIDDEN}@", str(value))


def shown_as(name: str, value: object) -> str | None:
    """The value of this setting as a person would write it; unlimited retention is ``forever``."""
    field = Settings.model_fields[name]
    kinds = [*field.metadata, *(each for kind in get_args(field.annotation) for each in get_args(kind))]
    keeps = any(isinstance(each, BeforeValidator) and each.func is keep for each in kinds)
    return FOREVER if value is None and keeps else shown(value)


def is_secret(name: str) -> bool:
    """Whether the value of this setting is never shown."""
    return SecretStr.__name__ in str(Settings.model_fields[name].annotation)


def groups() -> list[type[Group]]:
    """All groups, in the order of the page."""
    return [base for base in reversed(Settings.__bases__) if issubclass(base, Group)]


def reference_page() -> str:
    """Render ``docs/reference/settings.md``."""
    lines = [
        "# Settings",
        "",
        "<!-- Rendered from src/headrace/settings by `make docs`; edit there. -->",
        "",
        "Set each as an environment variable, or by its name in lower case without the prefix in `headrace.toml` (or "
        "the file that `HEADRACE_CONFIG` names). A secret may also be a file of its own, named like the variable in "
        "lower case, in the folder that `HEADRACE_SECRETS_DIR` names. Variables win over files. Durations are written "
        "`500ms`, `30s`, "
        "`15m`, `24h`, `7d`; sizes `64KiB`, `10MiB`; lists are separated by commas. Unknown names are refused. "
        "`headrace settings show` prints the effective values.",
    ]
    defaults = Settings()  # the renderer's own settings must not appear in the documentation
    for group in groups():
        lines += ["", f"## {group.title}", "", "| setting | default | meaning |", "|---|---|---|"]
        for name, field in group.model_fields.items():
            default = shown(getattr(defaults, name))
            lines.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else '–'} | {field.description} |")
    return "\n".join(lines) + "\n"
