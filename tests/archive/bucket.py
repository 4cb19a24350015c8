"""A bucket on this machine: as much of S3's protocol as storing, listing and fetching files needs."""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "a secret of the tests"


class Bucket(ThreadingHTTPServer):
    """Objects by path (``/bucket/key``). A part that was uploaded is an object only when the upload was completed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.refused = 0
        self.missing = False  # as if the bucket did not exist

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bucket

    def do_PUT(self) -> None:
        path, query, body = self._received()
        if not self._signed(body):
            return
        if "partNumber" in query:
            self.server.parts[query["uploadId"][0]][int(query["partNumber"][0])] = body
        else:
            self.server.objects[path] = body
        self._answer(200, etag=hashlib.md5(body).hexdigest())

    def do_POST(self) -> None:
        path, query, body = self._received()
        if not self._signed(body):
            return
        if "uploads" in query:
            upload = str(len(self.server.parts) + 1)
            self.server.parts[upload] = {}
            self._answer(
                200, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
            return
        if "delete" in query:
            keys = re.findall(r"<Key>([^<]+)</Key>", body.decode())
            for key in keys:
                self.server.objects.pop(f"{path.rstrip('/')}/{key}", None)
            deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>")
            return
        parts = self.server.parts.pop(query["uploadId"][0])
        self.server.objects[path] = b"".join(parts[number] for number in sorted(parts))
        self._answer(200, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")

    def do_HEAD(self) -> None:
        if self._signed(b""):
            found = self.server.objects.get(urlsplit(self.path).path)
            self._answer(404 if found is None else 200, found or b"", etag="x")

    def do_GET(self) -> None:
        path, query, body = self._received()
        if not self._signed(body):
            return
        if "list-type" in query:
            self._list(path, query)
            return
        if path not in self.server.objects:
            self._answer(404, "<Error><Code>NoSuchKey</Code></Error>")
            return
        content = self.server.objects[path]
        self._answer(200, content, etag=hashlib.md5(content).hexdigest())

    def _list(self, bucket: str, query: dict[str, list[str]]) -> None:
        """Two at a time, so that whoever lists must ask for more."""
        start = f"{bucket.rstrip('/')}/"
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        keys = sorted(path.removeprefix(start) for path in self.server.objects if path.startswith(start + prefix))
        rest = [key for key in keys if key > after]
        found = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.server.objects[start + key])}</Size>"
            "<LastModified>2026-11-15T12:00:00.000Z</LastModified></Contents>"
            for key in rest[:2]
        )
        more = f"<NextContinuationToken>{rest[1]}</NextContinuationToken>" if len(rest) > 2 else ""
        self._answer(200, f"<ListBucketResult>{found}{more}</ListBucketResult>")

    def _received(self) -> tuple[str, dict[str, list[str]], bytes]:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return parts.path, parse_qs(parts.query, keep_blank_values=True), body

    def _signed(self, body: bytes) -> bool:
        """Whether the request was signed with the right access key, over this very body."""
        if self.server.missing:
            self._answer(404, "<Error><Code>NoSuchBucket</Code><BucketName>months</BucketName></Error>")
            return False
        signature = re.search(r"Credential=(\w+)/", self.headers.get("Authorization") or "")
        digest = self.headers.get("x-amz-content-sha256")
        if signature and signature[1] == ACCESS_KEY and digest == hashlib.sha256(body).hexdigest():
            return True
        self.server.refused += 1
        self._answer(403, "<Error><Code>AccessDenied</Code></Error>")
        return False

    def _answer(self, status: int, body: str | bytes = b"", *, etag: str | None = None) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        if etag is not None:
            self.send_header("ETag", f'"{etag}"')
        self.send_header("Last-Modified", "Sun, 15 Nov 2026 12:00:00 GMT")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Quietly."""


@contextmanager
def running() -> Iterator[Bucket]:
    with Bucket() as bucket:
        thread = threading.Thread(target=bucket.serve_forever, daemon=True)
        thread.start()
        try:
            yield bucket
        finally:
            bucket.shutdown()
            thread.join()
