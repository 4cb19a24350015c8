"""Sealing and signing of the audit trail."""

from datetime import timedelta
from typing import ClassVar

from pydantic import SecretStr

from headrace.settings.kinds import Duration, Group, Words, setting


class AuditSettings(Group):
    title: ClassVar[str] = "Audit"

    audit_seal_interval: Duration = setting(
        "How often new events of the audit trail are sealed; changes of sealed events are detected.",
        timedelta(minutes=5),
    )
    audit_signing_key: SecretStr | None = setting(
        "Signs every seal (Ed25519): 32 bytes in base64, `openssl rand -base64 32` makes them. Store it where the "
        "database's owner cannot read it. Unset, seals are chained but not signed.",
        None,
    )
    audit_trusted_keys: Words = setting(
        "Public keys that signed older seals, separated by commas; `headrace audit key` prints the present one.",
        (),
    )
