"""Messages of the command line about a refused removal; the service's name the fields of its API (messages.py)."""

from headrace.removal import media, messages
from headrace.removal.order import FailureCode, Order

_MESSAGES = {
    FailureCode.NO_MARK: "No mark was found. If there is one, draw a box around it (--box) or the mark itself "
    "(--mask). If several pictures carry it, give them together with --same-mark.",
    FailureCode.NEEDS_REVIEW: "Needs review: there may be a mark, but it is not certain. Look with `headrace detect`, "
    "then name it with `--only`, or draw a box around it (--box).",
    FailureCode.AI_LABEL: "The mark is a label that says that AI made the picture. Such labels stay: the law of some "
    "countries asks for them. Name the other marks with --only, or give a lawful reason (--ai-label-reason).",
    FailureCode.MARK_REMAINS: "The mark could not be taken off without leaving a trace. Draw it (--mask).",
}
_NO_MARK_THERE = (
    "No mark was found where you said it is. Check that the box is in the right place, in pixels of the upright file, "
    "or draw the mark itself (--mask)."
)
_NOTHING_IN_BOX = (
    "Nothing lies in the box on the pages that were named, or only in part. Check the box (--box, in points from the "
    "upper left corner of the page) and the pages (--pages)."
)
_CLIP_MESSAGES = {FailureCode.NO_MARK: "No mark was found. If there is one, draw a box around it (--box)."}
# Documents take boxes (--box) but no mask (--mask), so these messages suggest no mask.
_DOCUMENT_MESSAGES = {
    FailureCode.NO_MARK: "No mark was found: no object looks like one. If one is a mark, see whether `headrace detect` "
    "lists it and name it with `--only`, or draw a box around it (--box, in points from the upper left corner). Of a "
    "page that is one picture, save the picture and take the mark off that.",
    FailureCode.NEEDS_REVIEW: "Needs review: there may be a mark, but it is not certain. Look with `headrace detect`, "
    "then name the marks with `--only`, or draw a box around them (--box, in points from the upper left corner).",
}


def message_of(code: FailureCode, order: Order) -> str:
    """Why the file is left as it is, and what helps."""
    if code is FailureCode.NO_MARK and order.has_place:
        return _NOTHING_IN_BOX if order.media in media.DOCUMENTS else _NO_MARK_THERE
    own = _DOCUMENT_MESSAGES if order.media in media.DOCUMENTS else _CLIP_MESSAGES if order.media == "VIDEO" else {}
    return own.get(code) or _MESSAGES.get(code) or messages.MESSAGES[code]
