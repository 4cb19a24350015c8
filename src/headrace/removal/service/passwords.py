"""Passwords of documents: encrypted, and kept as long as their task needs them.

They are deleted in the transaction that ends it, by the database: ``tr_tasks_forget_password``.
"""

from headrace.database import Tx
from headrace.vault import Vault

PURPOSE = "removal.passwords"  # what the key is derived for

INSERT = "INSERT INTO headrace.removal_passwords (task_id, sealed) VALUES ($1, $2)"
FIND = "SELECT sealed FROM headrace.removal_passwords WHERE task_id = $1"


async def keep(tx: Tx, vault: Vault, task_id: str, password: str) -> None:
    await tx.execute(INSERT, task_id, vault.seal(password.encode(), binding=_binding(task_id)))


async def find(tx: Tx, task_id: str) -> str | None:
    """As it is stored: to be opened where it is needed."""
    sealed: str | None = await tx.fetchval(FIND, task_id)
    return sealed


def unseal(vault: Vault, task_id: str, sealed: str) -> str:
    """``SecretUnreadable`` if it was encrypted under another key, or for another task."""
    return vault.open(sealed, binding=_binding(task_id)).decode()


def _binding(task_id: str) -> bytes:
    return f"removal_passwords/{task_id}".encode()
