"""What lies on a sheet, shape by shape, and how it looks."""

import copy
import hashlib
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from headrace.removal.documents.scoring import Traits
from headrace.removal.documents.slides.deck import EMU_PER_POINT, MC, A, Deck, P, R, Sheet, shape_tree
from headrace.removal.documents.slides.package import Package
from headrace.removal.documents.words import is_watermark_name
from headrace.removal.report import Box

_SHAPES = (f"{P}sp", f"{P}pic", f"{P}grpSp", f"{P}graphicFrame", f"{P}cxnSp", f"{MC}AlternateContent")
_WHOLE_MILLIPERCENT = 100_000.0  # the format's whole, in thousandths of a percent
_MAX_PICTURE_BYTES = 64 * 1024**2
_MARGIN_RATIO, _CENTRE_RATIO, _MIN_BACKDROP_RATIO = 0.12, 0.2, 0.9
_MIN_PALE_RATIO, _MIN_WHITE_RATIO = 0.6, 0.97
_MIN_WASHOUT_MILLIPERCENT = 50_000  # brightness that PowerPoint calls "washout" is 70,000
_MAX_GROUP_DEPTH = 16  # groups within groups


@dataclass(frozen=True, slots=True)
class Shape:
    element: Any
    sheet: Sheet
    kind: str  # text, picture, shape, group, frame, background
    signature: bytes
    box: Box
    parent: bytes | None = None  # signature of the group that it is in
    turned: float = 0.0  # degrees, with that group


@dataclass(frozen=True, slots=True)
class _Fit:
    """From the space of a group to that of the slide."""

    scale_x: float = 1.0
    scale_y: float = 1.0
    move_x: float = 0.0
    move_y: float = 0.0
    turned: float = 0.0


def shapes_on(package: Package, sheet: Sheet) -> Iterator[Shape]:
    """All shapes of a sheet with those inside groups, and its background if that is a picture."""
    root = package.tree(sheet.part)
    background = root.find(f"{P}cSld/{P}bg")
    if background is not None and background.find(f".//{A}blip") is not None:
        everything = Box(0.0, 0.0, -1.0, -1.0)  # its size is the slide's
        yield Shape(background, sheet, "background", _signature(package, sheet, background), everything)
    tree = shape_tree(root)
    if tree is not None:
        yield from _shapes_in(package, sheet, tree, _Fit(), None, 0)


def _shapes_in(
    package: Package, sheet: Sheet, tree: Any, fit: _Fit, parent: bytes | None, depth: int
) -> Iterator[Shape]:
    for element in tree:
        if element.tag not in _SHAPES or depth > _MAX_GROUP_DEPTH:
            continue
        seen = _chosen(element)
        if seen is None:
            continue
        signature = _signature(package, sheet, element)
        yield Shape(element, sheet, _kind(seen), signature, _box(seen, fit), parent, fit.turned)
        if seen.tag == f"{P}grpSp":
            yield from _shapes_in(package, sheet, seen, _fit_of(seen, fit), signature, depth + 1)


def _chosen(element: Any) -> Any:
    """The shape itself; of alternatives, the first."""
    if element.tag != f"{MC}AlternateContent":
        return element
    return next((each for each in element.iter(*_SHAPES[:-1])), None)


def _kind(element: Any) -> str:
    if element.tag == f"{P}pic":
        return "picture"
    if element.tag in (f"{P}grpSp", f"{P}graphicFrame", f"{P}cxnSp"):
        return {f"{P}grpSp": "group", f"{P}graphicFrame": "frame"}.get(element.tag, "shape")
    if _text(element):
        return "text"
    return "picture" if element.find(f"{P}spPr/{A}blipFill") is not None else "shape"


def _signature(package: Package, sheet: Sheet, element: Any) -> bytes:
    """The same for shapes that are the same but for their number, name and place."""
    plain = copy.deepcopy(element)
    plain.tail = None
    relations = package.relations(sheet.part)
    for node in plain.iter():
        if not isinstance(node.tag, str):
            continue
        for attribute, value in node.attrib.items():
            if attribute.startswith(R):
                relation = relations.get(value)
                node.set(attribute, _picture_hash(package, relation.target) if relation else "")
        if node.tag in (f"{P}cNvPr", f"{A}off"):
            node.attrib.clear()
    for node in [*plain.iter(f"{A}extLst"), *plain.iter(f"{P}extLst")]:
        if (above := node.getparent()) is not None:
            above.remove(node)
    return hashlib.blake2b(etree.tostring(plain, method="c14n"), digest_size=8).digest()


def _picture_hash(package: Package, part: str) -> str:
    # The checksum that the container has of it, so that films need not be read.
    return f"{package.crc(part):08x}" if part in package else part


def _box(element: Any, fit: _Fit) -> Box:
    frame = _frame(element)
    if frame is None:
        return Box(0.0, 0.0, 0.0, 0.0)
    offset, extent = frame.find(f"{A}off"), frame.find(f"{A}ext")
    x, y = (float(offset.get(each, 0)) for each in "xy") if offset is not None else (0.0, 0.0)
    width, height = (float(extent.get(each, 0)) for each in ("cx", "cy")) if extent is not None else (0.0, 0.0)
    left, top = x * fit.scale_x + fit.move_x, y * fit.scale_y + fit.move_y
    sides = (left, top, width * fit.scale_x, height * fit.scale_y)
    return Box(*(round(side / EMU_PER_POINT, 1) for side in sides))


def _frame(element: Any) -> Any:
    for path in (f"{P}spPr/{A}xfrm", f"{P}grpSpPr/{A}xfrm", f"{P}xfrm"):
        if (frame := element.find(path)) is not None:
            return frame
    return None


def _fit_of(group: Any, outer: _Fit) -> _Fit:
    frame = _frame(group)
    parts: list[Any] = [] if frame is None else [frame.find(f"{A}{name}") for name in ("off", "ext", "chOff", "chExt")]
    if not parts or any(part is None for part in parts):
        return outer
    off, ext, inner_off, inner_ext = parts
    across = float(ext.get("cx", 0)) / (float(inner_ext.get("cx", 0)) or 1.0)
    along = float(ext.get("cy", 0)) / (float(inner_ext.get("cy", 0)) or 1.0)
    move_x = float(off.get("x", 0)) - float(inner_off.get("x", 0)) * across
    move_y = float(off.get("y", 0)) - float(inner_off.get("y", 0)) * along
    return _Fit(
        across * outer.scale_x,
        along * outer.scale_y,
        move_x * outer.scale_x + outer.move_x,
        move_y * outer.scale_y + outer.move_y,
        outer.turned + _degrees(frame.get("rot")),
    )


def shown_box(shape: Shape) -> Box:
    """Where it is seen: of one that is turned, the box around that. Shapes turn about their middle."""
    box = shape.box
    angle = _angle(_chosen(shape.element)) + shape.turned
    width, height = _shown_size(box.width, box.height, angle)
    left, top = box.left + (box.width - width) / 2, box.top + (box.height - height) / 2
    return Box(*(round(side, 1) for side in (left, top, width, height)))


def traits_of(package: Package, shape: Shape, deck: Deck) -> Traits:
    """How a shape looks; the caller adds the number of its copies."""
    element = shape.element if shape.kind == "background" else _chosen(shape.element)
    box = shape.box
    width, height = (deck.width, deck.height) if shape.kind == "background" else (box.width, box.height)
    angle, text = _angle(element) + shape.turned, _text(element)
    alpha, pale = _look(package, shape, element)
    across, along = _shown_size(width, height, angle)
    centre = ((box.left + width / 2) / deck.width, (box.top + height / 2) / deck.height)
    return Traits(
        named=any(is_watermark_name(name) for name in _names(element)),
        belongs=_belongs(element),
        text=text,
        angle=angle,
        alpha=alpha,
        pale=pale,
        span=math.hypot(across, along) / math.hypot(deck.width, deck.height),
        centred=abs(centre[0] - 0.5) <= _CENTRE_RATIO and abs(centre[1] - 0.5) <= _CENTRE_RATIO,
        in_margin=box.top >= deck.height * (1 - _MARGIN_RATIO) or box.top + height <= deck.height * _MARGIN_RATIO,
        plain_shape=not text and shape.kind in ("shape", "frame"),
        backdrop=not text and width * height >= _MIN_BACKDROP_RATIO * deck.width * deck.height,
    )


def _shown_size(width: float, height: float, angle: float) -> tuple[float, float]:
    turn = math.radians(angle)
    cosine, sine = abs(math.cos(turn)), abs(math.sin(turn))
    return width * cosine + height * sine, width * sine + height * cosine


def _names(element: Any) -> Iterator[str]:
    for node in element.iter(f"{P}cNvPr"):
        for key in ("name", "descr", "title"):
            yield str(node.get(key, ""))


def _belongs(element: Any) -> bool:
    """A place for the slide's own text, a link, a table, a number: part of the presentation."""
    tags = (f"{P}ph", f"{A}hlinkClick", f"{A}fld", f"{P}oleObj", f"{A}tbl", f"{A}videoFile", f"{A}audioFile")
    return element.tag == f"{P}graphicFrame" or next(element.iter(*tags), None) is not None


def _text(element: Any) -> str:
    paragraphs = ("".join(run.text or "" for run in each.iter(f"{A}t")) for each in element.iter(f"{A}p"))
    return " ".join(text for text in paragraphs if text.strip())


def _angle(element: Any) -> float:
    frame, body = _frame(element), next(element.iter(f"{A}bodyPr"), None)
    turned = _degrees(frame.get("rot")) if frame is not None else 0.0
    turned += _degrees(body.get("rot")) if body is not None else 0.0
    if element.tag == f"{P}grpSp" and turned == 0:
        inner = [_angle(each) for each in element if each.tag in _SHAPES]
        return inner[0] if inner and max(inner) - min(inner) <= 10 else 0.0
    return turned


def _degrees(said: str | None) -> float:
    try:
        return int(said or 0) / 60_000
    except ValueError:
        return 0.0


def _look(package: Package, shape: Shape, element: Any) -> tuple[float, bool]:
    """How opaque it is, and whether it is pale."""
    fills = [fill for run in element.iter(f"{A}rPr", f"{A}endParaRPr") for fill in run.findall(f"{A}solidFill")]
    blips = list(element.iter(f"{A}blip"))
    if _text(element) and fills:
        return max(_fill_alpha(fill) for fill in fills), all(_is_pale(fill) for fill in fills)
    if blips:
        looks = [_blip_look(package, shape, blip) for blip in blips]
        return max(alpha for alpha, _ in looks), all(pale for _, pale in looks)
    own = element.findall(f"{P}spPr/{A}solidFill")
    return max((_fill_alpha(fill) for fill in own), default=1.0), bool(own) and all(_is_pale(fill) for fill in own)


def _fill_alpha(fill: Any) -> float:
    alphas = [_whole(each.get("val")) for each in fill.iter(f"{A}alpha")]
    return min(alphas, default=1.0)


def _whole(said: str | None) -> float:
    """A share: 40000 and 40% are the same."""
    text = said or "100000"
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text) / _WHOLE_MILLIPERCENT
    except ValueError:
        return 1.0


def _is_pale(fill: Any) -> bool:
    rgb, scheme = fill.find(f"{A}srgbClr"), fill.find(f"{A}schemeClr")
    if rgb is not None:
        try:
            red, green, blue = bytes.fromhex(rgb.get("val", "000000"))[:3]
        except ValueError:
            return False
        return _MIN_PALE_RATIO <= (0.3 * red + 0.59 * green + 0.11 * blue) / 255 < _MIN_WHITE_RATIO
    if scheme is None or scheme.get("val") not in ("bg1", "lt1", "bg2", "lt2"):
        return False
    darker = scheme.find(f"{A}lumMod")
    return darker is not None and _MIN_PALE_RATIO <= _whole(darker.get("val")) < _MIN_WHITE_RATIO


def _blip_look(package: Package, shape: Shape, blip: Any) -> tuple[float, bool]:
    fixed, light = blip.find(f"{A}alphaModFix"), blip.find(f"{A}lum")
    alpha = _whole(fixed.get("amt")) if fixed is not None else 1.0
    washed = light is not None and int(light.get("bright", 0) or 0) >= _MIN_WASHOUT_MILLIPERCENT
    relation = package.relations(shape.sheet.part).get(blip.get(f"{R}embed", ""))
    own = _picture_alpha(package, relation.target) if relation is not None and relation.target in package else 1.0
    return alpha * own, washed


def _picture_alpha(package: Package, part: str) -> float:
    """How opaque a picture is where it is most opaque; letters of an opaque logo are smooth at their edges alone."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(package.read(part, limit=_MAX_PICTURE_BYTES))) as image:
            if image.mode not in ("RGBA", "LA", "PA"):
                return 1.0
            image.thumbnail((512, 512))
            counts = image.getchannel("A").histogram()[1:]
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return 1.0  # drawings of Windows and the like: not read here
    seen, total = 0, sum(counts)
    for level, count in enumerate(counts, 1):
        seen += count
        if total and seen >= 0.95 * total:
            return level / 255 if level < 217 else 1.0
    return 1.0
