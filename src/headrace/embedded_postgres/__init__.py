"""A PostgreSQL of our own, without installing one: started with the first user, stopped with the last.

    with attach(EmbeddedConfig(data_dir=Path(".headrace/postgres"))) as server:
        ...  # server.app_url

Why it is made the way it is: docs/why/embedded-postgres.md.
"""

from headrace.embedded_postgres.model import EmbeddedConfig
from headrace.embedded_postgres.service import Server, attach, is_made, is_running

__all__ = ["EmbeddedConfig", "Server", "attach", "is_made", "is_running"]
