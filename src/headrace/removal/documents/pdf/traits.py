"""How something looks that several instructions draw together: the traits that it is judged by."""

from dataclasses import dataclass, replace
from typing import Any

import pikepdf
from pikepdf.exceptions import PikepdfError

from headrace.removal.documents.pdf.drawings import Kind, Placed, placed
from headrace.removal.documents.pdf.geometry import Quad, angle_of, bounds, move, principal_axis
from headrace.removal.documents.pdf.pages import PageFrame
from headrace.removal.documents.scoring import Traits

_MIN_PALE_RATIO, _MIN_WHITE_RATIO = 0.6, 0.97  # white is for dark grounds, and no mark
# Fewer segments, or fewer paths, are a box, a line, a circle, a swirl
_MIN_LETTERING_SEGMENTS = 30
_MIN_LETTERING_PATHS = 4
_MIN_BACKDROP_RATIO = 0.9
_MIN_ROW_PARTS, _MIN_ROW_ASPECT_RATIO = 4, 4.0  # parts, and how much longer than wide they lie
_MAX_PIXELS = 16_000_000  # of a picture that is looked into
_MIN_OPAQUE_LEVELS = 217  # of 255: letters of an opaque logo are smooth at their edges alone
_UNREADABLE = (
    TypeError, ValueError, AttributeError, KeyError, OSError, NotImplementedError, MemoryError, PikepdfError,
)  # fmt: skip
_MAX_FORM_DRAWINGS = 400  # drawings in one form: that is a page, no mark


@dataclass(frozen=True, slots=True)
class PictureLook:
    alpha: float = 1.0
    pale: bool = False


def traits_of(pdf: pikepdf.Pdf, parts: list[Placed], quads: list[Quad], frame: PageFrame) -> Traits:
    """What a group of drawings looks like on its page; the caller adds the number of its copies."""
    leaves = [leaf for part in parts for leaf in _leaves(part)]
    box = bounds(quads)
    text = " ".join(leaf.drawing.text for leaf in leaves if leaf.drawing.text)
    looks = [_picture_look(pdf, leaf) for leaf in leaves if leaf.drawing.kind is Kind.PICTURE]
    shapes = [leaf for leaf in leaves if leaf.drawing.kind is not Kind.PICTURE]
    alphas = [leaf.alpha for leaf in shapes] + [look.alpha for look in looks]
    pale = [_is_pale(leaf.drawing.luminance) for leaf in shapes] + [look.pale for look in looks]
    tiles = max(
        (frame.share(box) * frame.area / part.drawing.tile.area for part in parts if part.drawing.tile), default=1
    )
    has_letters = bool(text) or bool(looks) or any(leaf.drawing.kind is Kind.TEXT for leaf in leaves)
    return Traits(
        named=any(part.section is not None and part.section.named for part in parts),
        belongs=any(part.section is not None and part.section.belongs for part in parts)
        or len(leaves) > _MAX_FORM_DRAWINGS,
        text=text,
        angle=_angle(leaves),
        alpha=max(alphas, default=1.0),
        pale=bool(pale) and all(pale),
        span=frame.span(box),
        centred=frame.is_centred(box),
        in_margin=frame.is_in_margin(box),
        plain_shape=not has_letters and (_is_plain(leaves) or not frame.is_centred(box)),
        backdrop=not text and frame.share(box) >= _MIN_BACKDROP_RATIO,
        copies_a_page=tiles,
    )


def _is_plain(leaves: list[Placed]) -> bool:
    """Too little for a word in outlines, of which every letter is a path of its own."""
    segments = sum(leaf.drawing.segments for leaf in leaves)
    return segments < _MIN_LETTERING_SEGMENTS or sum(leaf.drawing.subpaths for leaf in leaves) < _MIN_LETTERING_PATHS


def _leaves(part: Placed) -> list[Placed]:
    """What a form or a pattern draws in the end."""
    form, tile = part.drawing.form, part.drawing.tile
    if tile is not None and tile.drawings:
        return [replace(leaf, alpha=leaf.alpha * part.alpha) for leaf in placed(tile.drawings)]
    if form is None or not form.drawings:
        return [part]
    inside = [leaf for leaf in placed(form.drawings) if leaf.drawing.form is None and leaf.drawing.visible]
    return [replace(leaf, quad=move(leaf.quad, form.matrix), alpha=leaf.alpha * part.alpha) for leaf in inside] or [
        part
    ]


def _is_pale(luminance: float | None) -> bool:
    return luminance is not None and _MIN_PALE_RATIO <= luminance < _MIN_WHITE_RATIO


def _angle(leaves: list[Placed]) -> float:
    """The direction of the letters; of many parts without one, that of the row in which they lie."""
    written = [leaf for leaf in leaves if leaf.drawing.kind is Kind.TEXT]
    angles = [angle_of(leaf.quad) for leaf in (written or leaves)]
    if written or len(leaves) < _MIN_ROW_PARTS:
        together = max(angles) - min(angles) <= 10
        return angles[0] if together else 0.0
    centres = [((left + right) / 2, (low + high) / 2) for left, low, right, high in (bounds([x.quad]) for x in leaves)]
    degrees, longer = principal_axis(centres)
    return degrees if longer >= _MIN_ROW_ASPECT_RATIO else 0.0


def _picture_look(pdf: pikepdf.Pdf, leaf: Placed) -> PictureLook:
    if leaf.drawing.picture is None:
        return PictureLook(leaf.alpha)
    try:
        image = pdf.get_object(leaf.drawing.picture)
        mask = image.get("/SMask")
        if any(int(each.Width) * int(each.Height) > _MAX_PIXELS for each in (image, mask) if each is not None):
            return PictureLook(leaf.alpha)
        visible = None if mask is None else _pixels(mask)
        return PictureLook(leaf.alpha * _mask_alpha(visible), _is_pale_picture(image, visible))
    except _UNREADABLE:
        return PictureLook(leaf.alpha)  # packed in a way that is not read here: taken as opaque


def _pixels(image: Any) -> Any:
    import numpy as np

    return np.asarray(pikepdf.PdfImage(image).as_pil_image().convert("L"))


def _mask_alpha(mask: Any) -> float:
    import numpy as np

    if mask is None or not (mask > 0).any():
        return 1.0
    strongest = float(np.percentile(mask[mask > 0], 95))
    return 1.0 if strongest > _MIN_OPAQUE_LEVELS else strongest / 255


def _is_pale_picture(image: Any, mask: Any) -> bool:
    """Whether what is seen of a picture is light all over, as pictures are that lie behind text."""
    import numpy as np

    pixels = _pixels(image)
    if mask is not None and mask.shape == pixels.shape:
        pixels = pixels[mask > 32]
    if pixels.size == 0:
        return False
    dark, typical = np.percentile(pixels, (2, 50))
    return bool(dark >= 140 and typical < 252)
