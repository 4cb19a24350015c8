"""From settings to what operators are shown: findings, settings, checks of the trail."""

from headrace.admin.doctor import DoctorConfig
from headrace.admin.overview.model import ShownSetting
from headrace.admin.overview.service import Operators
from headrace.assembly.retention_settings import retention_config
from headrace.assembly.trail import audit_heads, trusted_keys
from headrace.audit.verifying import VerifyMode
from headrace.settings import PREFIX, Settings
from headrace.settings.rendering import groups, is_secret, shown_as


def doctor_config(chosen: Settings) -> DoctorConfig:
    return DoctorConfig(seal_interval=chosen.audit_seal_interval, retention=retention_config(chosen))


def operators(chosen: Settings) -> Operators:
    """What operators' routes work with."""
    against = VerifyMode(keys=trusted_keys(chosen), heads=audit_heads(chosen))
    return Operators(doctor=doctor_config(chosen), settings=shown_settings(chosen), trail=against)


def shown_settings(chosen: Settings) -> tuple[ShownSetting, ...]:
    """Every setting with its value in force; secrets only as set or unset."""
    return tuple(
        ShownSetting(
            name=f"{PREFIX}{name.upper()}",
            group=group.title,
            value=shown_as(name, getattr(chosen, name)),
            chosen=name in chosen.model_fields_set,
            secret=is_secret(name),
            description=field.description or "",
        )
        for group in groups()
        for name, field in group.model_fields.items()
    )
