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
from collections.abc import Container, Iterator
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
# How long the longer side may be: most crops reduce it.
LONGEST = {"photo": 740, "refiner": 900, "text": 740, "plain": 1440, "screen": 1440, "calibration": 1440}
CALIBRATION = ("calibration", "calibration-text")


@dataclass(frozen=True)
class Photograph:
    name: str
    # photo, text (with text or graphics of its own), or calibration and calibration-text: kept out of training, to fit
    # the judge with. Of photos.json, refiner: what the refiner is taught with; all of that file fits the judge.
    role: str
    licence: str
    image: Image.Image


def evaluation_files() -> frozenset[str]:
    """The files of the shared folder that never enter training."""
    return frozenset(json.loads(LISTED.read_text())["evaluation"])


def repository_pictures(mirrors: Path | None, roles: Container[str] = ("photo", "text")) -> Iterator[Photograph]:
    """Photographs, and pictures with text of their own, of the repositories that ``pictures.json`` names."""
    for source in json.loads(IN_REPOSITORIES.read_text()):
        if source["role"] not in roles:
            continue
        contents = blobs(source["repository"], [blob for _, blob in source["pictures"]], mirrors)
        for (path, _), content in zip(source["pictures"], contents, strict=True):
            name = f"{source['repository']}:{path}"
            yield _opened(io.BytesIO(content), name, source["role"], source["licence"])


def refiner_photographs(cache: Path) -> Iterator[Photograph]:
    """Those that teach the refiner: the detector never learns from them."""
    yield from _listed(cache, ("refiner",))


def calibration_photographs(cache: Path) -> Iterator[Photograph]:
    """Those to fit the judge with, which taught the detector nothing."""
    yield from _listed(cache, ("calibration", "photo", "plain", "screen", "refiner"))


def _listed(cache: Path, roles: Container[str]) -> Iterator[Photograph]:
    for source in json.loads(LISTED.read_text())["sources"]:
        if source["role"] not in roles:
            continue
        folder = _fetched(source["package"], cache)
        archive, inside, inner = source["path"].partition(".rcc/")
        file = io.BytesIO(resource(folder / f"{archive}.rcc", inner)) if inside else folder / source["path"]
        yield _opened(file, source["path"], source["role"], source["licence"])


def _opened(path: Path | io.BytesIO, name: str, role: str, licence: str) -> Photograph:
    longest = LONGEST.get(role, 1440)
    with Image.open(path) as opened:
        opened.draft("RGB", (longest, longest))  # a JPEG is read at a half or less where that is enough
        drawn = opened.convert("RGBA")
    image = Image.new("RGBA", drawn.size, "white")
    image.alpha_composite(drawn)
    image = image.convert("RGB")
    image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
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
