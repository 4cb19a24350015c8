"""A HEIF picture decoded by FFmpeg: coded, or composed of tiles or layers; then cropped, turned and mirrored."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.assets.heif.items import ALPHA, HeifDamaged, HeifUnsupported, Item, Items

_MAX_DEPTH = 8  # pictures composed of pictures
_MAX_PARTS = 70_000  # pictures that are decoded for one: the largest grid has 65,536 tiles
_MAX_SIDE_PX = 65_535
_FULL_RANGE, _VIDEO_RANGE = 2, 1  # FFmpeg's numbers
_BT601 = 5
# The codes of ISO/IEC 23091-2 for the matrix, as swscale numbers them. 2 is "unspecified".
_MATRICES = {1: 1, 2: _BT601, 4: 4, 5: _BT601, 6: _BT601, 7: 7, 9: 9, 10: 9}


@dataclass(frozen=True, slots=True)
class _Colours:
    matrix: int
    full_range: bool


def size_of(items: Items, item: Item) -> tuple[int, int]:
    """Width and height as shown, by what the file declares: nothing is decoded."""
    width, height = _uncropped_size(items, item)
    for each in item.properties:
        if each.kind == b"clap":
            left, top, right, bottom = _aperture(each.body, width, height)
            width, height = right - left, bottom - top
        elif each.kind == b"irot" and each.body and each.body[0] & 1:
            width, height = height, width
    return width, height


def has_alpha(items: Items, item: Item) -> bool:
    return _alpha_of(items, item) is not None


def bits_of(items: Items, item: Item) -> int | None:
    """Bits a colour, where the file says so."""
    configuration = _first_coded(items, item).first(b"hvcC")
    return None if configuration is None or len(configuration) < 23 else 8 + (configuration[17] & 7)


def decode(items: Items, item: Item) -> Any:
    """A Pillow picture: RGB or grey, with alpha where the file has a plane of it."""
    decoder = _Decoder(items)
    picture = decoder.decode(item)
    alpha = _alpha_of(items, item)
    if alpha is not None:
        plane = decoder.decode(alpha).convert("L")
        if plane.size != picture.size:
            plane = plane.resize(picture.size)
        if picture.mode not in ("L", "RGB"):
            picture = picture.convert("RGB")
        picture.putalpha(plane)
    return picture


class _Decoder:
    """Decodes the items of one file; tiles share one codec, since they share its configuration."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._codecs: dict[bytes, Any] = {}
        self._parts = 0

    def decode(self, item: Item, depth: int = 0) -> Any:
        self._parts += 1
        if depth > _MAX_DEPTH or self._parts > _MAX_PARTS:
            raise HeifDamaged("The file's pictures are composed of each other.")
        compose: dict[bytes, Callable[[Item, int], Any]] = {
            b"hvc1": self._coded,
            b"grid": self._grid,
            b"iovl": self._overlay,
            b"iden": self._same,
        }
        if item.kind not in compose:
            shown = item.kind.decode("ascii", "replace")
            raise HeifUnsupported(f"The picture is coded as {shown}, not by HEVC: save it as JPEG or PNG.")
        return _transformed(compose[item.kind](item, depth), item)

    def _coded(self, item: Item, _depth: int) -> Any:
        frame = self._decode_frame(item)
        picture = _converted(frame, _colours(item, frame))
        width, height = item.coded_size
        if picture.width < width or picture.height < height:
            raise HeifDamaged("A picture of the file is smaller than it says.")
        return picture if picture.size == (width, height) else picture.crop((0, 0, width, height))

    def _decode_frame(self, item: Item) -> Any:
        import av

        configuration = item.first(b"hvcC")
        if configuration is None:
            raise HeifDamaged("A picture of the file has no decoder configuration.")
        codec = self._codecs.get(configuration)
        try:
            if codec is None:
                codec = av.CodecContext.create("hevc", "r")
                codec.extradata = configuration
                codec.thread_count = 1
                codec.options = {"err_detect": "explode"}  # half a picture is no picture
                self._codecs[configuration] = codec
            else:
                codec.flush_buffers()
            frames: list[Any] = []
            for each in (*(self._items[base] for base in item.references.get(b"pred", ())), item):
                frames += codec.decode(av.Packet(self._items.read(each)))
            frames += codec.decode(None)
        except (av.error.FFmpegError, EOFError) as exc:
            raise HeifDamaged("A picture of the file cannot be decoded.") from exc
        if not frames or frames[-1].is_corrupt:
            raise HeifDamaged("A picture of the file cannot be decoded.")
        return frames[-1]  # those before it are what it was predicted from

    def _grid(self, item: Item, depth: int) -> Any:
        from PIL import Image

        rows, columns, width, height = _grid_of(self._items, item)
        tiles = item.references.get(b"dimg", ())
        if len(tiles) != rows * columns:
            raise HeifDamaged(f"{rows} x {columns} tiles are needed, the file lists {len(tiles)}.")
        canvas = None
        for number, tile_id in enumerate(tiles):
            tile = self.decode(self._items[tile_id], depth + 1)
            if canvas is None:
                first = tile.size
                if columns * first[0] < width or rows * first[1] < height:
                    raise HeifDamaged("The tiles do not cover the picture.")
                canvas = Image.new(tile.mode, (width, height))
            if tile.size != first:
                raise HeifDamaged("The tiles differ in size.")
            canvas.paste(tile, (number % columns * first[0], number // columns * first[1]))
        return canvas

    def _overlay(self, item: Item, depth: int) -> Any:
        from PIL import Image

        layers = item.references.get(b"dimg", ())
        fill, (width, height), offsets = _overlay_of(self._items, item, len(layers))
        canvas = Image.new("RGB", (width, height), fill)
        for layer_id, offset in zip(layers, offsets, strict=True):
            source = self._items[layer_id]
            layer = self.decode(source, depth + 1).convert("RGB")
            alpha = _alpha_of(self._items, source)
            mask = None if alpha is None else self.decode(alpha, depth + 1).convert("L").resize(layer.size)
            canvas.paste(layer, offset, mask)
        return canvas

    def _same(self, item: Item, depth: int) -> Any:
        (source, *_) = item.references.get(b"dimg", ()) or (0,)
        return self.decode(self._items[source], depth + 1)


def _uncropped_size(items: Items, item: Item, depth: int = 0) -> tuple[int, int]:
    if depth > _MAX_DEPTH:
        raise HeifDamaged("The file's pictures are composed of each other.")
    if item.kind == b"grid":
        return _grid_of(items, item)[2:]
    if item.kind == b"iovl":
        return _overlay_of(items, item, len(item.references.get(b"dimg", ())))[1]
    if item.kind == b"iden" and item.first(b"ispe") is None:
        (source, *_) = item.references.get(b"dimg", ()) or (0,)
        return _uncropped_size(items, items[source], depth + 1)
    return item.coded_size


def _first_coded(items: Items, item: Item) -> Item:
    for _ in range(_MAX_DEPTH):
        inner = item.references.get(b"dimg", ())
        if item.kind == b"hvc1" or not inner:
            break
        item = items[inner[0]]
    return item


def _grid_of(items: Items, item: Item) -> tuple[int, int, int, int]:
    """Rows, columns, width, height."""
    body = items.read(item)
    wide = len(body) > 1 and body[1] & 1
    if len(body) < (12 if wide else 8):
        raise HeifDamaged("The grid of tiles is broken.")
    width, height = struct.unpack(">II" if wide else ">HH", body[4 : 12 if wide else 8])
    return body[2] + 1, body[3] + 1, width, height


def _overlay_of(
    items: Items, item: Item, layers: int
) -> tuple[tuple[int, int, int], tuple[int, int], list[tuple[int, int]]]:
    """The colour behind the layers, the size, and where each layer begins."""
    body = items.read(item)
    wide = len(body) > 1 and body[1] & 1
    number = "i" if wide else "h"
    try:
        red, green, blue, _alpha = struct.unpack_from(">4H", body, 2)
        width, height = struct.unpack_from(f">2{number.upper()}", body, 10)
        places = struct.unpack_from(f">{2 * layers}{number}", body, 18 if wide else 14)
    except struct.error as exc:
        raise HeifDamaged("The list of layers is broken.") from exc
    if width > _MAX_SIDE_PX or height > _MAX_SIDE_PX:
        raise HeifDamaged("The picture of layers is too large.")
    return (red >> 8, green >> 8, blue >> 8), (width, height), list(zip(places[::2], places[1::2], strict=True))


def _alpha_of(items: Items, item: Item) -> Item | None:
    for each in items.pointing_at(item, b"auxl"):
        kind = (each.first(b"auxC") or b"")[4:].partition(b"\0")[0]
        if kind in ALPHA and each.kind in (b"hvc1", b"grid"):
            return each
    return None


def _colours(item: Item, frame: Any) -> _Colours:
    """The file's own statement counts before that of the coded picture."""
    for each in item.properties:
        if each.kind == b"colr" and each.body[:4] == b"nclx" and len(each.body) >= 11:
            matrix = int.from_bytes(each.body[8:10], "big")
            return _Colours(matrix, bool(each.body[10] & 0x80))
    return _Colours(int(frame.colorspace), frame.color_range == _FULL_RANGE or frame.format.name.startswith("yuvj"))


def _converted(frame: Any, colours: _Colours) -> Any:
    from av.video.reformatter import Interpolation
    from PIL import Image

    if colours.matrix not in _MATRICES and not frame.format.name.startswith(("gray", "gbr")):
        raise HeifUnsupported(
            f"The picture's colours (matrix {colours.matrix}) are not supported: save it as JPEG or PNG."
        )
    grey = frame.format.name.startswith("gray")
    converted = frame.reformat(
        format="gray" if grey else "rgb24",
        src_colorspace=_MATRICES.get(colours.matrix, _BT601),
        src_color_range=_FULL_RANGE if colours.full_range else _VIDEO_RANGE,
        dst_color_range=_FULL_RANGE,
        interpolation=Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT,
        threads=1,
    )
    return Image.fromarray(converted.to_ndarray())


def _transformed(picture: Any, item: Item) -> Any:
    """Cropped, turned and mirrored in the order of the item's properties."""
    from PIL import Image

    turns = (None, Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270)
    for each in item.properties:
        if each.kind == b"clap":
            picture = picture.crop(_aperture(each.body, picture.width, picture.height))
        elif each.kind == b"irot" and each.body and (turn := turns[each.body[0] & 3]) is not None:
            picture = picture.transpose(turn)
        elif each.kind == b"imir" and each.body:
            flips = (Image.Transpose.FLIP_TOP_BOTTOM, Image.Transpose.FLIP_LEFT_RIGHT)
            picture = picture.transpose(flips[each.body[0] & 1])
    return picture


def _aperture(body: bytes, width: int, height: int) -> tuple[int, int, int, int]:
    """The part that is shown: its size and the offset of its centre are fractions."""
    try:
        numbers = struct.unpack(">IIIIiIiI", body[:32])
    except struct.error as exc:
        raise HeifDamaged("The picture's crop is broken.") from exc
    if not all(numbers[1::2]):
        raise HeifDamaged("The picture's crop is broken.")
    shown_width, shown_height, right, down = (
        above / below for above, below in zip(numbers[::2], numbers[1::2], strict=True)
    )
    left = max(0, round((width - 1) / 2 + right - (shown_width - 1) / 2))
    top = max(0, round((height - 1) / 2 + down - (shown_height - 1) / 2))
    end = (min(width, left + round(shown_width)), min(height, top + round(shown_height)))
    if end[0] <= left or end[1] <= top:
        raise HeifDamaged("The picture's crop leaves nothing.")
    return left, top, *end
