"""``headrace database``: its address, psql and pg_dump for it, and room in it for a program's own tables."""

import os
import re
import secrets
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg
import typer

from headrace import audit, migrations
from headrace.assembly.deployment import Deployment, database_of
from headrace.audit import Action, Resource, ResourceType
from headrace.cli.output import LOOKING, Json, out, print_done, print_json, print_table, progress
from headrace.cli.session import load_settings, operator, run
from headrace.database import Database, Tx
from headrace.embedded_postgres import programs
from headrace.errors import Conflict, Denied, Invalid, Unavailable
from headrace.migrations import lean as lean_indexes
from headrace.migrations.lean import IndexState

app = typer.Typer(
    help="The database: its address, psql and pg_dump for it, and room in it for your own tables.", no_args_is_help=True
)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_OURS = ("pg_", "headrace")


class RoleExists(Conflict):
    """There is a role of this name already."""

    code = "role_exists"


class DumpFailed(Unavailable):
    """pg_dump failed."""

    code = "dump_failed"


class MayNotMakeRoles(Denied):
    """The user of the owner's address may not make roles or schemas: let an administrator run what `--sql` prints."""

    code = "may_not_make_roles"


@app.command()
def url(
    owner: Annotated[
        bool, typer.Option("--owner", help="As the role that owns Headrace's tables, for migrations.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the address of the database, password and all: for `psql "$(headrace database url)"`, or a program."""
    with (
        progress(LOOKING) as report,
        database_of(load_settings(), role="url", report=report) as deployment,
    ):
        address = (deployment.owner if owner else deployment.app).url
        print_done({"url": address}, address, json=json)


Words = Annotated[list[str] | None, typer.Argument(metavar="[-- OPTIONS]", help="The program's own options.")]
Owner = Annotated[bool, typer.Option("--owner", help="As the role that owns Headrace's tables.")]


@app.command()
def psql(words: Words = None, owner: Owner = False) -> None:
    """Open psql on the database, with its address and password: `headrace database psql -- -c "SELECT 1"`."""
    settings = load_settings()
    program = programs.find("psql", settings.postgres_binaries)
    with progress(LOOKING) as report, database_of(settings, role="psql", report=report) as deployment:
        report.stop()
        status = programs.run(program, (deployment.owner if owner else deployment.app).url, words or [])
    raise typer.Exit(status)


@app.command()
def dump(
    file: Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False, help="Where it goes.")],
    words: Words = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Dump the database by pg_dump in its custom format, whole or not at all: for PostgreSQL's own tools, on a server
    of the same or a newer version. `headrace backup` has the files too, and can be restored on any version."""
    if file.exists() and not force:
        raise Conflict(f"{file} exists: choose another name, or replace it with --force.")
    settings = load_settings()
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            progress("dumping the database") as report,
            database_of(settings, role="dump", report=report) as deployment,
        ):
            options = ["--format=custom", f"--file={draft}", *(words or [])]
            program = programs.find_for(deployment.administrator.url, "pg_dump", settings.postgres_binaries)
            status, _, complaint = programs.read(program, deployment.administrator.url, options)
        if status != 0:
            raise DumpFailed(f"pg_dump failed, and left no file: {' '.join(complaint.split())}")
        draft.replace(file)
    except OSError as exc:
        raise DumpFailed(f"{file} cannot be written: {exc.strerror}.") from exc
    finally:
        draft.unlink(missing_ok=True)


Schema = Annotated[str, typer.Argument(metavar="NAME", help="What both are called: lower-case letters, digits and _.")]


@app.command()
def schema(
    name: Schema,
    new_password: Annotated[
        bool, typer.Option("--new-password", help="Both are there: give the role another password.")
    ] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="Only print what an administrator of the server is to run.")
    ] = False,
    json: Json = False,
) -> None:
    """Make a schema for your own tables and a role that owns it, and print the role's address. The role may do what
    Headrace's programs may, so that one transaction writes your tables and submits or finishes tasks."""
    if not _NAME.fullmatch(name) or name.startswith(_OURS):
        raise Invalid(
            f"{name!r} is no name for a schema of yours: lower-case letters, digits and _; not pg_… or headrace…."
        )
    password = secrets.token_urlsafe(24)
    with (
        progress(LOOKING) as report,
        database_of(load_settings(), role="schema", report=report) as deployment,
    ):
        address = _as(name, password, deployment.app.url)
        if sql:
            database = urlsplit(deployment.app.url).path.lstrip("/")
            lines = [f"-- {address}", *(f"{line};" for line in _statements(name, password, database))]
            out.print("\n".join(lines))
            return
        run(_make(deployment, name, password, new_password=new_password))
    if json:
        print_json({"schema": name, "role": name, "url": address})
    else:
        out.print(address)


def _statements(name: str, password: str, database: str) -> list[str]:
    # Nothing here is a stranger's: the name is checked, the password ours.
    return [
        f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{password}' IN ROLE headrace_app",
        f'CREATE SCHEMA "{name}" AUTHORIZATION "{name}"',
        f'ALTER ROLE "{name}" IN DATABASE "{database}" SET search_path = "{name}"',
    ]


async def _make(deployment: Deployment, name: str, password: str, *, new_password: bool) -> None:
    await migrations.verify_current(deployment.app)
    async with await Database.connect(deployment.administrator) as db:
        try:
            async with db.transaction() as tx:
                await _make_in(tx, name, password, new_password=new_password)
        except asyncpg.InsufficientPrivilegeError as exc:
            raise MayNotMakeRoles from exc
        except (asyncpg.DuplicateObjectError, asyncpg.DuplicateSchemaError) as exc:
            raise RoleExists(
                f"There is a role or a schema {name} already: take another name, or give the role another password: "
                f"`headrace database schema {name} --new-password`."
            ) from exc


# Not the server's own roles, nor those of other programs: who runs this may be a superuser.
IS_MADE_HERE = """
SELECT true FROM pg_roles AS role
JOIN pg_namespace AS own ON own.nspname = role.rolname AND own.nspowner = role.oid
JOIN pg_auth_members AS membership ON membership.member = role.oid
JOIN pg_roles AS app ON app.oid = membership.roleid AND app.rolname = 'headrace_app'
WHERE role.rolname = $1 AND NOT role.rolsuper
"""


async def _make_in(tx: Tx, name: str, password: str, *, new_password: bool) -> None:
    if new_password:
        if not await tx.fetchval("SELECT true FROM pg_roles WHERE rolname = $1", name):
            raise Invalid(f"There is no role {name} yet: leave --new-password out, and it is made.")
        if not await tx.fetchval(IS_MADE_HERE, name):
            raise Invalid(f"The role {name} was not made by this command: it owns no schema {name}, or more than that.")
        await tx.execute(f"ALTER ROLE \"{name}\" PASSWORD '{password}'")
    else:
        for statement in _statements(name, password, await tx.fetchval("SELECT current_database()")):
            await tx.execute(statement)
    action = Action.UPDATED if new_password else Action.CREATED
    await audit.record(tx, operator("database schema"), action, Resource(ResourceType.DATABASE_USER, name))


def _as(role: str, password: str, address: str) -> str:
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(password)}@{host}"))


@app.command()
def indexes(
    lean: Annotated[bool, typer.Option("--lean", help="Drop the two that every end of a task must update.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Make them again.")] = False,
    json: Json = False,
) -> None:
    """Show, drop or make again the two indexes of tasks by status. Without them each end of a task costs PostgreSQL
    less, and lists by status read more rows (docs/why/engine.md)."""
    if lean and full:
        raise Invalid("Choose --lean or --full.")
    with (
        progress(LOOKING) as report,
        database_of(load_settings(), role="indexes", report=report) as deployment,
    ):
        states = run(_move_indexes(deployment, lean=lean, full=full))
    if json:
        print_json([{"name": each.name, "bytes": each.bytes, "valid": each.valid} for each in states])
        return
    print_table(("index", "size"), [(each.name, _size(each)) for each in states])


async def _move_indexes(deployment: Deployment, *, lean: bool, full: bool) -> list[IndexState]:
    if not lean and not full:
        return await lean_indexes.read(deployment.owner)
    await migrations.verify_current(deployment.app)
    states = await (lean_indexes.drop if lean else lean_indexes.restore)(deployment.owner)
    # Afterwards: they are dropped and built outside any transaction, and both verbs may be repeated.
    async with await Database.connect(deployment.app) as db, db.transaction() as tx:
        resource = Resource(ResourceType.DATABASE, "tasks", {"indexes": "lean" if lean else "full"})
        await audit.record(tx, operator("database indexes"), Action.UPDATED, resource)
    return states


def _size(index: IndexState) -> str:
    if index.bytes is None:
        return "dropped"
    return f"{index.bytes / 1024**2:,.1f} MB" if index.valid else "not valid: make it again with --full"
