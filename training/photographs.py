"""Where the photographs come from, and which of them training may see.

``photos.json`` names every source with its licence, the photographs that are kept for evaluation, and the SHA-256 of
what comes from Debian's archive, as its signed indexes have it: its mirrors are read without TLS.
"""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from training.repositories import blobs
from training.resources import resource

LISTED = Path(__file__).with_name("photos.json")
IN_REPOSITORIES = Path(__file__).with_name("pictures.json")
MIRROR = "http://deb.debian.org/debian/"
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
# How long the longer side may be: what has little detail needs few pixels.
LONGEST = {"photo": 900, "refiner": 900, "plain": 900, "screen": 1100, "text": 1000, "calibration": 1440}


@dataclass(frozen=True)
class Photograph:
    name: str
    # photo, plain (drawn, little detail), screen and text (which belongs to the picture), refiner (a photograph that
    # the eye is never taught with), or calibration: kept out of training, to choose thresholds and fit the score with.
    role: str
    licence: str
    image: Image.Image


def evaluation_files() -> frozenset[str]:
    """The files of the shared folder that never enter training."""
    return frozenset(json.loads(LISTED.read_text())["evaluation"])


def training_photographs(shared: Path, cache: Path) -> Iterator[Photograph]:
    """Every photograph that training may see: the shared folder's without the evaluation's, and the listed sources."""
    kept_out = evaluation_files()
    for entry in json.loads((shared / "manifest.json").read_text()):
        if entry["file"] not in kept_out:
            yield _opened(shared / entry["file"], entry["file"], "photo", entry["licence"])
    yield from (photograph for photograph in _listed(cache) if photograph.role != "calibration")


def repository_pictures(mirrors: Path | None) -> Iterator[Photograph]:
    """Photographs, and pictures with text of their own, of the repositories that ``pictures.json`` names."""
    for source in json.loads(IN_REPOSITORIES.read_text()):
        contents = blobs(source["repository"], [blob for _, blob in source["pictures"]], mirrors)
        for (path, _), content in zip(source["pictures"], contents, strict=True):
            yield _opened(io.BytesIO(content), path, source["role"], source["licence"])


def calibration_photographs(cache: Path) -> Iterator[Photograph]:
    """Those to choose thresholds on."""
    yield from (photograph for photograph in _listed(cache) if photograph.role == "calibration")


def _listed(cache: Path) -> Iterator[Photograph]:
    for source in json.loads(LISTED.read_text())["sources"]:
        folder = _fetched(source["package"], cache)
        archive, inside, inner = source["path"].partition(".rcc/")
        file = io.BytesIO(resource(folder / f"{archive}.rcc", inner)) if inside else folder / source["path"]
        yield _opened(file, source["path"], source["role"], source["licence"])


def _opened(path: Path | io.BytesIO, name: str, role: str, licence: str) -> Photograph:
    with Image.open(path) as opened:
        drawn = opened.convert("RGBA")
    image = Image.new("RGBA", drawn.size, "white")
    image.alpha_composite(drawn)
    image = image.convert("RGB")
    image.thumbnail((LONGEST[role], LONGEST[role]), Image.Resampling.LANCZOS)
    return Photograph(name, role, licence, image)


def _fetched(package: str, cache: Path) -> Path:
    """The unpacked package."""
    name = package.rsplit("/", 1)[-1]
    folder = cache / name
    if folder.is_dir():
        return folder
    parcel = _parcel(package, cache / "parcels" / name)
    unpacking = folder.with_name(folder.name + ".part")
    shutil.rmtree(unpacking, ignore_errors=True)
    unpacking.mkdir()
    _unpack(parcel, unpacking)
    unpacking.rename(folder)
    return folder


def _parcel(package: str, folder: Path) -> Path:
    """The file it comes in. Debian's are named by path in the archive, PyPI's name==version, npm's name@version."""
    if not folder.is_dir():
        fetching = folder.with_name(folder.name + ".part")  # what broke off is no parcel
        shutil.rmtree(fetching, ignore_errors=True)
        fetching.mkdir(parents=True)
        _fetch(package, fetching)
        fetching.rename(folder)
    return next(folder.iterdir())


def _fetch(package: str, folder: Path) -> None:
    if package.startswith("pool/"):
        parcel = folder / package.rsplit("/", 1)[-1]
        urllib.request.urlretrieve(MIRROR + package, parcel)
        _require_hash(package, parcel)
    elif "==" in package:
        # Wheels only: for anything else pip runs the package's own code.
        only = ["--no-deps", "--only-binary=:all:", "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *only, package], check=True)
    else:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _require_hash(package: str, parcel: Path) -> None:
    with parcel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    listed = json.loads(LISTED.read_text())["parcels"].get(package)
    if found != listed:
        raise ValueError(f"{package} is not the file that {LISTED.name} lists: its SHA-256 is {found}, not {listed}")


def _unpack(parcel: Path, folder: Path) -> None:
    if parcel.suffix == ".whl":
        with zipfile.ZipFile(parcel) as wheel:
            wheel.extractall(folder)
    elif parcel.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", str(parcel), str(folder)], check=True)
    else:
        with tarfile.open(parcel) as archive:
            for member in archive:
                # The archive's first folder carries its version.
                member.name = member.name.partition("/")[2]
                if member.isfile() and member.name.lower().endswith(PICTURES):
                    _extract(archive, member, folder)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file of the archive below the folder. Python 3.11.2 has no ``filter="data"`` for this."""
    target = (folder / member.name).resolve()
    if not target.is_relative_to(folder.resolve()):
        raise ValueError(f"{member.name} lies outside of the archive")
    content = archive.extractfile(member)
    assert content is not None  # a plain file
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("wb") as file:
        shutil.copyfileobj(content, file)
