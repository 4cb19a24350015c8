"""Where a bucket's keys come from (W-18): settings, environment, profile, web identity, container and instance roles.

AWS's services that hand out keys are played by a server on this machine.
"""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headrace.storage import Storage, StorageConfig, StorageRefused
from headrace.storage import credentials as module
from headrace.storage.credentials import CredentialSource, region_of
from tests.archive import bucket
from tests.archive.bucket import ACCESS_KEY, SECRET_KEY, Bucket

TOKEN = "session token of a role"


class KeyServer(ThreadingHTTPServer):
    """Instance metadata, container credentials and STS at one address. ``lifetime`` is that of the keys."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lifetime = timedelta(hours=6)
        self.given = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def keys(self) -> dict[str, str]:
        self.given += 1
        until = datetime.now(UTC) + self.lifetime
        return {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": ACCESS_KEY,
            "SecretAccessKey": SECRET_KEY,
            "Token": TOKEN,
            "LastUpdated": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "Expiration": f"{until:%Y-%m-%dT%H:%M:%SZ}",
        }


class _Handler(BaseHTTPRequestHandler):
    server: KeyServer

    def do_PUT(self) -> None:
        self._answer("metadata token")

    def do_GET(self) -> None:
        if self.path.endswith("/security-credentials/"):
            self._answer("the-role")
        elif self.path.endswith(("/the-role", "/container")):
            self._answer(json.dumps(self.server.keys()))
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert "Action=AssumeRoleWithWebIdentity" in body
        assert "WebIdentityToken=token+of+the+cluster" in body
        keys = self.server.keys()
        fields = {"AccessKeyId": "AccessKeyId", "SecretAccessKey": "SecretAccessKey", "SessionToken": "Token"}
        inside = "".join(f"<{name}>{keys[key]}</{name}>" for name, key in fields.items())
        self._answer(
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
            f"{inside}<Expiration>{keys['Expiration']}</Expiration></Credentials>"
            "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )

    def _answer(self, text: str) -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-aws-ec2-metadata-token-ttl-seconds", "21600")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Quietly."""


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[KeyServer]:
    """A machine without any keys, and the server that would give some."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "REGION", "DEFAULT_REGION"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with KeyServer() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def profile(aws: KeyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        f"[other]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    (tmp_path / "config").write_text("[profile other]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_PROFILE", "other")


@pytest.fixture
def instance(aws: KeyServer, monkeypatch: pytest.MonkeyPatch) -> KeyServer:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"{aws.url}/")
    return aws


@pytest.fixture
def container(aws: KeyServer, monkeypatch: pytest.MonkeyPatch) -> KeyServer:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{aws.url}/container")
    return aws


@pytest.fixture
def web_identity(aws: KeyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KeyServer:
    (tmp_path / "token").write_text("token of the cluster")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/headrace")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return aws


@pytest.fixture
def remote() -> Iterator[Bucket]:
    with bucket.running() as running:
        yield running


def storage_at(remote: Bucket) -> Storage:
    return Storage(StorageConfig("s3://months/headrace", {"endpoint": remote.url}))


@pytest.mark.parametrize("source", ["profile", "instance", "container", "web_identity"])
async def test_objects_parts_and_links_use_the_same_keys(
    source: str, remote: Bucket, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    request.getfixturevalue(source)
    storage = storage_at(remote)
    await storage.put_bytes("whole", b"object")
    assert await storage.read_bytes("whole") == b"object"
    assert storage.bucket is not None
    upload = await storage.bucket.begin("parts")
    (tmp_path / "part").write_bytes(b"")  # the test's bucket compares digests, which streamed parts do not have
    link = await storage.link("whole", expires_in=timedelta(hours=1), headers={})
    assert link is not None
    assert f"X-Amz-Credential={ACCESS_KEY}" in link
    assert ("X-Amz-Security-Token=" in link) is (source != "profile")
    if source == "profile":  # it names a region as well: obstore does not read it
        assert storage.bucket._store.config["region"] == "eu-central-1"
        assert "%2Feu-central-1%2F" in link
    parts = await storage.bucket.part_links("parts", upload, {1: 10}, expires_in=timedelta(hours=1))
    assert f"X-Amz-Credential={ACCESS_KEY}" in parts[1]
    assert remote.refused == 0
    await storage.close()


async def test_keys_of_the_settings_come_first(instance: KeyServer, remote: Bucket) -> None:
    options = {"endpoint": remote.url, "access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
    storage = Storage(StorageConfig("s3://months/headrace", options))
    await storage.check()
    assert instance.given == 0


async def test_a_role_is_asked_once_for_many_requests(instance: KeyServer, remote: Bucket) -> None:
    storage = storage_at(remote)
    for number in range(5):
        await storage.put_bytes(f"object-{number}", b"x")
    await asyncio.gather(*(storage.link(f"{n}", expires_in=timedelta(hours=1), headers={}) for n in range(5)))
    assert instance.given == 1


async def test_a_link_does_not_outlive_the_keys(instance: KeyServer) -> None:
    instance.lifetime = timedelta(minutes=30)
    current = await CredentialSource({}).current()
    assert current is not None
    assert current.valid_for is not None
    assert timedelta(minutes=20) < current.valid_for <= timedelta(minutes=30)


async def test_keys_without_an_end_limit_no_link(profile: None) -> None:
    current = await CredentialSource({}).current()
    assert current is not None
    assert current.valid_for is None
    assert region_of({}) == "eu-central-1"


async def test_no_keys_at_all_are_named(aws: KeyServer, remote: Bucket) -> None:
    storage = storage_at(remote)
    assert await storage.link("x", expires_in=timedelta(hours=1), headers={}) is None
    assert storage.bucket is not None
    with pytest.raises(StorageRefused) as refusal:
        await storage.bucket.begin("x")
    assert "need credentials" in refusal.value.operator_message


async def test_without_botocore_the_extra_is_named(
    instance: KeyServer, remote: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_installed", lambda _name: False)
    storage = storage_at(remote)
    assert storage.bucket is not None
    with pytest.raises(StorageRefused) as refusal:
        await storage.bucket.begin("x")
    assert "extra `aws`" in refusal.value.operator_message


async def test_an_unknown_profile_is_named_without_any_key(
    aws: KeyServer, remote: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(StorageRefused) as refusal:
        await CredentialSource({}).current()
    assert re.search(r"profile .*missing", refusal.value.operator_message)
    with pytest.raises(StorageRefused) as refusal:
        storage_at(remote)
    assert "missing" in refusal.value.operator_message
