"""HEIF as a format of Pillow, for code that opens any picture by ``Image.open``."""

from typing import Any

from PIL import Image, ImageFile

from headrace.assets.heif.decoding import decode, has_alpha, size_of
from headrace.assets.heif.items import GENERAL_BRANDS, HEVC_BRANDS, HeifError, Items
from headrace.assets.heif.notes import read_notes

FORMAT = "HEIF"


class HeifImage(ImageFile.ImageFile):
    """The primary picture of the file. ``n_frames`` counts the others as well."""

    format = FORMAT
    format_description = "HEIF picture coded by HEVC"

    def _open(self) -> None:
        file: Any = self.fp
        file.seek(0, 2)
        size = file.tell()

        def read_at(offset: int, count: int) -> bytes:
            file.seek(offset)
            content: bytes = file.read(count)
            return content

        try:
            self._items = Items(read_at, size)
            self._item = self._items.primary
            self._size = size_of(self._items, self._item)
            notes = read_notes(self._items, self._item)
        except HeifError as exc:
            raise SyntaxError(str(exc)) from exc
        self._mode = "RGBA" if has_alpha(self._items, self._item) else "RGB"
        self.n_frames = max(1, len(self._items.shown))
        named = {"exif": notes.exif and b"Exif\0\0" + notes.exif, "xmp": notes.xmp, "icc_profile": notes.profile}
        self.info.update({name: content for name, content in named.items() if content})
        self.tile = []

    def load(self) -> Any:
        if getattr(self, "_im", None) is None:
            try:
                picture = decode(self._items, self._item)
            except HeifError as exc:
                raise OSError(str(exc)) from exc
            self._mode, self._size = picture.mode, picture.size
            self.im = picture.im
        return super().load()


def register() -> None:
    """Let ``Image.open`` read HEIF. Any number of times."""

    def accepts(prefix: bytes) -> bool:
        return prefix[4:8] == b"ftyp" and prefix[8:12] in HEVC_BRANDS | GENERAL_BRANDS

    Image.register_open(FORMAT, HeifImage, accepts)
    Image.register_mime(FORMAT, "image/heif")
    Image.register_extensions(FORMAT, [".heic", ".heif", ".hif"])
