"""The database and the data folder of the settings. Commands load this without the rest of the product."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace import embedded_postgres, logs
from headrace.assembly.waiting import until_reachable
from headrace.database import Database, DatabaseConfig
from headrace.embedded_postgres import files
from headrace.errors import HeadraceError, Unavailable
from headrace.settings import Settings

Report = Callable[[str], None]
"""Shows the current step; the next one takes its place."""
Notify = Callable[[str], None]
"""Shows the operator a message that stays on the screen."""


class DataFolderClosed(Unavailable):
    """The data folder cannot be written to."""

    code = "data_folder_closed"


class DatabaseMissing(Unavailable):
    """There is no database here yet."""

    code = "database_missing"


def _note(message: str) -> None:
    logs.write("process.note", message, level="info")


@dataclass(frozen=True, slots=True)
class Deployment:
    """The database of this deployment: as the application, and as the owner of its schema."""

    app: DatabaseConfig
    owner: DatabaseConfig
    embedded: bool
    superuser: DatabaseConfig | None = None  # of the embedded server
    notify: Notify = field(default=_note, kw_only=True)

    @property
    def administrator(self) -> DatabaseConfig:
        """A user with the right to create roles: the embedded server's superuser, or the owner."""
        return self.owner if self.superuser is None else self.superuser

    async def connect(self, config: DatabaseConfig) -> Database:
        """A pool of connections, as soon as the database answers."""
        return await until_reachable(lambda: Database.connect(config), notify=self.notify)


@contextmanager
def database_of(
    chosen: Settings, *, role: str, report: Report, make: bool = False, notify: Notify = _note
) -> Iterator[Deployment]:
    """The database that the settings name; without one the embedded PostgreSQL, started if need be.

    Only who says ``make`` gets a new one: a command in the wrong folder shall not leave a database there.
    """
    if chosen.database_url is not None:
        app_url = chosen.database_url.get_secret_value()
        owner_url = chosen.database_owner_url.get_secret_value() if chosen.database_owner_url else app_url
        yield replace(_deployment(chosen, role, app_url, owner_url, embedded=False), notify=notify)
        return
    config = embedded_postgres.EmbeddedConfig(
        data_dir=chosen.data_dir.resolve(),
        binaries=chosen.postgres_binaries,
        port=chosen.postgres_port,
        run_as=chosen.postgres_run_as,
    )
    if make:
        data_folder(chosen)
    elif not _is_made(chosen, config):
        raise DatabaseMissing(
            f"There is no database in {config.data_dir} yet: `headrace up` makes one. If yours is elsewhere, go to its"
            " folder, set HEADRACE_DATA_DIR, or HEADRACE_DATABASE_URL."
        )
    with embedded_postgres.attach(config, report=report) as server:
        deployment = _deployment(chosen, role, server.app_url, server.owner_url, embedded=True)
        yield replace(deployment, superuser=replace(deployment.owner, url=server.url_for_superuser), notify=notify)


def _is_made(chosen: Settings, config: embedded_postgres.EmbeddedConfig) -> bool:
    """Whether there is a database in the data folder; ``DataFolderClosed`` where it cannot be determined."""
    try:
        if embedded_postgres.is_made(config):
            return True
        is_readable = not config.data_dir.is_dir() or os.access(config.data_dir, os.R_OK | os.X_OK)
        is_file = config.data_dir.exists() and not config.data_dir.is_dir()
    except PermissionError:
        is_readable, is_file = False, False
    if not is_readable:
        raise DataFolderClosed(
            f"The data folder {config.data_dir} cannot be read: mend its rights, or set HEADRACE_DATA_DIR."
        )
    if is_file:
        data_folder(chosen)  # says what is wrong with it
    return False


def _deployment(chosen: Settings, role: str, app_url: str, owner_url: str, *, embedded: bool) -> Deployment:
    def config(url: str, *, pooled: bool) -> DatabaseConfig:
        return DatabaseConfig(
            url=url,
            role=role,
            pool_min=chosen.database_pool_min,
            pool_max=chosen.database_pool_max,
            connect_timeout=chosen.database_connect_timeout,
            statement_timeout=chosen.database_statement_timeout,
            pooled=pooled,
        )

    pooled = chosen.database_pooled and not embedded
    # An address of its own for the owner is the server's: what migrates needs a connection that stays the same.
    return Deployment(
        config(app_url, pooled=pooled), config(owner_url, pooled=pooled and owner_url == app_url), embedded
    )


def data_folder(chosen: Settings) -> Path:
    """Make the data folder, out of reach of git whatever the project's ignore file says.

    What root makes here belongs to the owner of the folder above: a first `sudo` must not lock them out.
    """
    folder = chosen.data_dir.resolve()
    try:
        if folder.exists() and not folder.is_dir():
            raise DataFolderClosed(
                f"{folder} is a file, and the data folder should be there: move it, or set HEADRACE_DATA_DIR."
            )
        if not folder.exists():
            files.make_home(folder)
            files.write(folder / ".gitignore", "*\n", mode=0o644)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise DataFolderClosed(
                f"The data folder {folder} is not writable by this user: change its permissions, or set "
                "HEADRACE_DATA_DIR."
            )
    except DataFolderClosed:
        raise
    except (OSError, HeadraceError) as exc:
        cause = exc if isinstance(exc, OSError) else exc.__cause__
        why = cause.strerror if isinstance(cause, OSError) else "not writable"
        raise DataFolderClosed(
            f"The data folder {folder} cannot be made ({why}): mend its rights, or set HEADRACE_DATA_DIR."
        ) from exc
    return folder


def secret_file(chosen: Settings) -> Path:
    """Where the deployment's secret is kept, unless the settings have it."""
    return chosen.data_dir / "secret.key"
