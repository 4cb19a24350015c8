"""Combines all groups and reads them: environment, files of secrets, TOML file, defaults."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headrace.errors import Invalid
from headrace.settings.accounts import AccountsSettings
from headrace.settings.api import ApiSettings
from headrace.settings.audit import AuditSettings
from headrace.settings.database import DatabaseSettings
from headrace.settings.embedded_postgres import EmbeddedPostgresSettings
from headrace.settings.files import FilesSettings
from headrace.settings.general import GeneralSettings
from headrace.settings.kinds import PREFIX
from headrace.settings.mail import MailSettings
from headrace.settings.metrics import MetricsSettings
from headrace.settings.payments import PaymentsSettings
from headrace.settings.relay import RelaySettings
from headrace.settings.removal import RemovalSettings
from headrace.settings.retention import RetentionSettings
from headrace.settings.scheduler import SchedulerSettings
from headrace.settings.users import UserCapSettings
from headrace.settings.webhooks import WebhookSettings
from headrace.settings.worker import WorkerSettings

# Names with the prefix that are not settings: paths of files, and variables of tests and scripts.
_NOT_SETTINGS = re.compile(
    r"HEADRACE_(CONFIG|SECRETS_DIR|URL|API_KEY|PROFILE|LOCK_FENCE|LOCK_TOKEN|TEST_\w+|SETUP_\w+)"
)


class BadSettings(Invalid):
    """A setting is wrong."""

    code = "bad_settings"


# In reverse order of the page: pydantic orders the fields of several bases from last to first.
class Settings(
    RetentionSettings,
    PaymentsSettings,
    RemovalSettings,
    FilesSettings,
    AuditSettings,
    UserCapSettings,
    MailSettings,
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
    """All settings of a deployment."""


def config_file() -> Path:
    """The TOML file of settings; it must exist only if it was named."""
    return Path(os.environ.get(f"{PREFIX}CONFIG") or "headrace.toml")


def load(**overrides: object) -> Settings:
    """Read the settings, or raise ``BadSettings`` with one line for each fault."""
    named = os.environ.get(f"{PREFIX}CONFIG")
    if named and not Path(named).is_file():
        raise BadSettings(f"HEADRACE_CONFIG names {named}, and there is no such file.")
    secrets = os.environ.get(f"{PREFIX}SECRETS_DIR")
    if secrets and not Path(secrets).is_dir():
        raise BadSettings(f"HEADRACE_SECRETS_DIR names {secrets}, and there is no such folder.")
    overrides = {**_from_file(), **(_from_folder(Path(secrets)) if secrets else {}), **_from_variables(), **overrides}
    try:
        return Settings.model_validate(overrides)
    except ValidationError as exc:
        raise BadSettings("; ".join(_explain(error) for error in exc.errors())) from None


def _from_variables() -> dict[str, object]:
    given = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and not _NOT_SETTINGS.fullmatch(name)
    }
    unknown = [name for name in given if _setting(name) not in Settings.model_fields]
    if unknown:
        raise BadSettings("; ".join(f"{name} is not a setting{_did_you_mean(name)}" for name in sorted(unknown)))
    return {_setting(name): value for name, value in given.items()}


def _from_folder(folder: Path) -> dict[str, object]:
    """A file for each secret, as Docker and Kubernetes mount them; files of other programs are left alone."""
    try:
        files = {_setting(file.name.upper()): file for file in folder.iterdir() if file.is_file()}
        return {name: file.read_text("utf-8").strip() for name, file in files.items() if name in Settings.model_fields}
    except (OSError, UnicodeDecodeError) as exc:
        raise BadSettings(f"A file in HEADRACE_SECRETS_DIR ({folder}) cannot be read: {exc}") from None


def _from_file() -> dict[str, object]:
    file = config_file()
    try:
        return tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}
    except OSError as exc:
        raise BadSettings(f"{file} cannot be read: {exc.strerror}.") from None
    except ValueError as exc:
        raise BadSettings(f"{file} is not valid TOML: {exc}") from None


def _setting(variable: str) -> str:
    """``api_port`` for ``HEADRACE_API_PORT``; nothing for a name without the prefix."""
    return variable[len(PREFIX) :].lower() if variable.startswith(PREFIX) else ""


def _did_you_mean(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name.removeprefix(PREFIX).lower(), Settings.model_fields, n=1, cutoff=0.7)
    return f" (did you mean {PREFIX}{close[0].upper()}?)" if close else " (docs/reference/settings.md lists them all)"


def _explain(error: Any) -> str:
    # Without the value, which may be a misplaced secret.
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{where} in {config_file()} is not a setting{_did_you_mean(f'{PREFIX}{where.upper()}')}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{PREFIX}{where.upper()}: {message}" if where else message
