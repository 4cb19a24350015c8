"""The messages of failed removals, by code: the cause, and what to do next."""

from collections.abc import Mapping
from typing import Any

from headrace.removal.errors import (
    CandidateUnknown,
    ClipUnreadable,
    ConverterMissing,
    DocumentEncrypted,
    DocumentSigned,
    DocumentUnreadable,
    EncoderMissing,
    HintUnusable,
    PictureUnreadable,
)
from headrace.removal.order import FailureCode, RemovalOrder, paid_seconds
from headrace.removal.report import Report
from headrace.tasks.errors import Fatal

MESSAGES: dict[FailureCode, str] = {
    FailureCode.NO_MARK: "No mark was found. If there is one, say where it is: order MANUAL with a box around it.",
    FailureCode.NEEDS_REVIEW: "There may be a mark, but it is not certain: order MANUAL and name the candidates, "
    "or draw a box around it.",
    FailureCode.AI_LABEL: "The mark is a label that says that AI made the picture. Such labels stay: the law of some "
    "countries asks for them. Name the other marks by their numbers, or give a lawful reason as `ai_label_reason`.",
    FailureCode.MARK_REMAINS: "The mark could not be taken off: traces of it would stay. Draw it as a mask, or a box.",
    FailureCode.MARK_MOVES: "The mark moves, or jumps from place to place, and traces of it would stay. Order MANUAL "
    "with a box for each place, and its seconds.",
    FailureCode.MARK_WIDE: "The mark covers much of the picture, and traces of it would stay. Draw it as a mask.",
    FailureCode.POOR_RESULT: "The result would be poor, and is not handed out. Draw the mark as a mask, or take it as "
    "it is with `accept_poor`.",
    FailureCode.DAMAGED: "The result differs from the original where there is no mark, and is not handed out.",
    FailureCode.UNREADABLE: "The file cannot be read.",
    FailureCode.UNSUPPORTED: "Files like this one cannot be worked on.",
    FailureCode.ENCRYPTED: "The document is encrypted: order it again, with its password.",
    FailureCode.SIGNED: "The document is signed, and a change breaks that: allow it with `break_signature`.",
    FailureCode.HINT_UNUSABLE: "What was said about the mark does not fit the file.",
    FailureCode.NO_CANDIDATE: "There is no candidate of that number.",
    FailureCode.NO_CONVERTER: "The worker lacks what this kind of file needs: LibreOffice for old slides (save them as "
    ".pptx), or an encoder for this kind of video.",
    FailureCode.TOO_LONG: "The file exceeds the time limit.",
    FailureCode.ASSET_GONE: "The file is no longer there.",
}

_NO_MARK_THERE = (
    "No mark was found where you said it is. Check that the box is in the right place, in pixels of the upright file, "
    "or draw the mark itself as a mask."
)

# The core's errors, by their codes.
CODES: dict[str, FailureCode] = {
    PictureUnreadable.code: FailureCode.UNREADABLE,
    DocumentUnreadable.code: FailureCode.UNREADABLE,
    ClipUnreadable.code: FailureCode.UNREADABLE,
    EncoderMissing.code: FailureCode.NO_CONVERTER,
    DocumentEncrypted.code: FailureCode.ENCRYPTED,
    DocumentSigned.code: FailureCode.SIGNED,
    HintUnusable.code: FailureCode.HINT_UNUSABLE,
    CandidateUnknown.code: FailureCode.NO_CANDIDATE,
    ConverterMissing.code: FailureCode.NO_CONVERTER,
}

# Whose own words say more than the code's.
TELLING = frozenset({FailureCode.UNREADABLE, FailureCode.HINT_UNUSABLE, FailureCode.NO_CANDIDATE})


def failure(code: FailureCode, message: str | None = None) -> Fatal:
    """The end of a removal for a reason that trying again does not change."""
    return Fatal(message or MESSAGES[code], error_code=code)


def require_as_paid(inspected: Mapping[str, Any], clip: Mapping[str, Any]) -> None:
    """Refuse a clip that is longer than what was paid for: of large files inspection believes what the head says."""
    said = paid_seconds((inspected.get("duration_ms") or 0) / 1000, inspected.get("frames") or 0)
    if paid_seconds(clip["seconds"], clip["frames"]) > 1.01 * said + 2:
        raise failure(
            FailureCode.UNSUPPORTED,
            "The video lasts longer than its file says: save it again with an ordinary program, and upload that.",
        )


def refusal(report: Report, order: RemovalOrder) -> Fatal:
    assert report.refused is not None
    message = report.reason if report.refused is FailureCode.DAMAGED else None
    if report.refused is FailureCode.NO_MARK and _was_shown(order):
        message = _NO_MARK_THERE
    if report.refused is FailureCode.POOR_RESULT and report.reason is not None:
        message = f"{report.reason}. {MESSAGES[report.refused]}"
    return failure(report.refused, message)


def _was_shown(order: RemovalOrder) -> bool:
    """Whether the order has boxes or a mask: then the advice to add one is useless."""
    return order.mask_asset_id is not None or any(hint.boxes or hint.polygons for hint in order.hints)
