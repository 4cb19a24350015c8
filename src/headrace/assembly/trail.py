"""From settings to the audit trail: the keys that sign it, and where its heads are kept."""

from headrace import settings
from headrace.archive.heads import FOLDER, heads_in
from headrace.assembly.retention_settings import archive_config
from headrace.audit import signing
from headrace.audit.heads import KeptHeads, find_foreign
from headrace.database import Database
from headrace.settings import Settings


def signing_key(chosen: Settings) -> signing.SigningKey | None:
    if chosen.audit_signing_key is None:
        return None
    return signing.SigningKey(_key("AUDIT_SIGNING_KEY", chosen.audit_signing_key.get_secret_value()))


def trusted_keys(chosen: Settings) -> frozenset[bytes]:
    """The public keys that may have signed the audit trail: the present one and those before."""
    own = signing_key(chosen)
    older = {_key("AUDIT_TRUSTED_KEYS", text) for text in chosen.audit_trusted_keys}
    return frozenset(older | ({own.public} if own else set()))


def audit_heads(chosen: Settings) -> KeptHeads | None:
    """Where the heads of the trail are kept: beside the archives. The folder is made only on request."""
    if chosen.archive_url is None and chosen.audit_signing_key is None and not chosen.data_dir.exists():
        return None
    return heads_in(archive_config(chosen))


async def lost_trail(chosen: Settings, db: Database) -> str | None:
    """What to say where the archive keeps heads of another database's audit trail; None if it does not."""
    kept = audit_heads(chosen)
    if kept is None:
        return None
    async with db.transaction(readonly=True) as tx:
        head = await find_foreign(tx, kept)
    if head is None:
        return None
    return (
        f"{kept.place} keeps {head.name} of an audit trail that this database does not have: the database was lost, or "
        "replaced by another. If it was lost, restore a backup (`headrace restore FILE --replace`); if not, move the "
        f"folder {FOLDER} elsewhere"
    )


def _key(name: str, text: str) -> bytes:
    try:
        return signing.read_key(text)
    except ValueError as exc:
        raise settings.BadSettings(f"{settings.PREFIX}{name}: {exc}") from None
