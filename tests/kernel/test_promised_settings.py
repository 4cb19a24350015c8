"""Every value that a setting promises is taken: by its type, by its description, by the guides.

A new setting is covered by itself; what its description puts in backticks and is no value stands in ``NOT_VALUES``.
"""

import json
import os
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import annotated_types
import pytest
from pydantic import ByteSize, HttpUrl, SecretStr
from pydantic.fields import FieldInfo

from headrace import settings
from headrace.settings import Settings

ROOT = Path(__file__).parents[2]
FIELDS = Settings.model_fields
KEY = "k" * 32

DURATIONS = {
    "500ms": timedelta(milliseconds=500),
    "30s": timedelta(seconds=30),
    "15m": timedelta(minutes=15),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "1.5h": timedelta(minutes=90),
    "45": timedelta(seconds=45),
    "PT2M": timedelta(minutes=2),
}
SIZES = {"64KiB": 64 * 1024, "10MiB": 10 * 1024**2, "65536": 65536, "1.5MiB": 3 * 512 * 1024}
SWITCHES = {"true": True, "false": False, "on": True, "off": False, "1": True, "0": False}
# What must be set beside a setting: it does not stand alone.
FELLOWS: Mapping[str, Mapping[str, str]] = {
    "login_block_first": {"login_block_max": "8d"},
    "login_block_max": {"login_block_first": "1ms"},
    "argon2_memory": {"argon2_parallelism": "1"},
    "argon2_parallelism": {"argon2_memory": "1GiB"},
    "database_pool_min": {"database_pool_max": "1000000"},
    "database_pool_max": {"database_pool_min": "1"},
    "database_owner_url": {"database_url": "postgresql://h/d"},
    "wechat_app_id": {"wechat_app_secret": "s"},
    "wechatpay_api_v3_key": {
        "wechatpay_mch_id": "1900000001",
        "wechatpay_app_id": "wx1",
        "wechatpay_cert_serial": "5F",
        "wechatpay_private_key_file": "key.pem",
    },
    "wechat_app_secret": {"wechat_app_id": "wx1"},
    "smtp_host": {"smtp_from": "a@b.example"},
    "smtp_from": {"smtp_host": "smtp.example.org"},
    "smtp_username": {"smtp_password": "s"},
    "smtp_password": {"smtp_username": "u"},
    "archive_s3_access_key": {"archive_s3_secret_key": "s"},
    "archive_s3_secret_key": {"archive_s3_access_key": "a"},
    "files_s3_access_key": {"files_s3_secret_key": "s"},
    "files_s3_secret_key": {"files_s3_access_key": "a"},
}
# What descriptions put in backticks and is no value of the setting.
NOT_VALUES = {
    *(
        "HEADRACE_DATABASE_URL",
        "HEADRACE_API_PUBLIC_URL",
        "headrace admin reset-password",
        "starttls",
        "tls",
        "HEADRACE_DATABASE_OWNER_URL",
        "HEADRACE_SECRET_KEY",
        "headrace webhooks rotate-keys",
        "max_retries",
    ),
    *("headrace up", "headrace migrate", "headrace audit key", "headrace.submit", "openssl rand -hex 32"),
    *("openssl rand -base64 32", "headrace_app", "headrace_owner", "bin", "embedded", "/healthz", "/readyz"),
    *(
        "HEADRACE_API_TRUSTED_PROXIES",
        "Idempotency-Key",
        "misfire_policy",
        "all",
        "AWS_REGION",
        "AWS_…",
        "AWS_ACCESS_KEY_ID",
    ),
    "ALTER DATABASE … SET headrace.payload_limit = 262144",
}


@pytest.fixture(autouse=True)
def clean_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in list(os.environ):
        if name.startswith("HEADRACE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parts_of(hint: Any) -> Iterator[Any]:
    """The plain types in a type, and the values of a Literal."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        yield hint
    elif origin in (typing.Union, types.UnionType, typing.Annotated, tuple):
        for part in typing.get_args(hint):
            yield from parts_of(part)
    else:
        yield hint


def limits_of(hint: Any) -> Iterator[Any]:
    """The bounds that stand anywhere in a type."""
    for each in getattr(hint, "__metadata__", ()):
        yield from each.metadata if isinstance(each, FieldInfo) else [each]
    for part in typing.get_args(hint):
        yield from limits_of(part)


def allowed(value: Any, limits: Sequence[Any]) -> bool:
    for limit in limits:
        match limit:
            case annotated_types.Gt(gt=least) if not value > least:
                return False
            case annotated_types.Ge(ge=least) if not value >= least:
                return False
            case annotated_types.Le(le=most) if not value <= most:
                return False
    return True


def words_of(hints: Sequence[Any]) -> bool:
    return any(typing.get_origin(each) is typing.Literal for each in hints)


def is_several(hint: Any) -> bool:
    return any(typing.get_origin(each) is tuple for each in (hint, *typing.get_args(hint)))


def several(kind: type, limits: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """What a list of durations or secrets takes."""
    one: dict[str, Any] = dict(DURATIONS) if kind is timedelta else {KEY: SecretStr(KEY)}
    for text, value in one.items():
        yield text, (value,)
        yield f"{text}, {text}", (value, value)
    if not any(isinstance(each, annotated_types.MinLen) for each in limits):
        yield "", ()


def promised_by_type(hint: Any) -> Iterator[tuple[str, Any]]:
    """What a setting of this type takes, as it is written, and what it means."""
    hints, limits = list(parts_of(hint)), list(limits_of(hint))
    for kind in hints:
        if kind is timedelta:
            yield from ((text, value) for text, value in DURATIONS.items() if allowed(value, limits))
            if types.NoneType in hints:
                yield "forever", None
        elif kind is ByteSize:
            yield from SIZES.items()
        elif kind is bool:
            yield from SWITCHES.items()
        elif kind is int:
            edges = [getattr(each, "ge", getattr(each, "le", None)) for each in limits]
            numbers = {1, 64, 8080, *(edge for edge in edges if isinstance(edge, int))}
            yield from ((str(number), number) for number in sorted(numbers) if allowed(number, limits))
        elif typing.get_origin(kind) is typing.Literal:
            yield from ((word, (word,) if is_several(hint) else word) for word in typing.get_args(kind))
        elif kind is SecretStr:
            yield KEY, SecretStr(KEY)
    if is_several(hint) and not words_of(hints):
        networks = str not in hints
        yield "", ()
        one, other = ("10.0.0.0/8", "::1/128") if networks else ("https://a.example", "https://b.example")
        read = ip_network if networks else str
        yield one, (read(one),)
        yield f"{one}, {other}", (read(one), read(other))


def promised(hint: Any) -> Iterator[tuple[str, Any]]:
    hints = list(parts_of(hint))
    if is_several(hint) and hints[0] in (timedelta, SecretStr):
        return several(hints[0], list(limits_of(hint)))
    return promised_by_type(hint)


HINTS = typing.get_type_hints(Settings, include_extras=True)
BY_TYPE = [(name, *value) for name in FIELDS for value in promised(HINTS[name])]


def name_in_environment(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    for other, needed in FELLOWS.get(name, {}).items():
        monkeypatch.setenv(f"HEADRACE_{other.upper()}", needed)
    monkeypatch.setenv(f"HEADRACE_{name.upper()}", value)


def load(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> Settings:
    name_in_environment(monkeypatch, name, value)
    return settings.load()


def taken(name: str) -> Any:
    try:
        return getattr(settings.load(), name)
    except settings.BadSettings as exc:
        return exc


def test_every_setting_takes_what_its_type_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {}
    for name, written, meant in BY_TYPE:
        with monkeypatch.context() as place:
            name_in_environment(place, name, written)
            if (found := taken(name)) != meant:
                wrong[f"{name}={written}"] = found
    assert wrong == {}


def test_the_file_takes_the_same_as_the_environment(clean_place: Path) -> None:
    """For one setting of each type: which one it is makes no difference to how a file is read."""
    wrong = {}
    for name, written, meant in {
        (str(HINTS[name]), written): (name, written, meant) for name, written, meant in BY_TYPE
    }.values():
        lines = {**FELLOWS.get(name, {}), name: written}
        (clean_place / "headrace.toml").write_text(
            "".join(f"{each} = {json.dumps(value)}\n" for each, value in lines.items())
        )
        if (found := taken(name)) != meant:
            wrong[f"{name}={written}"] = found
    assert wrong == {}


BY_DESCRIPTION = [
    (name, word.replace("…", "headrace.example"))
    for name, field in FIELDS.items()
    for word in re.findall(r"`([^`]+)`", field.description or "")
    if word not in NOT_VALUES
]


@pytest.mark.parametrize(("name", "written"), BY_DESCRIPTION)
def test_what_a_description_names_as_a_value_is_taken(monkeypatch: pytest.MonkeyPatch, name: str, written: str) -> None:
    value = getattr(load(monkeypatch, name, written), name)
    match value:
        case None | timedelta() | bool():
            assert value == {**DURATIONS, **SWITCHES, "forever": None, "0s": timedelta(0)}[written]
        case SecretStr():
            assert value.get_secret_value() == written
        case HttpUrl():
            assert str(value).rstrip("/") == written
        case tuple():
            assert ",".join(map(str, value)) == written
        case _:
            assert str(value) == written


def in_the_guides() -> Iterator[tuple[str, str]]:
    for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("README*.md"), *ROOT.glob("examples/*.md")]:
        for name, value in re.findall(r"HEADRACE_([A-Z0-9_]+)=('[^']*'|[^\s`'\"]+)", page.read_text()):
            # Where a shell fills the value in, or the reader does, there is none to try.
            if name.lower() in FIELDS and not re.search(r"[$…]", value):
                yield name.lower(), value.strip("'").rstrip(").,")


@pytest.mark.parametrize(("name", "written"), sorted(set(in_the_guides())))
def test_what_a_guide_sets_is_taken(monkeypatch: pytest.MonkeyPatch, name: str, written: str) -> None:
    load(monkeypatch, name, written)


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_shown_can_be_set_again(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    values = [getattr(settings.load(), name)]
    values += [meant for setting, _, meant in BY_TYPE if setting == name]
    for value in values:
        written = settings.shown_as(name, value)
        if written is not None and "•" not in written:  # a secret is not shown
            with monkeypatch.context() as place:
                assert getattr(load(place, name, written), name) == value


def test_all_settings_that_keep_rows_can_keep_them_for_ever() -> None:  # W-18
    keeps = {name for name in FIELDS if name.startswith("retention_")} - {"retention_archive_rows"}
    assert keeps
    assert keeps <= {name for name, written, _ in BY_TYPE if written == "forever"}
