"""How many connections to PostgreSQL a process opens at most: pools of the parts it has, and what stands beside them.

docs/howto/own-postgres.md has the same as a table, and the deployments in ``deploy`` are held against it.
"""

from datetime import timedelta
from typing import Literal

from headrace.settings import Settings

Role = Literal["api", "worker", "scheduler", "relay"]

# A process that is frozen in a transaction must not keep its rows from the others for long.
FROZEN_FOR = timedelta(seconds=10)

MAINTENANCE_POOL = 4
SCHEDULER_POOL = 3
RELAY_POOL = 6
OWN_TASKS_POOL = 6  # of `headrace up`
METRICS_POOL = 1

# Listeners and heartbeats have connections of their own.
_API_LISTENERS = 2  # configs, notifications
_WORKER_EXTRAS = 1  # its heartbeat, which listens as well
_SCHEDULER_LISTENERS = 1
_RELAY_LISTENERS = 2  # events, webhooks
_BROKER_LISTENERS = 1
_RETIRING = 1  # a month on its way into the archive


def most_connections(role: Role, chosen: Settings) -> int:
    """Of one process."""
    own = chosen.database_pool_max
    metrics = METRICS_POOL if chosen.metrics_port is not None else 0
    match role:
        case "api":  # its figures are read from its own pool
            return own + MAINTENANCE_POOL + _API_LISTENERS
        case "worker":
            return own + _WORKER_EXTRAS + _RETIRING + metrics
        case "scheduler":
            return SCHEDULER_POOL + _SCHEDULER_LISTENERS + MAINTENANCE_POOL + metrics
        case "relay":
            broker = _BROKER_LISTENERS if chosen.nats_url is not None else 0
            return RELAY_POOL + _RELAY_LISTENERS + broker + metrics
