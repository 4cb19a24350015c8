"""Settings of every process: the data folder, the secret, the log."""

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import SecretStr, model_validator

from headrace.settings.kinds import Group, setting


class GeneralSettings(Group):
    title: ClassVar[str] = "General"

    data_dir: Path = setting(
        "The one folder that `headrace up` writes to: the embedded PostgreSQL, stored files, the secret key.",
        Path(".headrace"),
    )
    secret_key: SecretStr | None = setting(
        "Signs cursors and CSRF tokens and encrypts stored secrets; at least 32 characters, the same for all processes "
        "of one deployment. `headrace up` makes one in the data folder; everything else needs it set: "
        "`openssl rand -hex 32`.",
        None,
    )
    log_format: Literal["auto", "human", "json"] = setting(
        "`human` for people, `json` for machines; `auto` is `human` on a terminal. With `json`, every line "
        "that a role writes to standard error is a JSON object.",
        "auto",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting("The minimum log level.", "INFO")

    @model_validator(mode="after")
    def _check_secret_key(self) -> Self:
        if self.secret_key is not None and len(self.secret_key.get_secret_value()) < 32:
            raise ValueError("secret_key must have at least 32 characters: `openssl rand -hex 32` makes one")
        return self
