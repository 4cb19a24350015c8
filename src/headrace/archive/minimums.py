"""How long months stay at least, for every role: the owner writes it, from the settings of ``headrace migrate``.

The application retires months with its own rights. A minimum that it could change would be none.
"""

from collections.abc import Mapping
from datetime import timedelta

from headrace import audit
from headrace.archive import store
from headrace.archive.model import Minimum
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import DatabaseConfig, Tx, connect_alone

Chosen = Mapping[str, timedelta | None]  # by setting; None keeps for ever

FIND_TABLE = "SELECT to_regclass('headrace.retention_minimums') IS NOT NULL"


async def declare(owner: DatabaseConfig, chosen: Chosen, who: Who) -> list[Minimum]:
    """Write the minimums of these settings; gives those that have changed. Other minimums stay as they are."""
    if not chosen:
        return []
    changed: list[Minimum] = []
    async with connect_alone(owner) as connection, connection.transaction():
        tx = Tx(connection)
        if not await tx.fetchval(FIND_TABLE):  # migrated in part
            return []
        await tx.execute("SET LOCAL ROLE headrace_owner")
        for before in await store.list_minimums(tx):
            if before.setting not in chosen or before.keep == chosen[before.setting]:
                continue
            now = Minimum(before.table_name, before.setting, chosen[before.setting])
            await store.set_minimum(tx, now)
            table = Resource(ResourceType.PARTITION, now.table_name, {"setting": now.setting})
            facts = {"keep_before": before.shown, "keep": now.shown}
            await audit.record(tx, who, Action.UPDATED, table, data=facts)
            changed.append(now)
    return changed


def script(chosen: Chosen) -> str:
    """The same as SQL, for administrators who apply changes by hand."""
    return "".join(
        f"UPDATE headrace.retention_minimums SET keep = {_literal(keep)}, set_at = now() "
        f"WHERE setting = '{setting}' AND keep IS DISTINCT FROM {_literal(keep)};\n"
        for setting, keep in sorted(chosen.items())
    )


def _literal(keep: timedelta | None) -> str:
    return "NULL" if keep is None else f"interval '{keep.days} days {keep.seconds} seconds'"
