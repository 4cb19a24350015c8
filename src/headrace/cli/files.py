"""``headrace files``: sending, fetching and looking at files, over a running API."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.output import Json, bytes_bar, out, print_json, print_table, say
from headrace.cli.place import LOCAL, KeyMissing
from headrace.client import File, SyncClient
from headrace.client.errors import ApiError
from headrace.client.files import OnBytes
from headrace.errors import Invalid

app = typer.Typer(help="Files: send, fetch, list and delete them, over a running API.", no_args_is_help=True)

Url = Annotated[str, typer.Option(envvar="HEADRACE_URL", help="Where the API answers.")]
Key = Annotated[
    str, typer.Option(envvar="HEADRACE_API_KEY", help="An API key with the scopes files:read and files:write.")
]
FileId = Annotated[str, typer.Argument(metavar="ID", help="The file's id, ast_….")]


@contextmanager
def _client(url: str, key: str) -> Iterator[SyncClient]:
    if not key:
        raise KeyMissing
    if not url.startswith(("http://", "https://")):
        raise Invalid(f"--url must begin with http:// or https://, not {url!r}.")
    with SyncClient(url, key) as client:
        yield client


@app.command()
def put(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE…", help="The files to send.")],
    name: Annotated[str | None, typer.Option(help="Another name for it; for one file only.")] = None,
    strip_location: Annotated[
        bool, typer.Option("--strip-location", help="Remove the place where a picture was taken.")
    ] = False,
    url: Url = LOCAL,
    key: Key = "",
    json: Json = False,
) -> None:
    """Send files and print their ids. Interrupted, the same command goes on where it was: what has arrived stays on the
    server for a day."""
    if name is not None and len(paths) > 1:
        raise Invalid("--name is for one file.")
    for path in paths:
        if not path.is_file():
            raise Invalid(f"{path} is not a file that can be read.")
    with _client(url, key) as client:
        for path in paths:
            with bytes_bar(path.name) as report:
                made = _upload(client, path, name, report, strip_location=strip_location)
            if json:
                print_json(_plain(made))
            else:
                out.print(made.id)


def _upload(client: SyncClient, path: Path, name: str | None, report: OnBytes, *, strip_location: bool) -> File:
    try:
        return client.files.upload(path, name=name, strip_location=strip_location, on_progress=report)
    except ApiError:
        say(f"{path} was not taken:")  # the reason comes below; of several files it must be clear which
        raise


@app.command()
def get(
    file_id: FileId,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="Where to write it; a folder, or a new file. Its name by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Fetch a file. Interrupted, the same command goes on where it was."""
    with _client(url, key) as client:
        found = client.files.get(file_id)
        target = _target(found, to)
        if not target.parent.is_dir():
            raise Invalid(f"There is no folder {target.parent}: make it first.")
        if target.exists() and not force:
            raise Invalid(f"{target} is there already: --force replaces it.")
        with bytes_bar(found.name) as report:
            client.files.download(file_id, target, on_progress=report)
    out.print(str(target))


def _target(found: File, to: Path | None) -> Path:
    # The last part of it alone: a name is what its uploader wrote.
    own = Path(found.name).name or found.id
    if to is None:
        return Path(own)
    return to / own if to.is_dir() else to


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Option(help="A part of the name.")] = None,
    media_type: Annotated[str | None, typer.Option(help="IMAGE, VIDEO, PDF or PPT.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 100,
    url: Url = LOCAL,
    key: Key = "",
    json: Json = False,
) -> None:
    """Your files, newest first."""
    with _client(url, key) as client:
        asked = client.files.list(name=name, media_type=media_type and media_type.upper())
        found = list(islice(asked, limit))
    if json:
        print_json([_plain(file) for file in found])
        return
    print_table(
        ("id", "name", "kind", "size", "uploaded", "until"),
        [
            (
                file.id,
                file.name,
                file.mime_type,
                f"{file.size_bytes:,}",
                f"{file.created_at:%Y-%m-%d %H:%M} UTC",
                f"{file.expire_at:%Y-%m-%d %H:%M} UTC" if file.expire_at else None,
            )
            for file in found
        ],
    )


@app.command()
def show(file_id: FileId, url: Url = LOCAL, key: Key = "", json: Json = False) -> None:
    """What is known of a file."""
    with _client(url, key) as client:
        found = _plain(client.files.get(file_id))
    if json:
        print_json(found)
        return
    print_table(("", ""), [*found.items()])


@app.command()
def link(
    file_id: FileId,
    hours: Annotated[float | None, typer.Option(min=0.001, max=168, help="For how long.")] = None,
    inline: Annotated[bool, typer.Option("--inline", help="Let a browser show it.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Of the preview.")] = False,
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Print a link that whoever has it can read the file with, until it expires."""
    with _client(url, key) as client:
        lifetime = None if hours is None else timedelta(hours=hours)
        made = client.files.link(file_id, expires_in=lifetime, inline=inline, preview=preview)
    out.print(made.url, soft_wrap=True)


@app.command()
def delete(
    file_ids: Annotated[list[str], typer.Argument(metavar="ID…", help="The files' ids.")],
    url: Url = LOCAL,
    key: Key = "",
) -> None:
    """Delete files."""
    with _client(url, key) as client:
        for file_id in file_ids:
            client.files.delete(file_id)
            say(f"{file_id} deleted")


def _plain(file: File) -> dict[str, Any]:
    found = dataclasses.asdict(file)
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in found.items()}
