"""All groups together, and reading them: the environment, files of secrets, the file, the defaults."""

import difflib
import os
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    TomlConfigSettingsSource,
)

from headrace.errors import Invalid
from headrace.settings.accounts import AccountsSettings
from headrace.settings.api import ApiSettings
from headrace.settings.audit import AuditSettings
from headrace.settings.database import DatabaseSettings
from headrace.settings.embedded_postgres import EmbeddedPostgresSettings
from headrace.settings.files import FilesSettings
from headrace.settings.general import GeneralSettings
from headrace.settings.kinds import PREFIX
from headrace.settings.metrics import MetricsSettings
from headrace.settings.payments import PaymentsSettings
from headrace.settings.relay import RelaySettings
from headrace.settings.removal import RemovalSettings
from headrace.settings.retention import RetentionSettings
from headrace.settings.scheduler import SchedulerSettings
from headrace.settings.users import UserCapSettings
from headrace.settings.webhooks import WebhookSettings
from headrace.settings.worker import WorkerSettings

# Names with the prefix that are not settings: where the files lie, and what the tests and scripts use.
_NOT_SETTINGS = re.compile(r"HEADRACE_(CONFIG|SECRETS_DIR|URL|API_KEY|LOCK_FENCE|LOCK_TOKEN|TEST_\w+|SETUP_\w+)")


class BadSettings(Invalid):
    """A setting is wrong."""

    code = "bad_settings"


# The last section of the page first: of several bases pydantic takes the fields of the last one first.
class Settings(
    RetentionSettings,
    PaymentsSettings,
    RemovalSettings,
    FilesSettings,
    AuditSettings,
    UserCapSettings,
    AccountsSettings,
    MetricsSettings,
    WebhookSettings,
    RelaySettings,
    SchedulerSettings,
    WorkerSettings,
    ApiSettings,
    EmbeddedPostgresSettings,
    DatabaseSettings,
    GeneralSettings,
):
    """What a deployment can choose."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        secrets = os.environ.get(f"{PREFIX}SECRETS_DIR")
        files = [SecretsSettingsSource(settings_cls, secrets_dir=secrets)] if secrets else []
        return init_settings, env_settings, *files, TomlConfigSettingsSource(settings_cls, config_file())


def config_file() -> Path:
    """The TOML file that settings come from; it need not exist unless it was named."""
    return Path(os.environ.get(f"{PREFIX}CONFIG") or "headrace.toml")


def load(**overrides: object) -> Settings:
    """Read the settings, or raise ``BadSettings`` with one line for each thing to mend."""
    named = os.environ.get(f"{PREFIX}CONFIG")
    if named and not Path(named).is_file():
        raise BadSettings(f"HEADRACE_CONFIG names {named}, and there is no such file.")
    secrets = os.environ.get(f"{PREFIX}SECRETS_DIR")
    if secrets and not Path(secrets).is_dir():
        raise BadSettings(f"HEADRACE_SECRETS_DIR names {secrets}, and there is no such folder.")
    unknown = [
        name
        for name in os.environ
        if name.startswith(PREFIX)
        and not _NOT_SETTINGS.fullmatch(name)
        and name.removeprefix(PREFIX).lower() not in Settings.model_fields
    ]
    if unknown:
        raise BadSettings("; ".join(f"{name} is not a setting{_did_you_mean(name)}" for name in sorted(unknown)))
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as exc:
        raise BadSettings("; ".join(_explain(error) for error in exc.errors())) from None
    except ValueError as exc:  # the TOML file cannot be read
        raise BadSettings(f"{config_file()} is not valid TOML: {exc}") from None


def _did_you_mean(name: str) -> str:
    close = difflib.get_close_matches(name.removeprefix(PREFIX).lower(), Settings.model_fields, n=1, cutoff=0.7)
    return f" (did you mean {PREFIX}{close[0].upper()}?)" if close else " (docs/reference/settings.md lists them all)"


def _explain(error: Any) -> str:
    # The value is left out: it may be a secret in the wrong place.
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{where} in {config_file()} is not a setting{_did_you_mean(f'{PREFIX}{where.upper()}')}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{PREFIX}{where.upper()}: {message}" if where else message
