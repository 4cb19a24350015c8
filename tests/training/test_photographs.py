"""Where training's photographs come from, and which of them it never sees."""

import hashlib
import io
import json
import struct
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import ContentTooShortError

import pytest
from PIL import Image

from training import photographs
from training.photographs import LISTED, calibration_photographs, evaluation_files
from training.resources import resource


def test_evaluation_and_calibration_are_kept_apart() -> None:
    sources = json.loads(LISTED.read_text())["sources"]
    kept = {source["path"] for source in sources if source["role"] == "calibration"}
    assert len(evaluation_files()) == len(kept) == 16
    assert not kept & {source["path"] for source in sources if source["role"] != "calibration"}
    assert all(source["licence"] for source in sources)
    parcels = json.loads(LISTED.read_text())["parcels"]
    assert set(parcels) == {source["package"] for source in sources if source["package"].startswith("pool/")}
    assert len({(source["package"], source["path"]) for source in sources}) == len(sources)


def test_a_photograph_is_taken_from_the_package_it_came_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (8, 6), "teal").save(picture, "JPEG")
    parcel = tmp_path / "parcels" / "views@1.0.0" / "scope-views-1.0.0.tgz"
    parcel.parent.mkdir(parents=True)
    with tarfile.open(parcel, "w:gz") as archive:
        for name in ("package/photos/Lake.JPG", "package/index.js"):
            member = tarfile.TarInfo(name)
            member.size = len(picture.getvalue())
            archive.addfile(member, io.BytesIO(picture.getvalue()))
    source = {"package": "@scope/views@1.0.0", "path": "photos/Lake.JPG", "licence": "MIT", "role": "calibration"}
    listed = tmp_path / "photos.json"
    listed.write_text(json.dumps({"sources": [source]}))
    monkeypatch.setattr(photographs, "LISTED", listed)
    assert [photograph.image.size for photograph in calibration_photographs(tmp_path)] == [(8, 6)]
    assert [path.name for path in (tmp_path / "views@1.0.0").rglob("*.*")] == ["Lake.JPG"]


def test_a_download_that_broke_off_or_is_another_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = b"the whole parcel"
    parts = [whole[:6], b"another parcel!!", whole]

    class Mirror(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(parts.pop(0))

    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(photographs, "MIRROR", f"http://127.0.0.1:{server.server_port}/")
        package, folder = "pool/main/v/views_1.0_all.deb", tmp_path / "parcels" / "views_1.0_all.deb"
        listed = tmp_path / "photos.json"
        listed.write_text(json.dumps({"parcels": {package: hashlib.sha256(whole).hexdigest()}}))
        monkeypatch.setattr(photographs, "LISTED", listed)
        with pytest.raises(ContentTooShortError):
            photographs._parcel(package, folder)
        with pytest.raises(ValueError, match=r"views_1\.0_all\.deb is not the file that photos\.json lists"):
            photographs._parcel(package, folder)
        assert photographs._parcel(package, folder).read_bytes() == whole
        assert photographs._parcel(package, folder).read_bytes() == whole, "and it is not fetched again"
        server.shutdown()


def test_a_file_is_read_from_an_archive_of_resources(tmp_path: Path) -> None:
    def name(text: str) -> bytes:
        return struct.pack(">HI", len(text), 0) + text.encode("utf-16-be")

    content = b"a picture"
    names = name("folder") + name("p.jpg")
    # The root holds one folder, the folder one file.
    tree = (
        struct.pack(">IHII", 0, 2, 1, 1)
        + struct.pack(">IHII", 0, 2, 1, 2)
        + struct.pack(">IHHHI", len(name("folder")), 0, 0, 0, 0)
    )
    data = struct.pack(">I", len(content)) + content
    header = b"qres" + struct.pack(">4I", 1, 20, 20 + len(tree), 20 + len(tree) + len(data))
    (tmp_path / "a.rcc").write_bytes(header + tree + data + names)
    assert resource(tmp_path / "a.rcc", "/folder/p.jpg") == content
    with pytest.raises(IsADirectoryError):
        resource(tmp_path / "a.rcc", "folder")
