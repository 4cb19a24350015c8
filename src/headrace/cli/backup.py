"""``headrace backup`` and ``headrace restore``."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headrace.assembly.deployment import Deployment, data_folder, database_of
from headrace.assembly.files import files_storage
from headrace.assembly.retention_settings import archive_bucket_options, archive_config
from headrace.assembly.secret_key import SecretKeyMissing, secret_key
from headrace.assembly.trail import audit_heads, trusted_keys
from headrace.backup import reading, restoring, taking, verifying
from headrace.backup.errors import BackupExists, BackupRefused
from headrace.backup.model import Manifest
from headrace.backup.restoring import Restored
from headrace.cli.output import LOOKING, Json, bytes_bar, number_of, out, print_json, progress, say
from headrace.cli.session import load_settings, operator, run
from headrace.database import Database
from headrace.embedded_postgres import programs
from headrace.errors import Invalid
from headrace.settings import Settings
from headrace.storage import ObjectNotFound, Storage, StorageConfig

Place = Annotated[str, typer.Argument(metavar="FILE|URL", help="A file, or s3://bucket/name with the archive's keys.")]


def backup(
    place: Place,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json: Json = False,
) -> None:
    """Write everything to one file while everything runs: rows, roles, files and archives; never the secret key."""
    settings = load_settings()
    key = _key(settings)
    with _written_to(place, settings, force=force) as file, ExitStack() as stack:
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role="backup", report=report))
        source = taking.Source(
            deployment.administrator,
            files_storage(settings),
            archive_config(settings),
            key,
            _dump(settings, deployment),
        )
        with bytes_bar("backing up") as done:
            manifest = run(taking.take(source, file, replacing=force, report=done))
        size = file.stat().st_size
    if json:
        print_json({"backup": place, "bytes": size, **_summary(manifest)})
        return
    out.print(
        f"{place}: {number_of(manifest.rows, 'row')} of {number_of(len(manifest.tables), 'table')}, "
        f"{_files(manifest)}; {size / 1024**2:,.1f} MiB, read back and whole"
    )
    for name in manifest.files.missing:
        say(f"warning: the file {name} was deleted before it could be copied")
    if key is None:
        say("warning: there is no secret key here, so the backup cannot say which one it needs")
    else:
        say(f"The secret key is not in it: keep a copy of it elsewhere (fingerprint {manifest.key_fingerprint}).")


def restore(
    place: Place,
    replace: Annotated[bool, typer.Option("--replace", help="Delete the contents of the target first.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Then compare every row and file, and verify the audit trail and ledger.")
    ] = False,
    other_key: Annotated[
        bool, typer.Option("--other-key", help="The backup's secret key is lost: restore without it.")
    ] = False,
    json: Json = False,
) -> None:
    """Put a backup into an empty deployment, whatever the versions of the two PostgreSQL servers."""
    settings = load_settings()
    with _read_from(place, settings) as file, ExitStack() as stack:
        with bytes_bar("reading the backup") as done:
            manifest = reading.check(file, done)
        reading.refuse_too_new(manifest)
        if not other_key:
            where = str(settings.data_dir / "secret.key")
            restoring.refuse_other_key(manifest, _key(settings), where=where)
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role="restore", report=report, make=True))
        target = restoring.Target(
            deployment.administrator,
            files_storage(settings),
            archive_config(settings),
            settings.database_migrate_lock_timeout,
        )
        with bytes_bar("restoring") as done:
            work = restoring.restore(file, target, replacing=replace, verify=verify, report=done, say=_quiet)
            restored = run(work)
        findings = run(_verify(settings, deployment)) if verify else []
    _show(place, manifest, restored, findings, verified=verify, json=json)
    if findings:
        raise typer.Exit(1)


def _quiet(_step: str) -> None:
    pass


def _show(
    place: str, manifest: Manifest, restored: Restored, findings: Sequence[str], *, verified: bool, json: bool
) -> None:
    if json:
        print_json(
            {
                "backup": place,
                **_summary(manifest),
                "files_not_found": restored.not_found,
                "roles_without_password": restored.without_password,
                "verified": verified,
                "findings": findings,
            }
        )
        return
    out.print(
        f"restored {number_of(restored.rows, 'row')} of {number_of(len(manifest.tables), 'table')}, "
        f"{_files(manifest)}, as of {manifest.made_at}"
    )
    for name in restored.missing:
        say(f"warning: the file {name} was gone when the backup was made")
    for name in restored.not_found:
        say(f"warning: the file {name} is not in the bucket")
    for name in restored.without_password:
        say(f"warning: the role {name} has no password yet: `headrace database schema {name} --new-password` gives one")
    for finding in findings:
        out.print(finding)
    if verified and not findings:
        out.print("verified: every row and file, the audit trail and the ledger are as they were")


def _summary(manifest: Manifest) -> dict[str, object]:
    return {
        "made_at": manifest.made_at,
        "version": manifest.version,
        "postgres": manifest.postgres,
        "migration": manifest.migration,
        "tables": len(manifest.tables),
        "rows": manifest.rows,
        "schemas": manifest.schemas,
        "roles": [role.name for role in manifest.roles],
        "files": len(manifest.files.files),
        "files_copied": manifest.files.copied,
        "files_missing": manifest.files.missing,
        "archive_files": len(manifest.archive.files),
        "archive_copied": manifest.archive.copied,
        "key_fingerprint": manifest.key_fingerprint,
    }


def _files(manifest: Manifest) -> str:
    how = "" if manifest.files.copied else " listed, which stay in their bucket"
    archived = "" if manifest.archive.copied else " listed, which stay in their bucket"
    return (
        f"{number_of(len(manifest.files.files), 'file')}{how}, "
        f"{number_of(len(manifest.archive.files), 'file')} of the archive{archived}"
    )


def _key(settings: Settings) -> bytes | None:
    try:
        return secret_key(settings)
    except SecretKeyMissing:
        return None


# Some servers keep a number of theirs among a column's options (Debian's 15.18). Only their own pg_dump leaves it out,
# and no other server takes it.
_SERVERS_OWN = re.compile(r"^ALTER TABLE ONLY [^;]+ ALTER COLUMN [^;]+ SET \(pg_attver=\d+\);$", re.MULTILINE)


def _dump(settings: Settings, deployment: Deployment) -> taking.DumpSchema:
    options = ("--schema-only", "--no-publications", "--no-subscriptions", "--no-tablespaces", "--no-security-labels")

    def dump(words: Sequence[str], snapshot: str) -> str:
        program = programs.find_for(deployment.administrator.url, "pg_dump", settings.postgres_binaries)
        status, text, complaint = programs.read(
            program, deployment.administrator.url, [*options, f"--snapshot={snapshot}", *words]
        )
        if status != 0:
            raise BackupRefused(f"pg_dump failed: {' '.join(complaint.split())}")
        return _SERVERS_OWN.sub("", text)

    return dump


async def _verify(settings: Settings, deployment: Deployment) -> list[str]:
    async with await Database.connect(deployment.app) as db:
        return await verifying.verify(
            db,
            operator("restore --verify"),
            archive_config(settings),
            keys=trusted_keys(settings),
            heads=audit_heads(settings),
        )


# -- where backups lie


def _bucket(place: str, settings: Settings) -> tuple[StorageConfig, str] | None:
    """The bucket's folder and the name in it, where the place is an address."""
    if "://" not in place or place.startswith("file://"):
        return None
    folder, _, name = place.rpartition("/")
    if not place.startswith("s3://") or not name or folder == "s3:/":
        raise Invalid(f"{place} is neither a file nor s3://bucket/name.")
    return StorageConfig(folder, archive_bucket_options(settings)), name


@contextmanager
def _written_to(place: str, settings: Settings, *, force: bool) -> Iterator[Path]:
    """A file to write the backup to; a copy goes to the bucket and is read back from there."""
    bucket = _bucket(place, settings)
    if bucket is None:
        yield Path(place.removeprefix("file://")).absolute()
        return
    if not force and run(_is_there(*bucket)):
        raise BackupExists(f"{place} exists: choose another name, or replace it with --force.")
    with _scratch(settings) as folder:
        file = folder / "backup"
        yield file
        with progress("sending the backup"):
            run(_send(*bucket, file, folder / "copy"))


async def _is_there(config: StorageConfig, name: str) -> bool:
    storage = Storage(config)
    try:
        await storage.size_of(name)
    except ObjectNotFound:
        return False
    finally:
        await storage.close()
    return True


async def _send(config: StorageConfig, name: str, file: Path, copy: Path) -> None:
    storage = Storage(config)
    try:
        await storage.put(name, file)
        await storage.fetch(name, copy)
    finally:
        await storage.close()
    reading.check(copy)


@contextmanager
def _read_from(place: str, settings: Settings) -> Iterator[Path]:
    bucket = _bucket(place, settings)
    if bucket is None:
        yield Path(place.removeprefix("file://")).absolute()
        return
    with _scratch(settings) as folder:
        file = folder / bucket[1]
        with progress("fetching the backup"):
            run(_fetch(*bucket, file))
        yield file


async def _fetch(config: StorageConfig, name: str, file: Path) -> None:
    storage = Storage(config)
    try:
        await storage.fetch(name, file)
    finally:
        await storage.close()


@contextmanager
def _scratch(settings: Settings) -> Iterator[Path]:
    """Beside the data: /tmp may be small, or memory."""
    with tempfile.TemporaryDirectory(prefix="backup-", dir=data_folder(settings)) as folder:
        yield Path(folder)
