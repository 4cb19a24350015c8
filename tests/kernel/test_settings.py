"""Settings are typed, documented, and a typing error in one is an error."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import settings
from headrace.settings import BadSettings
from headrace.settings.rendering import groups


@pytest.fixture(autouse=True)
def clean_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in list(os.environ):
        if name.startswith("HEADRACE_") and not name.startswith("HEADRACE_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        ("1.5h", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("PT2M", timedelta(minutes=2)),
        ("45", timedelta(seconds=45)),
    ],
)
def test_durations_are_written_as_people_write_them(
    monkeypatch: pytest.MonkeyPatch, written: str, meant: timedelta
) -> None:
    monkeypatch.setenv("HEADRACE_SESSION_LIFETIME", written)
    assert settings.load().session_lifetime == meant


def test_variables_win_over_the_file(monkeypatch: pytest.MonkeyPatch, clean_place: Path) -> None:
    (clean_place / "headrace.toml").write_text('api_port = 9000\napi_body_limit = "2MiB"\n')
    monkeypatch.setenv("HEADRACE_API_PORT", "9001")
    chosen = settings.load()
    assert (chosen.api_port, chosen.api_body_limit) == (9001, 2 * 1024**2)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HEADRACE_API_PORTT", "1", "did you mean HEADRACE_API_PORT?"),
        ("HEADRACE_WEATHER", "fine", "docs/reference/settings.md"),
        ("HEADRACE_API_PORT", "70000", "HEADRACE_API_PORT"),
        ("HEADRACE_SESSION_LIFETIME", "soon", "HEADRACE_SESSION_LIFETIME"),
        ("HEADRACE_SESSION_LIFETIME", "0s", "HEADRACE_SESSION_LIFETIME"),
        ("HEADRACE_SECRET_KEY", "hunter2", "at least 32 characters"),
        ("HEADRACE_SESSION_LIFETIME", "99999999999d", "HEADRACE_SESSION_LIFETIME"),
        ("HEADRACE_DATABASE_STATEMENT_TIMEOUT", "30d", "HEADRACE_DATABASE_STATEMENT_TIMEOUT"),
        ("HEADRACE_LOGIN_BLOCK_FIRST", "10m", "login_block_max"),
        ("HEADRACE_ARGON2_MEMORY", "16KiB", "at least 32KiB"),
        ("HEADRACE_WECHAT_APP_ID", "wx1", "go together"),
        ("HEADRACE_API_TRUSTED_PROXIES", "10.0.0.1/8", "HEADRACE_API_TRUSTED_PROXIES"),
        ("HEADRACE_CONFIG", "nowhere.toml", "no such file"),
        ("HEADRACE_SECRETS_DIR", "nowhere", "no such folder"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings) as caught:
        settings.load()
    assert said in caught.value.message
    assert "hunter2" not in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("text", "said"), [("colour = 1", "is not a setting"), ("api_port = = 2", "not valid TOML")])
def test_a_wrong_file_is_named(clean_place: Path, text: str, said: str) -> None:
    (clean_place / "headrace.toml").write_text(text)
    with pytest.raises(BadSettings, match=said):
        settings.load()


def test_secrets_do_not_show_in_any_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_DATABASE_URL", "postgresql://u:geheim@h/d")
    chosen = settings.load()
    assert "geheim" not in repr(chosen)
    assert settings.shown(chosen.database_url) == "••••••"


def test_a_secret_may_be_a_file_and_a_variable_wins_over_it(monkeypatch: pytest.MonkeyPatch, clean_place: Path) -> None:
    (clean_place / "headrace_secret_key").write_text("from the file, and long enough\n" * 2)
    (clean_place / "of_another_program").write_text("left alone")
    monkeypatch.setenv("HEADRACE_SECRETS_DIR", str(clean_place))
    found = settings.load().secret_key
    assert found is not None
    assert found.get_secret_value().startswith("from the file")
    monkeypatch.setenv("HEADRACE_SECRET_KEY", "from the variable, and long enough")
    found = settings.load().secret_key
    assert found is not None
    assert found.get_secret_value().startswith("from the variable")


def test_files_are_utf_8_whatever_the_locale_says(monkeypatch: pytest.MonkeyPatch, clean_place: Path) -> None:
    monkeypatch.setenv("HEADRACE_SECRETS_DIR", str(clean_place))
    (clean_place / "headrace_secret_key").write_text("ein Schlüssel, lang genug und geheim", "utf-8")
    (clean_place / "headrace.toml").write_text('data_dir = "/srv/水头"', "utf-8")
    monkeypatch.setattr("io.text_encoding", lambda given, *_: given or "latin-1")
    found = settings.load()
    assert found.data_dir == Path("/srv/水头")
    assert found.secret_key is not None
    assert found.secret_key.get_secret_value() == "ein Schlüssel, lang genug und geheim"


def test_a_folder_of_secrets_that_may_not_be_read_is_named(monkeypatch: pytest.MonkeyPatch, clean_place: Path) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("HEADRACE_SECRETS_DIR", str(clean_place))
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(BadSettings, match=r"HEADRACE_SECRETS_DIR .* cannot be read"):
        settings.load()


def test_every_setting_is_documented_and_the_page_shows_defaults_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_API_PORT", "9001")
    page = settings.reference_page()
    assert all(f"`HEADRACE_{name.upper()}`" in page for name in settings.Settings.model_fields)
    assert "9001" not in page


def test_groups_share_no_name_and_together_are_the_settings() -> None:
    """Of two fields or checks of one name only one would be there, and nobody would notice."""
    fields = [name for group in groups() for name in group.model_fields]
    checks = [name for group in groups() for name in group.__pydantic_decorators__.model_validators]
    assert fields == list(settings.Settings.model_fields)
    assert len(set(fields)) == len(fields)
    assert len(set(checks)) == len(checks) == len(settings.Settings.__pydantic_decorators__.model_validators)


def test_every_check_between_settings_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_DATABASE_OWNER_URL", "postgresql://o@h/d")
    with pytest.raises(BadSettings, match="requires database_url"):
        settings.load()
    monkeypatch.delenv("HEADRACE_DATABASE_OWNER_URL")
    monkeypatch.setenv("HEADRACE_ARCHIVE_S3_ACCESS_KEY", "k")
    with pytest.raises(BadSettings, match="archive_s3_secret_key go together"):
        settings.load()
