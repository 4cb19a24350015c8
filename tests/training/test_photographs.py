"""Where training's photographs come from, and which of them it never sees."""

import json
import struct
from pathlib import Path

import pytest

from training.photographs import LISTED, evaluation_files
from training.resources import resource


def test_evaluation_and_calibration_are_kept_apart() -> None:
    sources = json.loads(LISTED.read_text())["sources"]
    kept = {source["path"] for source in sources if source["role"] == "calibration"}
    assert len(evaluation_files()) == len(kept) == 16
    assert not kept & {source["path"] for source in sources if source["role"] != "calibration"}
    assert all(source["licence"] for source in sources)


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
