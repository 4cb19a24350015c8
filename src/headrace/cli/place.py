"""Where a command acts: on the database of the settings, or on a server elsewhere, by its address and an API key.

The address comes from ``--url``, ``HEADRACE_URL`` or a profile; the key from ``--key``, ``HEADRACE_API_KEY`` or the
same profile. Profiles are tables of a TOML file that only its owner may read::

    [work]
    url = "https://headrace.example"
    key = "hrk_…"
"""

import os
import stat
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.errors import Invalid

_PANEL = "On a server elsewhere"


HELP = {
    "url": "Act over this server's API instead of on the database (HEADRACE_URL).",
    "key": "An API key of yours there (HEADRACE_API_KEY).",
    "profile": "Address and key from ~/.config/headrace/profiles.toml (HEADRACE_PROFILE).",
}
OPTIONS = frozenset({"server_url", "server_key", "server_profile"})


class KeyMissing(Invalid):
    """No API key: set HEADRACE_API_KEY or give --key; `headrace keys create` makes one."""

    code = "api_key_missing"


class ProfileUnusable(Invalid):
    """The profile cannot be used."""

    code = "profile_unusable"


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    key: str = field(repr=False)


_values: dict[str, str | None] = {}


def server() -> Server | None:
    """The server that this command was sent to; None to act on the database."""
    profile = _profile(_values.get("profile"))
    url = _values.get("url") or profile.get("url")
    if not url:
        if _values.get("key"):
            raise Invalid("--key is for a server elsewhere: say which with --url.")
        return None
    if not url.startswith(("http://", "https://")):
        raise Invalid(f"--url must begin with http:// or https://, not {url!r}.")
    key = _values.get("key") or os.environ.get("HEADRACE_API_KEY")
    if not key and url == profile.get("url"):  # a profile's key goes to its own server, and nowhere else
        key = profile.get("key")
    return Server(url, key or "")


def with_key() -> Server | None:
    target = server()
    if target is not None and not target.key:
        raise KeyMissing
    return target


def profile_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "headrace" / "profiles.toml"


def _profile(name: str | None) -> dict[str, str]:
    if not name:
        return {}
    file = profile_file()
    try:
        with file.open("rb") as stream:
            open_to_others = stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077
            if open_to_others:
                raise ProfileUnusable(f"{file} holds keys, and others may read it: chmod 600 {file}")
            profiles = tomllib.load(stream)
    except OSError as exc:
        raise ProfileUnusable(f"{file} cannot be read: {exc.strerror}.") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ProfileUnusable(f"{file} is not valid TOML: {exc}.") from exc
    profile = profiles.get(name)
    if not isinstance(profile, dict):
        known = ", ".join(each for each in profiles if isinstance(profiles[each], dict)) or "none"
        raise ProfileUnusable(f"There is no profile {name} in {file}; there is: {known}.")
    wrong = [each for each, value in profile.items() if each not in ("url", "key") or not isinstance(value, str)]
    if wrong or "url" not in profile:
        raise ProfileUnusable(f"The profile {name} in {file} has a url and a key, both texts, and nothing else.")
    return profile


def _keep(name: str) -> Callable[[str | None], None]:
    def keep(value: str | None) -> None:
        _values[name] = value

    return keep


def _options(
    server_url: Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar="HEADRACE_URL",
            callback=_keep("url"),
            expose_value=False,
            rich_help_panel=_PANEL,
            help=HELP["url"],
        ),
    ] = None,
    server_key: Annotated[
        str | None,
        typer.Option(
            "--key",
            callback=_keep("key"),
            expose_value=False,
            rich_help_panel=_PANEL,
            help=HELP["key"],
        ),
    ] = None,
    server_profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            envvar="HEADRACE_PROFILE",
            callback=_keep("profile"),
            expose_value=False,
            rich_help_panel=_PANEL,
            help=HELP["profile"],
        ),
    ] = None,
) -> None: ...


def add_options(command: Any) -> None:
    """Let a command, or every command of a group, be sent elsewhere."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        for each in inner.values():
            add_options(each)
        return
    if getattr(command.callback, "on_the_machine", False):
        return
    stand_in = typer.Typer(add_completion=False)
    stand_in.command()(_options)
    taken = {
        option for each in command.params for option in each.opts
    }  # --key of a lock: the API key is in the settings
    command.params.extend(
        each for each in typer.main.get_command(stand_in).params if each.name in OPTIONS and not taken & set(each.opts)
    )


def can_be_sent(command: Any) -> bool:
    return "server_url" in {each.name for each in command.params}


def on_the_machine(command: Any) -> Any:
    """Mark a command that only works on the machine of the database: it gets no options for a server elsewhere."""
    command.on_the_machine = True
    return command
