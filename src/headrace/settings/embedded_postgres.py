"""The embedded PostgreSQL."""

from pathlib import Path
from typing import ClassVar

from headrace.settings.kinds import Group, Port, setting


class EmbeddedPostgresSettings(Group):
    title: ClassVar[str] = "Embedded PostgreSQL"

    postgres_binaries: Path | None = setting(
        "A folder with PostgreSQL's `bin`, to use instead of the binaries that come with the extra `embedded`.",
        None,
    )
    postgres_port: Port | None = setting("The port on 127.0.0.1. Unset, a free one is chosen once and kept.", None)
    postgres_run_as: str | None = setting(
        "The account that PostgreSQL runs as when Headrace is started by root. Unset, the data folder's owner if "
        "that is not root, else `postgres` if it exists, else `nobody`.",
        None,
    )
