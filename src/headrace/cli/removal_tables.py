"""What ``headrace detect`` and ``headrace remove`` say of a report."""

from collections.abc import Callable

from headrace.cli.output import number_of, out, print_table, say
from headrace.removal.media import DOCUMENTS
from headrace.removal.order import FailureCode, Order
from headrace.removal.report import Box, Candidate, Outcome, Report, Verdict

WARNINGS = {
    Verdict.LOOK: "traces of the mark may be left: look at it before you use it",
    Verdict.POOR: "a poor result: check it before you use it",
}
ENDINGS = (
    "cleaned",
    "poorly cleaned",
    "without a mark",
    "to be looked at",
    "left as it was",
    "could not be worked on",
)
_MAX_PAGES_LISTED = 6
_MAX_SPANS_LISTED = 4
_MAX_LEFT_LISTED = 6


def show(report: Report, media: str) -> None:
    """Print the possible marks in a file."""
    if media == "IMAGE":
        _show_regions(report)
        return
    if not report.candidates:
        facts = report.facts
        seen = number_of(facts["frames"], "frame") if media == "VIDEO" else number_of(facts["pages"], "page")
        out.print(f"no mark found in {seen}")
        return
    columns, row = _TABLES["VIDEO" if media == "VIDEO" else "PDF"]
    print_table(columns, [row(each) for each in report.candidates])
    certain = [each.id for each in report.candidates if each.certain]
    if not report.suspects:
        say("none of these looks like a mark; if one is, name it: remove --only")
    elif len(certain) < len(report.suspects):
        sure = f"remove takes off {', '.join(map(str, certain))}" if certain else "remove takes off none by itself"
        say(f"{sure}; name what else is a mark with --only")
    elif media != "VIDEO":
        say("remove takes all of them off")


def _show_regions(report: Report) -> None:
    regions = [each for each in report.candidates if each.certain]
    score, count = report.facts["score"], len(regions)
    if regions:
        surest = _place(regions[0].box)
        out.print(f"a mark in {count} part{'s' * (count > 1)}, score {score:.2f}, the surest {surest}")
    else:
        out.print(f"no certain mark (score {score:.2f})")
    for each in report.candidates:
        doubt = "" if each.certain else ", removed only if named with --only"
        out.print(f"{each.id}: {_place(each.box)}, score {each.score:.2f}{doubt}")


def _document_row(each: Candidate) -> tuple[object, ...]:
    place, reasons = _place(each.box), "; ".join(each.reasons)
    return each.id, f"{each.score:.2f}", each.kind, _pages(each.pages), place, each.text, reasons


def _clip_row(each: Candidate) -> tuple[object, ...]:
    spans = ", ".join(f"{begins:.1f}-{ends:.1f} s" for begins, ends in each.seconds[:_MAX_SPANS_LISTED])
    when = "always" if each.kind == "fixed" else spans + (", …" if len(each.seconds) > _MAX_SPANS_LISTED else "")
    strength, reasons = f"{each.opacity or 0:.0%}", "; ".join(each.reasons)
    return each.id, f"{each.score:.2f}", each.kind, _place(each.box), when, strength, reasons


_TABLES: dict[str, tuple[tuple[str, ...], Callable[[Candidate], tuple[object, ...]]]] = {
    "PDF": (("#", "score", "what", "pages", "where", "text", "why"), _document_row),
    "VIDEO": (("#", "score", "what", "where", "when", "strength", "why"), _clip_row),
}


def _pages(pages: tuple[int, ...]) -> str:
    if not pages:
        return "none"
    if len(pages) > 1 and pages[-1] - pages[0] == len(pages) - 1:
        return f"{pages[0]}-{pages[-1]}"
    more = ", …" if len(pages) > _MAX_PAGES_LISTED else ""
    return ", ".join(str(page) for page in pages[:_MAX_PAGES_LISTED]) + more


def _place(box: Box) -> str:
    return f"{box.width:.0f} x {box.height:.0f} at {box.left:.0f}, {box.top:.0f}"


def summary(report: Report, order: Order, media: str) -> str:
    """What was done with one file."""
    if report.outcome is not Outcome.REMOVED:
        return report.reason or "nothing was removed"
    warnings = [WARNINGS[report.verdict]] if report.verdict in WARNINGS else []
    facts, gone = report.facts, number_of(len(report.removed), "mark")
    if media == "IMAGE":
        doubt = [facts["doubt"]] if report.needs_look and facts.get("doubt") else []
        pixels = f"{facts['computed']:,} pixels computed, {facts['invented']:,} invented"
        return "; ".join([pixels, f"confidence {facts['confidence']:.2f}", *doubt, *warnings])
    if media in DOCUMENTS:
        taken = [each for each in report.candidates if each.id in report.removed]
        pages = {page for each in taken for page in each.pages if order.takes_page(page)}
        text = "; ".join(each.text for each in taken if each.method == "box" and each.text)
        boxed = f': "{text}"' if text else ""  # what lay in a user's box may be the wrong thing
        where = number_of(len(pages), "slide" if media == "PPT" else "page")
        return f"{gone} taken off {where} in {facts['seconds']:.1f} s{boxed}"
    frames = number_of(facts["frames"], "frame")
    # No share of what is left: it was high for good results, and said nothing of bad ones.
    return "; ".join([f"{gone} taken off {frames} in {facts['seconds']:.1f} s", *warnings])


def left(report: Report, order: Order) -> str | None:
    """The candidates that a removal did not take off, and how to name them; None where the user chose."""
    others = [each for each in report.suspects if each.id not in report.removed]
    if report.outcome is not Outcome.REMOVED or not others or order.candidates or order.has_place:
        return None
    shown = others[:_MAX_LEFT_LISTED]
    scores = " and ".join(", ".join(f"{each.score:.2f}" for each in shown).rsplit(", ", 1))
    scores += ", …" if len(others) > len(shown) else ""
    named = " ".join(f"--only {number}" for number in sorted({*report.removed, *(each.id for each in shown)}))
    stay = "1 other candidate stays, score" if len(others) == 1 else f"{len(others)} other candidates stay, scores"
    return f"{stay} {scores}: if a mark is among them, name it as well: {named}"


def warn(report: Report, media: str) -> None:
    """What the result has lost; of a document also what was not searched."""
    if report.outcome is Outcome.REMOVED or media in DOCUMENTS:
        for warning in report.warnings:
            say(f"not as in the original: {warning}" if media == "IMAGE" else f"note: {warning}")


def ending(report: Report) -> str:
    """One of ``ENDINGS``."""
    if report.verdict is not None:
        return "cleaned" if report.verdict is Verdict.CLEAN else "poorly cleaned"
    ends = {FailureCode.NO_MARK: "without a mark", FailureCode.NEEDS_REVIEW: "to be looked at"}
    return "left as it was" if report.refused is None else ends.get(report.refused, "left as it was")
