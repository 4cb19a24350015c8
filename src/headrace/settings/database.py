"""The connection to PostgreSQL, and its timeouts."""

from datetime import timedelta
from typing import ClassVar, Self

from pydantic import PositiveInt, SecretStr, model_validator

from headrace.settings.kinds import Duration, Group, ServerTimeout, setting


class DatabaseSettings(Group):
    title: ClassVar[str] = "Database"

    database_url: SecretStr | None = setting(
        "`postgresql://user:password@host:port/database` of a PostgreSQL 15 or newer. The user should be a member of "
        "`headrace_app`. Unset, `headrace up` runs an embedded one.",
        None,
    )
    database_owner_url: SecretStr | None = setting(
        "The same database as a user who may change the schema (a member of `headrace_owner`), for `headrace migrate` "
        "and other commands that create tables. No long-running process needs it. Unset, the one above.",
        None,
    )
    database_pooled: bool = setting(
        "Whether `HEADRACE_DATABASE_URL` leads to a pooler in transaction mode, such as PgBouncer. Then no state is "
        "left on a connection, and notifications are not used; `HEADRACE_DATABASE_OWNER_URL` names the server "
        "itself.",
        False,
    )
    database_pool_min: PositiveInt = setting("Connections that each process keeps open.", 1)
    database_pool_max: PositiveInt = setting("The maximum number of connections of each process.", 10)
    database_connect_timeout: Duration = setting(
        "How long to wait for a connection, new or from the pool.", timedelta(seconds=5)
    )
    database_statement_timeout: ServerTimeout = setting(
        "How long a statement may run before PostgreSQL ends it.", timedelta(seconds=30)
    )
    database_migrate_lock_timeout: ServerTimeout = setting(
        "How long a migration goes on trying to lock a table that is in use, for 300 ms each time, before it gives up.",
        timedelta(seconds=5),
    )

    @model_validator(mode="after")
    def _check_database(self) -> Self:
        if self.database_pool_min > self.database_pool_max:
            raise ValueError("database_pool_min must not exceed database_pool_max")
        if self.database_owner_url is not None and self.database_url is None:
            raise ValueError("database_owner_url requires database_url: set both")
        return self
