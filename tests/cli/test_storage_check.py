"""A probe object is written, read and deleted at the start of ``up``, ``api`` and ``worker``, and by ``doctor``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from headrace.assembly import removal
from headrace.assembly.storage_check import StorageWatch
from headrace.cli import worker
from headrace.storage import Storage, StorageConfig
from tests.archive import bucket
from tests.archive.bucket import ACCESS_KEY, SECRET_KEY, Bucket
from tests.cli.conftest import Call, Place
from tests.cli.test_doctor import findings
from tests.e2e.program import Program, eventually

pytestmark = pytest.mark.long


@pytest.fixture
def remote() -> Iterator[Bucket]:
    with bucket.running() as running:
        yield running


def settings_of(place: Place, endpoint: str, *, key: str = ACCESS_KEY) -> dict[str, str]:
    return {
        **place.settings,
        "HEADRACE_FILES_URL": "s3://uploads/files",
        "HEADRACE_FILES_S3_ENDPOINT": endpoint,
        "HEADRACE_FILES_S3_ACCESS_KEY": key,
        "HEADRACE_FILES_S3_SECRET_KEY": SECRET_KEY,
    }


@pytest.mark.parametrize("command", ["up", "api", "worker"])
@pytest.mark.parametrize("wrong", ["bucket", "key"])
def test_a_process_that_may_not_use_its_storage_does_not_start(
    call: Call, migrated: Place, remote: Bucket, command: str, wrong: str
) -> None:  # W-02
    remote.missing = wrong == "bucket"
    done = call(command, settings=settings_of(migrated, remote.url, key="AKIAWRONG" if wrong == "key" else ACCESS_KEY))
    assert done.code == 7, done.err
    complaint = done.err.splitlines()[-1]
    assert complaint.startswith(f"headrace: s3://uploads/files at {remote.url}"), done.err
    assert {"bucket": "there is no such bucket", "key": "refuses the access key"}[wrong] in complaint
    assert complaint.endswith("See HEADRACE_FILES_URL and HEADRACE_FILES_S3_….")
    assert SECRET_KEY not in done.err


def test_a_folder_that_cannot_be_used_is_refused_too(call: Call, migrated: Place, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = call("api", settings={**migrated.settings, "HEADRACE_FILES_URL": str(tmp_path / "file" / "files")})
    assert done.code == 7
    assert "Not a directory. See HEADRACE_FILES_URL" in done.err


@pytest.mark.parametrize("removes", ["0", "1"])
def test_a_worker_that_names_no_storage_and_removes_no_marks_needs_none(
    call: Call, migrated: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removes: str
) -> None:
    """The handlers of its program may save no file."""

    async def work(*_: object) -> int:
        return 0

    monkeypatch.setattr(worker, "_work", work)
    monkeypatch.setattr(removal, "is_installed", lambda: True)
    (tmp_path / "headrace-data").mkdir()
    (tmp_path / "headrace-data" / "files").touch()
    settings = {
        **migrated.settings,
        "HEADRACE_DATA_DIR": str(tmp_path / "headrace-data"),
        "HEADRACE_REMOVAL_PROCESSES": removes,
    }
    done = call("worker", settings=settings)
    assert (done.code, "stopped" in done.err) == ((0, True) if removes == "0" else (7, False)), done.err


@pytest.mark.parametrize("wrong", ["bucket", "key", "endpoint"])
def test_doctor_names_what_is_wrong(call: Call, migrated: Place, remote: Bucket, wrong: str) -> None:
    remote.missing = wrong == "bucket"
    endpoint = "http://127.0.0.1:1" if wrong == "endpoint" else remote.url
    settings = settings_of(migrated, endpoint, key="AKIAWRONG" if wrong == "key" else ACCESS_KEY)
    done = call("doctor", "--json", settings=settings)
    found = findings(done)["files"]
    assert (done.code, found["verdict"]) == (1, "bad")
    # On a busy machine the tries to connect may outlast the check's own limit.
    unreachable = ("does not answer", "took longer than")
    expected = {"bucket": ("no such bucket",), "key": ("refuses the access key",), "endpoint": unreachable}[wrong]
    assert any(text in found["message"] for text in expected), found["message"]
    assert SECRET_KEY not in done.out


def test_an_api_starts_in_an_outage_and_says_so(migrated: Place, remote: Bucket, tmp_path: Path) -> None:
    remote.shutdown()
    remote.server_close()
    settings = {**settings_of(migrated, remote.url), "HEADRACE_API_HOST": "127.0.0.1"}
    api = Program("api", folder=tmp_path, settings=settings)
    try:
        url = api.url(within=120)
        assert "Starting without files: they answer 503 until storage is back." in api.err

        def ready() -> dict[str, Any]:
            reply = httpx2.get(f"{url}/readyz")
            assert reply.status_code == 200
            body: dict[str, Any] = reply.json()
            return body

        assert eventually(lambda: ready() == {"status": "ready", "degraded": ["storage"]})
        assert "headrace_storage_up 0" in httpx2.get(f"{url}/metrics").text
        assert "127.0.0.1:" not in httpx2.get(f"{url}/readyz").text
    finally:
        api.close()


async def test_the_watch_logs_each_change_once_and_asks_only_in_its_rounds(remote: Bucket) -> None:
    options = {"endpoint": remote.url, "access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
    storage = Storage(StorageConfig("s3://uploads/files", options))
    watch = StorageWatch(storage)
    try:
        with capture_logs() as logged:
            for remote.missing in (False, True, True, False, False):
                await watch.run_once()
                remote.refused = 0
                assert watch.degraded() == (("storage",) if remote.missing else ())
                (figure,) = watch.read_figures()
                assert (figure.name, figure.values) == ("headrace_storage_up", {(): int(not remote.missing)})
        assert [each["event"] for each in logged] == ["storage.unreachable", "storage.reachable_again"]
        assert "there is no such bucket" in logged[0]["reason"]
    finally:
        await storage.close()
