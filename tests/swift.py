"""A real S3 server: OpenStack Swift's s3api, from Debian's packages (swift-proxy, -account, -container, -object).

``apt-get install swift-proxy swift-account swift-container swift-object`` installs it; where it is not, tests that need
one are skipped. All four servers run as children of the test process in a folder of their own, on ports that the system
gives, and go with it.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.storage import StorageConfig

ACCESS_KEY, SECRET_KEY = "test:tester", "testing"
_PROGRAMS = ("swift-proxy-server", "swift-account-server", "swift-container-server", "swift-object-server")
_PYTHON = "/usr/bin/python3"  # the packages are Debian's, and so is the interpreter that finds them

_SWIFT = """
[swift-hash]
swift_hash_path_suffix = tests
[storage-policy:0]
name = one
default = yes
[swift-constraints]
max_header_size = 16384
"""
_SERVER = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 0
user = {user}
log_address = {folder}/no-log
disable_fallocate = true
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
_PROXY = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {folder}
workers = 0
user = {user}
log_address = {folder}/no-log
[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
min_segment_size = 5242880
"""


@dataclass(frozen=True, slots=True)
class Swift:
    url: str

    def config(self, bucket: str) -> StorageConfig:
        return StorageConfig(
            f"s3://{bucket}/files",
            {
                "endpoint": self.url,
                "access_key_id": ACCESS_KEY,
                "secret_access_key": SECRET_KEY,
                "region": "us-east-1",
            },
        )

    def make_bucket(self, name: str) -> None:
        from headrace.storage.signing import Credentials, Signer

        signer = Signer(self.url, name, "us-east-1", Credentials(ACCESS_KEY, SECRET_KEY))
        headers = signer.headers("PUT", "", {}, b"")
        request = urllib.request.Request(signer.url(""), method="PUT", headers=headers, data=b"")
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert reply.status == 200


def is_installed() -> bool:
    return all(shutil.which(program) for program in _PROGRAMS)


@contextmanager
def running(folder: Path) -> Iterator[Swift]:
    """The four servers, ready to answer."""
    folder.mkdir(parents=True)
    (folder / "swift.conf").write_text(_SWIFT)
    (folder / "devices" / "d1").mkdir(parents=True)
    ports = _free_ports(4)
    user = _user()
    with ExitStack() as stack:
        for kind, port in zip(("account", "container", "object"), ports, strict=False):
            _make_ring(folder, kind, port)
            config = folder / f"{kind}.conf"
            config.write_text(_SERVER.format(kind=kind, port=port, folder=folder, user=user))
            stack.enter_context(_process(folder, f"swift-{kind}-server", config))
        config = folder / "proxy.conf"
        config.write_text(_PROXY.format(port=ports[3], folder=folder, user=user))
        proxy = stack.enter_context(_process(folder, "swift-proxy-server", config))
        url = f"http://127.0.0.1:{ports[3]}"
        _await(url, proxy, folder)
        yield Swift(url)


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def _make_ring(folder: Path, kind: str, port: int) -> None:
    builder = str(folder / f"{kind}.builder")
    for command in (
        ["create", "4", "1", "0"],
        ["add", f"r1z1-127.0.0.1:{port}/d1", "1"],
        ["rebalance"],
    ):
        arguments = ["swift-ring-builder", builder, *command]
        subprocess.run(arguments, check=True, capture_output=True, cwd=folder, env=_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SWIFT_CONF_DIR": str(folder)}


@contextmanager
def _process(folder: Path, program: str, config: Path) -> Iterator[subprocess.Popen[bytes]]:
    # Swift reads swift.conf from /etc/swift, unless it is told otherwise before it is loaded.
    code = (
        "import sys, swift.common.utils as u\n"
        f"u.SWIFT_CONF_FILE = {str(folder / 'swift.conf')!r}\n"
        f"sys.argv = [{program!r}, {str(config)!r}]\n"
        f"exec(compile(open({shutil.which(program)!r}).read(), {program!r}, 'exec'))\n"
    )
    with (folder / f"{program}.log").open("wb") as log:
        process = subprocess.Popen(
            [_PYTHON, "-c", code], stdout=log, stderr=log, cwd=folder, env=_environment(folder), start_new_session=True
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await(url: str, proxy: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=5)
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            log = (folder / "swift-proxy-server.log").read_text()
            assert proxy.poll() is None, f"Swift has ended: {log}"
            assert time.monotonic() < end, f"Swift does not answer: {log}"
            time.sleep(0.1)
        else:
            return


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    import sys

    with running(Path(sys.argv[1])) as swift:
        print(swift.url, flush=True)  # noqa: T201
        asyncio.run(asyncio.sleep(float(sys.argv[2])))
