"""``headrace backup`` and ``headrace restore`` where files, the archive or the backup itself lie in a bucket."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.archive import bucket
from tests.archive.bucket import ACCESS_KEY, SECRET_KEY, Bucket
from tests.cli.backups import settings_of
from tests.cli.conftest import Call, Place
from tests.cli.test_backup import ASSET, source, submit, tasks_in  # noqa: F401 - a fixture

PLACE = "s3://backups/nightly/headrace.backup"


@pytest.fixture
def remote() -> Iterator[Bucket]:
    with bucket.running() as running:
        yield running


def with_keys(place: Place, folder: Path, remote: Bucket, *kinds: str) -> dict[str, str]:
    """Settings with keys for the buckets of files, of the archive, or of both."""
    settings = settings_of(place, folder)
    for kind in kinds:
        settings |= {
            f"HEADRACE_{kind}_S3_ENDPOINT": remote.url,
            f"HEADRACE_{kind}_S3_REGION": "us-east-1",
            f"HEADRACE_{kind}_S3_ACCESS_KEY": ACCESS_KEY,
            f"HEADRACE_{kind}_S3_SECRET_KEY": SECRET_KEY,
        }
    return settings


def test_a_backup_goes_to_a_bucket_and_comes_back_from_there(
    call: Call,
    source: Place,  # noqa: F811
    empty: Place,
    remote: Bucket,
    tmp_path: Path,
) -> None:
    here, there = (with_keys(place, tmp_path / place.name, remote, "ARCHIVE") for place in (source, empty))
    submit(source, 3)
    done = call("backup", PLACE, settings=here)
    assert done.code == 0, done.err
    assert done.out.startswith(f"{PLACE}: ")
    assert [*remote.objects] == ["/backups/nightly/headrace.backup"]
    again = call("backup", PLACE, settings=here)
    assert (again.code, "--force" in again.complaint) == (4, True)
    submit(source, 2)
    assert call("backup", PLACE, "--force", settings=here).code == 0

    restored = call("restore", PLACE, "--verify", settings=there)
    assert restored.code == 0, restored.err
    assert "verified: every row and file" in restored.out
    assert tasks_in(empty) == 5
    for folder in tmp_path.iterdir():
        assert [*folder.glob("backup-*")] == [], "no copy of it stays beside the data"


@pytest.mark.parametrize("fault", ["damaged", "missing"])
def test_a_backup_in_a_bucket_that_is_not_whole_is_refused(
    call: Call,
    source: Place,  # noqa: F811
    migrated: Place,
    remote: Bucket,
    tmp_path: Path,
    fault: str,
) -> None:
    here, there = (with_keys(place, tmp_path / place.name, remote, "ARCHIVE") for place in (source, migrated))
    submit(migrated)
    assert call("backup", PLACE, settings=here).code == 0
    ((name, content),) = remote.objects.items()
    del remote.objects[name]
    if fault == "damaged":
        remote.objects[name] = content[: len(content) // 2]
    refused = call("restore", PLACE, "--replace", settings=there)
    assert refused.code != 0
    assert "headrace.backup" in refused.complaint
    assert tasks_in(migrated) == 3


@pytest.mark.parametrize("place", ["s3://backups", "https://example.com/headrace.backup"])
def test_an_address_that_is_no_place_for_a_backup_is_refused(call: Call, migrated: Place, place: str) -> None:
    for command in ("backup", "restore"):
        refused = call(command, place, settings=migrated.settings)
        assert (refused.code, "neither a file nor s3://bucket/name" in refused.complaint) == (2, True)


def test_files_in_a_bucket_are_listed_and_looked_for_when_restored(
    call: Call,
    source: Place,  # noqa: F811
    empty: Place,
    remote: Bucket,
    tmp_path: Path,
) -> None:
    """They are not copied: the backup has a manifest of them."""
    lie = {"HEADRACE_FILES_URL": "s3://uploads/files", "HEADRACE_ARCHIVE_URL": "s3://months/headrace"}
    here, there = (
        {**with_keys(place, tmp_path / place.name, remote, "FILES", "ARCHIVE"), **lie} for place in (source, empty)
    )
    with psycopg.connect(source.owner_url) as connection:
        for name in ("kept", "lost"):
            connection.execute(ASSET, {"id": f"ast_{name}", "key": f"u/{name}"})
    for name in ("kept", "lost"):
        remote.objects[f"/uploads/files/media/u/{name}"] = b"secret bytes"
    remote.objects["/months/headrace/audit_events/2026-01.parquet"] = b"rows"
    before = dict(remote.objects)
    done = call("backup", "b", "--json", settings=here)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["files"], found["files_copied"], found["archive_files"], found["archive_copied"]) == (
        2,
        False,
        1,
        False,
    )
    assert b"secret bytes" not in (tmp_path / "b").read_bytes()

    del remote.objects["/uploads/files/media/u/lost"]
    restored = call("restore", "b", settings=there)
    assert restored.code == 0, restored.err
    assert "2 files listed, which stay in their bucket" in restored.out
    assert "warning: the file media/u/lost is not in the bucket" in restored.err
    assert "media/u/kept" not in restored.err
    assert remote.objects == {name: content for name, content in before.items() if not name.endswith("lost")}
