"""Every setting, documented where it is defined.

Values come from ``HEADRACE_…`` environment variables, then from a TOML file (``headrace.toml`` in the working folder,
or the file that ``HEADRACE_CONFIG`` names), then from the defaults here. Unknown names are refused: a typing error in a
setting must not pass for its default. ``headrace docs`` renders this module to ``docs/reference/settings.md``.

Only the edge (``cli``) reads settings; everything else is handed values or small frozen configs.
"""

import difflib
import os
import re
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ByteSize,
    Field,
    HttpUrl,
    PositiveInt,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from headrace.errors import Invalid

PREFIX = "HEADRACE_"
# Names with the prefix that are not settings: where the file lies, and what the tests and scripts use.
_NOT_SETTINGS = re.compile(r"HEADRACE_(CONFIG|LOCK_FENCE|LOCK_TOKEN|TEST_\w+|SETUP_\w+)")
FOREVER = "forever"
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")


class BadSettings(Invalid):
    """A setting is wrong."""

    code = "bad_settings"


def _duration(value: object) -> object:
    """Read ``500ms``, ``30s``, ``15m``, ``24h``, ``7d``, plain seconds, or ISO 8601."""
    if not isinstance(value, str) or value.startswith("P"):
        return value
    if match := _DURATION.fullmatch(value.strip()):
        try:
            return timedelta(seconds=float(match[1]) * _UNITS[match[2] or "s"])
        except OverflowError:
            raise ValueError("this is longer than any duration can be") from None
    raise ValueError("write a duration like 500ms, 30s, 15m, 24h or 7d")


def _comma_separated(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _keep(value: object) -> object:
    return None if value == FOREVER else _duration(value)


def _networks(value: object) -> object:
    parts = _comma_separated(value)
    return [ip_network(part) if isinstance(part, str) else part for part in parts] if isinstance(parts, list) else parts


Duration = Annotated[timedelta, BeforeValidator(_duration), Field(gt=timedelta(0))]
# PostgreSQL keeps its own in milliseconds of 32 bits: not quite 25 days.
ServerTimeout = Annotated[Duration, Field(le=timedelta(days=24))]
Keep = Annotated[Annotated[timedelta, Field(gt=timedelta(0))] | None, BeforeValidator(_keep)]
Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_comma_separated)]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(_networks)]
# None at all is a choice, too.
OptionalDuration = Annotated[timedelta, BeforeValidator(_duration), Field(ge=timedelta(0), le=timedelta(days=365))]
Port = Annotated[int, Field(ge=1, le=65535)]


def _setting(group: str, description: str, default: Any = ..., **limits: Any) -> Any:
    return Field(default, description=description, json_schema_extra={"group": group}, **limits)


class Settings(BaseSettings):
    """What a deployment can choose."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True
    )

    # -- General
    data_dir: Path = _setting(
        "General",
        "The one folder that `headrace up` writes to: the embedded PostgreSQL, stored files, the secret key.",
        Path(".headrace"),
    )
    secret_key: SecretStr | None = _setting(
        "General",
        "Signs cursors and CSRF tokens and encrypts stored secrets; at least 32 characters, the same for all processes "
        "of one deployment. `headrace up` makes one in the data folder; everything else needs it set: "
        "`openssl rand -hex 32`.",
        None,
    )
    log_format: Literal["auto", "human", "json"] = _setting(
        "General", "`human` for people, `json` for machines; `auto` picks by whether a terminal is there.", "auto"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = _setting(
        "General", "The least level that is logged.", "INFO"
    )

    # -- Database
    database_url: SecretStr | None = _setting(
        "Database",
        "`postgresql://user:password@host:port/database` of a PostgreSQL 15 or newer. The user should be a member of "
        "`headrace_app`. Unset, `headrace up` runs an embedded one.",
        None,
    )
    database_owner_url: SecretStr | None = _setting(
        "Database",
        "The same database as a user who may change the schema (a member of `headrace_owner`); `headrace migrate` uses "
        "it. Unset, the one above.",
        None,
    )
    database_pool_min: PositiveInt = _setting("Database", "Connections that each process keeps open.", 1)
    database_pool_max: PositiveInt = _setting("Database", "Connections that each process opens at the most.", 10)
    database_connect_timeout: Duration = _setting(
        "Database", "How long to wait for a connection, new or from the pool.", timedelta(seconds=5)
    )
    database_statement_timeout: ServerTimeout = _setting(
        "Database", "How long a statement may run before PostgreSQL ends it.", timedelta(seconds=30)
    )
    database_migrate_lock_timeout: ServerTimeout = _setting(
        "Database",
        "How long a migration waits for a table that is in use before it gives up, so that nobody queues up behind it.",
        timedelta(seconds=5),
    )

    # -- Embedded PostgreSQL
    postgres_binaries: Path | None = _setting(
        "Embedded PostgreSQL",
        "A folder with PostgreSQL's `bin`, to use instead of the binaries that come with the extra `embedded`.",
        None,
    )
    postgres_port: Port | None = _setting(
        "Embedded PostgreSQL", "The port on 127.0.0.1. Unset, a free one is chosen once and kept.", None
    )
    postgres_run_as: str | None = _setting(
        "Embedded PostgreSQL",
        "The account that PostgreSQL runs as when Headrace is started by root. Unset, the data folder's owner if "
        "that is not root, else `postgres` if it exists, else `nobody`.",
        None,
    )

    # -- API
    api_host: str = _setting("API", "The address to listen on; `0.0.0.0` or `::` for every one.", "127.0.0.1")
    api_port: Port = _setting("API", "The port to listen on.", 8080)
    api_public_url: HttpUrl | None = _setting(
        "API",
        "How people reach the API when a proxy stands before it: `https://…`. Cookies become Secure with https.",
        None,
    )
    api_trusted_proxies: Networks = _setting(
        "API",
        "Networks of your own proxies, separated by commas (`10.0.0.0/8,::1/128`). Only they are believed about a "
        "client's address, and only the rightmost hop that is not one of them.",
        (),
    )
    api_cors_origins: Words = _setting(
        "API",
        "Origins of browser applications elsewhere that may call the API, separated by commas. None by default.",
        (),
    )
    api_body_limit: ByteSize = _setting(
        "API", "The largest request body, for requests that do not upload a file.", "1MiB"
    )
    api_head_timeout: Duration = _setting(
        "API",
        "How long a client may take to send the head of a request: the first counts from when the connection was "
        "opened, each later one from its first byte. Sending slowly does not extend it.",
        timedelta(seconds=10),
    )
    api_keep_alive_timeout: Duration = _setting(
        "API",
        "How long a connection is kept open for the next request. Behind a proxy that reuses connections, longer than "
        "the proxy keeps them.",
        timedelta(seconds=15),
    )
    api_max_requests: PositiveInt = _setting(
        "API",
        "Requests that one process has under way at once; more get 503. `/healthz` and `/readyz` have some room of "
        "their own.",
        2_000,
    )
    api_max_connections: Annotated[int, Field(ge=16)] = _setting(
        "API",
        "Connections of one process, fewer if it may not have that many files open. When all are taken, the one that "
        "has been quiet for longest is closed for a new one.",
        10_000,
    )
    api_max_connections_per_address: PositiveInt = _setting(
        "API",
        "Connections from one address (of IPv6, from one /64); the networks of `HEADRACE_API_TRUSTED_PROXIES` are "
        "excepted. One more closes the one that has kept the server waiting for longest, or gets 429 while it works "
        "for all of them.",
        256,
    )
    api_shutdown_timeout: Duration = _setting(
        "API", "How long requests may take to end when the API is stopped.", timedelta(seconds=10)
    )
    api_rate_limit: PositiveInt = _setting(
        "API", "Requests a minute that one user, or one address that is not logged in, may make on average.", 600
    )
    api_rate_burst: PositiveInt = _setting("API", "Requests that may come at once before the average counts.", 120)
    idempotency_lifetime: Duration = _setting(
        "API", "How long the answer to a request with an `Idempotency-Key` is remembered.", timedelta(hours=24)
    )

    # -- Worker
    worker_concurrency: Annotated[int, Field(ge=1, le=10_000)] = _setting(
        "Worker", "Tasks that one worker process runs at the same time.", 50
    )
    worker_lease: Annotated[Duration, Field(ge=timedelta(seconds=1))] = _setting(
        "Worker",
        "How long a worker may be silent before its tasks are given to others; it beats three times as often. Shorter "
        "finds a dead worker sooner, longer forgives a paused machine.",
        timedelta(seconds=15),
    )
    worker_poll_interval: Duration = _setting(
        "Worker",
        "How often an idle worker looks for tasks and cancellations that no notification told it of.",
        timedelta(seconds=1),
    )
    worker_listen: bool = _setting(
        "Worker",
        "Whether workers listen for notifications. `false` polls only, for a database behind a transaction pooler.",
        True,
    )
    worker_shutdown_timeout: Duration = _setting(
        "Worker",
        "How long running tasks may go on when a worker is stopped; then they are interrupted, without losing an "
        "attempt, and another worker runs them again.",
        timedelta(seconds=30),
    )
    worker_scratch_dir: Path | None = _setting(
        "Worker", "Where tasks keep intermediate files. Unset, `scratch` in the data folder.", None
    )
    task_payload_limit: ByteSize = _setting(
        "Worker",
        "The largest payload of a task, as JSON. For `headrace.submit` in SQL: `ALTER DATABASE … SET "
        "headrace.payload_limit = 262144`.",
        "256KiB",
    )
    task_result_limit: ByteSize = _setting("Worker", "The largest result of a task, as JSON.", "256KiB")

    # -- Scheduler
    scheduler_poll_interval: Duration = _setting(
        "Scheduler",
        "The longest sleep of a scheduler. It wakes by itself when something is due, and by a notification when "
        "schedules change; this is for a notification that was lost.",
        timedelta(seconds=5),
    )
    scheduler_misfire_after: Annotated[Duration, Field(ge=timedelta(seconds=1))] = _setting(
        "Scheduler",
        "A due time that is later than this was missed, and what becomes of it is the schedule's `misfire_policy`. "
        "Less is lateness: then every due time runs.",
        timedelta(seconds=60),
    )
    scheduler_catch_up: PositiveInt = _setting(
        "Scheduler",
        "How many missed due times of a schedule with the policy `all` are made up for at the most.",
        1000,
    )

    task_type_lifetime: Keep = _setting(
        "Scheduler",
        "How long a task type counts as registered after a program last declared it, or a worker that has it was last "
        "alive. Schedules of other types are neither made, changed nor enabled. `forever` forgets none.",
        timedelta(days=7),
    )

    # -- Accounts
    registration: Literal["open", "closed"] = _setting(
        "Accounts", "Whether strangers may register. When closed, an admin makes accounts with the CLI.", "open"
    )
    session_lifetime: Duration = _setting("Accounts", "How long a login lasts at the most.", timedelta(days=30))
    session_idle_lifetime: Duration = _setting(
        "Accounts", "How long a login lasts without being used.", timedelta(days=7)
    )
    password_min_length: Annotated[int, Field(ge=8, le=128)] = _setting(
        "Accounts", "The fewest characters of a new password.", 10
    )
    argon2_time_cost: Annotated[int, Field(ge=1, le=20)] = _setting(
        "Accounts", "Argon2id passes. Changed parameters take effect for each user at the next login.", 3
    )
    argon2_memory: ByteSize = _setting("Accounts", "Argon2id memory for one password check.", "64MiB")
    argon2_parallelism: Annotated[int, Field(ge=1, le=64)] = _setting("Accounts", "Argon2id lanes.", 4)
    login_free_failures: PositiveInt = _setting(
        "Accounts",
        "Wrong passwords for one account before logging in is slowed down; ten times as many for one address, which "
        "may be a whole office.",
        5,
    )
    login_block_first: Duration = _setting(
        "Accounts", "The first pause after that; it doubles with each further failure.", timedelta(seconds=1)
    )
    login_block_max: Duration = _setting(
        "Accounts",
        "The longest pause: an attacker is slowed, and the owner is held up for no longer than this once the guessing "
        "ends. Where the owner logged in lately, pauses that others cause elsewhere do not count.",
        timedelta(minutes=5),
    )
    login_forget_after: Duration = _setting(
        "Accounts", "Failures are forgotten when none was added for this long.", timedelta(hours=1)
    )
    account_deletion_grace: OptionalDuration = _setting(
        "Accounts",
        "How long a user who asked for the end of their account can still change their mind; nobody can log in "
        "meanwhile. `0s` begins at once.",
        timedelta(days=7),
    )
    wechat_app_id: str | None = _setting("Accounts", "The mini-program's AppID; unset, WeChat login is off.", None)
    wechat_app_secret: SecretStr | None = _setting("Accounts", "The mini-program's AppSecret.", None)
    wechat_base_url: HttpUrl = _setting(
        "Accounts", "Where WeChat's server API answers.", HttpUrl("https://api.weixin.qq.com")
    )

    # -- Audit
    audit_seal_interval: Duration = _setting(
        "Audit",
        "How often new events of the audit trail are sealed: from then on a change to them is found.",
        timedelta(minutes=5),
    )
    audit_signing_key: SecretStr | None = _setting(
        "Audit",
        "Signs every seal (Ed25519): 32 bytes in base64, `openssl rand -base64 32` makes them. Keep it where whoever "
        "owns the database cannot read it. Unset, seals are chained but not signed.",
        None,
    )
    audit_trusted_keys: Words = _setting(
        "Audit",
        "Public keys that signed older seals, separated by commas; `headrace audit key` prints the present one.",
        (),
    )

    # -- Retention
    retention_audit: Keep = _setting(
        "Retention",
        "How long audit events stay in the database before their month goes to the archive. `forever` keeps them here; "
        "so it does in the settings below.",
        timedelta(days=180),
    )
    retention_deliveries: Keep = _setting(
        "Retention", "The same for webhook deliveries. A month with an open delivery stays.", timedelta(days=180)
    )
    retention_ledger: Keep = _setting(
        "Retention",
        "The same for the usage ledger. A month that explains an entitlement that has not ended stays.",
        timedelta(days=5 * 365),
    )
    retention_executions: Keep = _setting(
        "Retention", "How long ended runs of schedules are kept; then they are deleted.", timedelta(days=90)
    )
    retention_locks: Keep = _setting(
        "Retention", "How long released and expired locks are kept; then they are deleted.", timedelta(days=7)
    )
    retention_outbox: Keep = _setting(
        "Retention",
        "How long events that were published, or given up, are kept; then they are deleted.",
        timedelta(days=30),
    )
    retention_tasks: Keep = _setting(
        "Retention",
        "How long tasks that are over are kept, with their logs and steps; then they are deleted.",
        timedelta(days=90),
    )
    retention_workers: Keep = _setting(
        "Retention", "How long workers that have ended are kept; then they are deleted.", timedelta(days=7)
    )
    archive_url: str | None = _setting(
        "Retention",
        "Where retired months are kept: a folder, or `s3://bucket/prefix` of anything that speaks S3. Unset, `archive` "
        "in the data folder.",
        None,
    )
    archive_s3_endpoint: HttpUrl | None = _setting(
        "Retention", "Where the S3 service answers, if it is not Amazon's: `http://minio:9000`.", None
    )
    archive_s3_region: str | None = _setting("Retention", "The bucket's region. Unset, `AWS_REGION`.", None)
    archive_s3_access_key: SecretStr | None = _setting(
        "Retention", "The S3 access key. Unset, what `AWS_…` variables or the machine's own role say.", None
    )
    archive_s3_secret_key: SecretStr | None = _setting("Retention", "The S3 secret key, with the access key.", None)

    @model_validator(mode="after")
    def _agree_with_each_other(self) -> "Settings":
        if self.secret_key is not None and len(self.secret_key.get_secret_value()) < 32:
            raise ValueError("secret_key must have at least 32 characters: `openssl rand -hex 32` makes one")
        if self.database_pool_min > self.database_pool_max:
            raise ValueError("database_pool_min must not exceed database_pool_max")
        if self.database_owner_url is not None and self.database_url is None:
            raise ValueError("database_owner_url alone is not enough: set database_url, too")
        if self.login_block_first > self.login_block_max:
            raise ValueError("login_block_first must not exceed login_block_max")
        if self.argon2_memory < (least := 8 * 1024 * self.argon2_parallelism):
            raise ValueError(f"argon2_memory must be at least {least // 1024}KiB: 8KiB for each of argon2_parallelism")
        if (self.wechat_app_id is None) != (self.wechat_app_secret is None):
            raise ValueError("wechat_app_id and wechat_app_secret go together: set both or none")
        if (self.archive_s3_access_key is None) != (self.archive_s3_secret_key is None):
            raise ValueError("archive_s3_access_key and archive_s3_secret_key go together: set both or none")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, config_file())


def config_file() -> Path:
    """The TOML file that settings come from; it need not exist unless it was named."""
    return Path(os.environ.get(f"{PREFIX}CONFIG") or "headrace.toml")


def load(**overrides: object) -> Settings:
    """Read the settings, or raise ``BadSettings`` with one line for each thing to mend."""
    named = os.environ.get(f"{PREFIX}CONFIG")
    if named and not Path(named).is_file():
        raise BadSettings(f"HEADRACE_CONFIG names {named}, and there is no such file.")
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


def shown(value: object) -> str | None:
    """A value as a person would write it; a secret as dots."""
    match value:
        case None:
            return None
        case SecretStr():
            return "••••••"
        case timedelta():
            seconds = value.total_seconds()
            unit = next((u for u in ("d", "h", "m", "s") if seconds % _UNITS[u] == 0), "ms")
            return f"{seconds / _UNITS[unit]:g}{unit}"
        case ByteSize():
            return value.human_readable(separator=" ")
        case tuple():
            return ",".join(str(part) for part in value)
        case _:
            return str(value)


def shown_as(name: str, value: object) -> str | None:
    """The value of this setting as a person would write it: one that keeps rows says ``forever`` for no end."""
    keeps = any(
        isinstance(each, BeforeValidator) and each.func is _keep for each in Settings.model_fields[name].metadata
    )
    return FOREVER if value is None and keeps else shown(value)


def reference_page() -> str:
    """``docs/reference/settings.md``."""
    lines = [
        "# Settings",
        "",
        "<!-- Rendered from src/headrace/settings.py by `make docs`; edit there. -->",
        "",
        "Set each as an environment variable, or by its name in lower case without the prefix in `headrace.toml` (or "
        "the file that `HEADRACE_CONFIG` names). Variables win over the file. Durations are written `500ms`, `30s`, "
        "`15m`, `24h`, `7d`; sizes `64KiB`, `10MiB`; lists are separated by commas. Unknown names are refused. "
        "`headrace settings show` prints what is in force.",
    ]
    defaults = _Defaults()
    group = None
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        if extra["group"] != group:
            group = extra["group"]
            lines += ["", f"## {group}", "", "| setting | default | meaning |", "|---|---|---|"]
        default = shown(getattr(defaults, name))
        lines.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else '–'} | {field.description} |")
    return "\n".join(lines) + "\n"


class _Defaults(Settings):
    """Neither the environment nor a file: a reader's own settings must not get into the documentation."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)
