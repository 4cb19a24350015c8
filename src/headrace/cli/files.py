"""``headrace files``: sending, fetching and looking at files."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.calls import drop_none, list_all, path, perform
from headrace.cli.output import Json, bytes_bar, out, print_json, print_table, say
from headrace.cli.requests import Api
from headrace.cli.showing import minute
from headrace.errors import HeadraceError, Invalid

if TYPE_CHECKING:
    from headrace.client.files import Files
    from headrace.client.generated.answers import File

app = typer.Typer(help="Files: send, fetch, list and delete them.", no_args_is_help=True)

FileId = Annotated[str, typer.Argument(metavar="ID", help="The file's id, ast_….")]


def _files(api: Api) -> "Files":
    from headrace.client.files import Files

    return Files(api.connection)


@app.command()
def put(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE…", help="The files to send.")],
    name: Annotated[str | None, typer.Option(help="Another name for it; for one file only.")] = None,
    strip_location: Annotated[
        bool, typer.Option("--strip-location", help="Remove the place where a picture was taken.")
    ] = False,
    json: Json = False,
) -> None:
    """Send files and print their ids. An interrupted command continues when repeated: received parts stay on the
    server for a day."""
    if name is not None and len(paths) > 1:
        raise Invalid("--name is for one file.")
    for each in paths:
        if not each.is_file():
            raise Invalid(f"{each} is not a file that can be read.")

    async def act(api: Api) -> None:
        for each in paths:
            made = await _upload(_files(api), each, name, strip_location=strip_location)
            if json:
                print_json(_plain(made))
            else:
                out.print(made.id)

    perform("files put", act)


async def _upload(files: "Files", source: Path, name: str | None, *, strip_location: bool) -> "File":
    with bytes_bar(source.name) as report:
        try:
            return await files.upload(source, name=name, strip_location=strip_location, on_progress=report)
        except HeadraceError:
            say(f"{source} was not taken:")  # the reason comes below; of several files it must be clear which
            raise


@app.command()
def get(
    file_id: FileId,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="Where to write it; a folder, or a new file. Its name by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json: Json = False,
) -> None:
    """Fetch a file. An interrupted command continues when repeated."""

    async def act(api: Api) -> Path:
        files = _files(api)
        file = await files.get(file_id)
        target = _target(file, to)
        if not target.parent.is_dir():
            raise Invalid(f"There is no folder {target.parent}: make it first.")
        if target.exists() and not force:
            raise Invalid(f"{target} exists: --force replaces it.")
        with bytes_bar(file.name) as report:
            await files.download(file_id, target, on_progress=report)
        return target

    target = perform("files get", act)
    if json:
        print_json({"id": file_id, "path": str(target)})
    else:
        out.print(str(target))


def _target(file: "File", to: Path | None) -> Path:
    # The last part of it alone: a name is what its uploader wrote.
    own = Path(file.name).name or file.id
    if to is None:
        return Path(own)
    return to / own if to.is_dir() else to


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Option(help="A part of the name.")] = None,
    media_type: Annotated[str | None, typer.Option(help="IMAGE, VIDEO, PDF or PPT.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of files.")] = 100,
    json: Json = False,
) -> None:
    """Everybody's files (over an API your own), newest first."""
    filters = drop_none(name=name, media_type=media_type and media_type.upper())
    rows = perform("files list", lambda api: list_all(api, path("assets"), filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "name", "kind", "size", "uploaded", "until"),
        [
            (
                file["id"],
                file["name"],
                file["mime_type"],
                f"{file['size_bytes']:,}",
                minute(file["created_at"]),
                minute(file["expire_at"]),
            )
            for file in rows
        ],
    )


@app.command()
def show(file_id: FileId, json: Json = False) -> None:
    """Show a file's facts."""
    result = perform("files show", lambda api: api.ask("GET", path("assets", file_id)))
    if json:
        print_json(result)
    else:
        print_table(("", ""), [*result.items()])


@app.command()
def link(
    file_id: FileId,
    hours: Annotated[float | None, typer.Option(min=0.001, max=168, help="For how long.")] = None,
    inline: Annotated[bool, typer.Option("--inline", help="Let a browser show it.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Of the preview.")] = False,
    json: Json = False,
) -> None:
    """Print a link for reading the file without logging in, until it expires."""
    seconds = None if hours is None else max(1, int(hours * 3600))
    body = {**drop_none(expires_in=seconds), "inline": inline, "preview": preview}
    made = perform("files link", lambda api: api.ask("POST", path("assets", file_id, "links"), body=body))
    if json:
        print_json(made)
    else:
        out.print(made["url"], soft_wrap=True)


@app.command()
def delete(
    file_ids: Annotated[list[str], typer.Argument(metavar="ID…", help="The files' ids.")],
    json: Json = False,
) -> None:
    """Delete files."""

    async def act(api: Api) -> None:
        for file_id in file_ids:
            await api.ask("DELETE", path("assets", file_id))
            say(f"{file_id} deleted")

    perform("files delete", act)
    if json:
        print_json([{"id": file_id, "deleted": True} for file_id in file_ids])


def _plain(file: "File") -> dict[str, Any]:
    fields = dataclasses.asdict(file)
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in fields.items()}
