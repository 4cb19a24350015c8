"""Where a picture comes from and where results go: judged before anything is computed, written in one step."""

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from headrace.removal.errors import PictureUnreadable, TargetExists, TargetUnusable
from headrace.removal.media import document_of

# The kinds that are written, by the ending of the file's name.
KINDS = {
    ".jpg": "JPEG", ".jpeg": "JPEG", ".jfif": "JPEG", ".png": "PNG", ".webp": "WEBP", ".tif": "TIFF", ".tiff": "TIFF",
    ".bmp": "BMP", ".gif": "GIF", ".jp2": "JPEG2000", ".avif": "AVIF",
}  # fmt: skip
_CLIP_ENDINGS = (".mp4", ".m4v", ".mov", ".mkv", ".webm")
_DOCUMENT_ENDINGS = {
    "pdf": (".pdf",), "pptx": (".pptx", ".ppsx", ".potx", ".pptm"), "ppt": (".ppt", ".pps", ".pptx")
}  # fmt: skip
_DRAFT = re.compile(r"\.headrace-([0-9]+)-[0-9a-f]{12}(\..*)?")
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


def require_source(source: Path) -> None:
    """Raises :class:`PictureUnreadable` for what is no file with something in it."""
    try:
        found = source.stat()
    except (FileNotFoundError, NotADirectoryError):
        if _URL.match(str(source)):
            raise PictureUnreadable(f"{source} is an address: only files are read. Download it first.") from None
        raise PictureUnreadable(f"There is no file {source}.") from None
    except OSError as exc:
        raise PictureUnreadable(f"{source} cannot be read: {exc.strerror}.") from exc
    if stat.S_ISDIR(found.st_mode):
        raise PictureUnreadable(f"{source} is no file but a folder: name one picture in it.")
    if not stat.S_ISREG(found.st_mode):
        raise PictureUnreadable(f"{source} is no file but a pipe or a device: only files are read.")
    if found.st_size == 0:
        raise PictureUnreadable(f"The file is empty: {source}.")


def require_result(target: Path, source: Path, *, force: bool, media: str = "IMAGE") -> None:
    """Raises unless the result can go there; in the place of the source itself only with ``force``.

    An ending that is not known passes where it is the source's own, but for clips: what its content is decides then.
    """
    ending = target.suffix.lower()
    if media == "IMAGE" and ending not in KINDS and target.suffix != source.suffix:
        raise TargetUnusable(
            f"{target} has an ending that is not known: let --to name a file that ends in {', '.join(KINDS)}."
        )
    endings = _CLIP_ENDINGS if media == "VIDEO" else _DOCUMENT_ENDINGS.get(document_of(source) or "", ())
    if endings and ending not in endings and (media == "VIDEO" or target.suffix != source.suffix):
        raise TargetUnusable(f"{target} has an ending of another kind: let it end in {', '.join(endings)}.")
    what = {"IMAGE": "picture", "VIDEO": "clip"}.get(media, "document")
    _require_place(target)
    if target.exists() and not force:
        how = f"is the {what} itself" if target.samefile(source) else "exists"
        raise TargetExists(f"{target} {how}: name another file, or add --force to replace it.")


def require_mask(target: Path, source: Path, *, force: bool, what: str = "mask") -> None:
    """Raises unless the mask can go there; never in the place of the picture itself."""
    if target.suffix.lower() != ".png":
        raise TargetUnusable(f"A {what} is a PNG file: let {target} end in .png.")
    _require_place(target)
    if not target.exists():
        return
    if target.samefile(source):
        raise TargetExists(f"{target} is the picture itself, with --force, too: name another file for the {what}.")
    if not force:
        raise TargetExists(f"{target} exists: name another file, or add --force to replace it.")


def _require_place(target: Path) -> None:
    place = _real(target)
    try:
        if place.exists() and not place.is_file():
            raise TargetUnusable(f"{target} is a folder, a pipe or a device: name a file.")
        if not place.parent.is_dir():
            raise TargetUnusable(f"There is no folder {place.parent} for {target.name}: make it first.")
    except OSError as exc:
        raise TargetUnusable(f"{target} cannot be written: {exc.strerror}.") from exc
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise TargetUnusable(f"{target} cannot be written: its folder allows no new files.")


def _real(target: Path) -> Path:
    """The file behind links: a link stays one."""
    return Path(os.path.realpath(target))


@contextlib.contextmanager
def written_at_once(target: str | None, *, force: bool) -> Iterator[str | None]:
    """A name beside the target to write to; takes its place in the end if something was written, or vanishes."""
    if target is None:
        yield None
        return
    place = _real(Path(target))
    _sweep(place.parent)
    draft = place.with_name(f".headrace-{os.getpid()}-{secrets.token_hex(6)}{place.suffix}")
    try:
        draft.touch(exist_ok=False)  # whether one may write there is known for certain only by doing it
    except OSError as exc:
        raise TargetUnusable(f"{target} cannot be written: {exc.strerror}.") from exc
    try:
        yield str(draft)
        if draft.exists() and draft.stat().st_size > 0:
            _take_its_place(draft, place, target, force=force)
    finally:
        draft.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what processes have left here that were killed while they wrote."""
    for left in folder.glob(".headrace-*-*"):
        owner = _DRAFT.fullmatch(left.name)
        if owner is not None and not _is_alive(int(owner[1])):
            with contextlib.suppress(OSError):
                left.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process
        return True
    return True


def _take_its_place(draft: Path, place: Path, target: str, *, force: bool) -> None:
    try:
        if place.exists():
            if not force:  # since it was looked at first
                raise TargetExists(f"{target} exists by now: name another file, or add --force to replace it.")
            shutil.copymode(place, draft)
        # On disk before it replaces anything: a power cut leaves the old file or the new one.
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(place)
    except OSError as exc:
        raise TargetUnusable(f"{target} could not be written: {exc.strerror}.") from exc
