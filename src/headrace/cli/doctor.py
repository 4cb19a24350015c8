"""``headrace doctor``: check everything Headrace stands on, and list the faults."""

import os
import shutil
from dataclasses import asdict
from pathlib import Path

import typer

from headrace import migrations
from headrace.admin.doctor import Finding, Verdict, examine, noting
from headrace.assembly.deployment import Deployment, data_folder, database_of
from headrace.assembly.files import files_storage
from headrace.assembly.operators import doctor_config
from headrace.assembly.secret_key import lost_key, secret_key
from headrace.assembly.storage_check import SETTINGS, probe
from headrace.assembly.trail import lost_trail
from headrace.cli.output import LOOKING, Json, out, print_json, progress
from headrace.cli.session import load_settings, run
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.settings import Settings

_LITTLE_SPACE = 2 * 1024**3
_SECRET_KEY = "secret key"  # noqa: S105 - a check's name


def doctor(json: Json = False) -> None:
    """Check settings, storage, database, schema, rights, clocks and months; list the faults; exits with 1 if bad."""
    findings: list[Finding] = []
    try:
        settings = load_settings()
    except HeadraceError as exc:
        findings.append(Finding("settings", Verdict.BAD, exc.message))
    else:
        findings.append(Finding("settings", Verdict.GOOD, f"{len(settings.model_fields_set)} of them chosen by you"))
        findings += [_storage(settings), _files(settings), _secret(settings)]
        with (
            noting(findings, "database"),
            progress(LOOKING) as report,
            database_of(settings, role="doctor", report=report) as deployment,
        ):
            findings += run(_look_at_database(deployment, settings))
    findings = list({finding.check: finding for finding in findings}.values())  # the last one is the most precise
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise typer.Exit(1)


def _storage(settings: Settings) -> Finding:
    try:
        folder = settings.data_dir.resolve()
        if not folder.exists():  # a check creates nothing
            return _no_storage_yet(folder)
        folder = data_folder(settings)
        probe = folder / ".doctor"
        probe.write_bytes(b"?")
        probe.unlink()
    except HeadraceError as exc:
        return Finding("storage", Verdict.BAD, exc.message)
    except OSError as exc:
        return Finding("storage", Verdict.BAD, f"{settings.data_dir} cannot be written to: {exc.strerror}")
    free = shutil.disk_usage(folder).free
    verdict = Verdict.GOOD if free > _LITTLE_SPACE else Verdict.WARNING
    return Finding("storage", verdict, f"{folder} is writable, {free / 1024**3:.1f} GiB free")


def _files(settings: Settings) -> Finding:
    """Whether files can be written, read and deleted where they are kept: a missing bucket shows here."""
    config = files_storage(settings)
    if config.url.startswith("file://"):
        folder = Path(config.url.removeprefix("file://"))
        if not folder.exists():  # a check creates no folder
            return Finding("files", Verdict.GOOD, f"{folder} is not there yet: the first upload makes it")
    try:
        run(probe(config))
    except HeadraceError as exc:
        return Finding("files", Verdict.BAD, f"{exc.operator_message} See {SETTINGS}.")
    return Finding("files", Verdict.GOOD, f"{config.url} is written, read and deleted from")


def _no_storage_yet(folder: Path) -> Finding:
    above = next(each for each in folder.parents if each.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Finding("storage", Verdict.GOOD, f"{folder} is not there yet: `headrace up` makes it")
    return Finding("storage", Verdict.BAD, f"{folder} cannot be made: {above} allows no new files")


def _secret(settings: Settings) -> Finding:
    try:
        secret_key(settings)
    except HeadraceError:
        return Finding(
            _SECRET_KEY, Verdict.WARNING, "none yet: `headrace up` makes one, `headrace api` needs HEADRACE_SECRET_KEY"
        )
    return Finding(_SECRET_KEY, Verdict.GOOD, "there")


async def _look_at_database(deployment: Deployment, settings: Settings) -> list[Finding]:
    findings: list[Finding] = []
    async with await Database.connect(deployment.app) as db:
        findings.append(Finding("database", Verdict.GOOD, f"{deployment.app.place} answers"))
        with noting(findings, "schema"):
            findings.append(await _schema(deployment))
            if findings[-1].verdict is not Verdict.BAD and (lost := await lost_key(settings, db)) is not None:
                findings.append(Finding(_SECRET_KEY, Verdict.WARNING, lost))
        findings += await examine(db, doctor_config(settings))
        if not any(each.verdict is Verdict.BAD for each in findings if each.check == "schema"):
            try:
                lost = await lost_trail(settings, db)
            except HeadraceError as exc:  # such as an archive that does not answer
                lost = exc.message
            if lost is not None:
                findings.append(Finding("sealing", Verdict.WARNING, lost))
        return findings


async def _schema(deployment: Deployment) -> Finding:
    try:
        await migrations.verify_current(deployment.app)
    except HeadraceError as exc:
        return Finding("schema", Verdict.BAD, exc.message)
    changed = (await migrations.status(deployment.app)).changed
    if changed:
        return Finding(
            "schema", Verdict.WARNING, f"{changed[0].number:04}_{changed[0].name} was edited after it was applied"
        )
    return Finding("schema", Verdict.GOOD, f"at {migrations.available()[-1]}")


def _print(findings: list[Finding]) -> None:
    marks = {Verdict.GOOD: "[green]✓[/]", Verdict.NOTE: "·", Verdict.WARNING: "[yellow]![/]", Verdict.BAD: "[red]✗[/]"}
    for finding in findings:
        out.print(f"{marks[finding.verdict]} [bold]{finding.check:<11}[/] ", end="", markup=True)
        out.print(finding.message, soft_wrap=True)
