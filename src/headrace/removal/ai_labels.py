"""Recognizes visible labels of content that was made by AI.

Such a label is no watermark of an owner: the law of some countries asks for it and forbids to remove it. The text is a
document's own, or comes from the reader, which confuses letters of similar shape and loses the I after an A.
"""

import re
import unicodedata
from dataclasses import replace

from headrace.removal.order import FailureCode, Order
from headrace.removal.report import Report

MIN_REASON_LETTERS = 10
# What the reader makes of "AI" and of "成".
_AI, _MADE = "a[a-z1]{0,2}", "生([成绒性住]|$)"
_LABEL = re.compile(
    rf"{_AI}({_MADE}|合成|绘制|创作|創作|产生|產生)"
    rf"|智能?({_MADE}|合成)"
    r"|(^(a[a-z1]{0,2}|m[il1])|a[il1])genera[a-z]e[dn]?"
    r"|(genera\w{2,5}|made|created|produced|drawn)(by|with|using)a[il1t]{0,3}$"
)
_NOT_LETTERS = re.compile(r"[^a-z0-9\u4e00-\u9fff]")


def is_ai_label(text: str | None) -> bool:
    """Whether this is a label such as "AI-generated", "Made with AI" or "AI生成"."""
    if not text:
        return False
    letters = _NOT_LETTERS.sub("", unicodedata.normalize("NFKD", text).lower())
    return _LABEL.search(letters) is not None


def withhold(order: Order, found: Report) -> Report:
    """The report of a detection, refused if the order would take such a label off and gives no reason for it."""
    if order.result is None or order.ai_label_reason is not None or found.refused is not None:
        return found
    labels = {each.id for each in found.candidates if is_ai_label(each.text)}
    if labels & _chosen(order, found):
        return replace(found, keeps=[], refused=FailureCode.AI_LABEL)
    return found


def _chosen(order: Order, found: Report) -> set[int]:
    """The candidates that would be taken off."""
    if "chosen" in found.facts:
        return set(found.facts["chosen"])
    if order.candidates:
        return set(order.candidates)
    # Where the user shows the place, only candidates of that place are found.
    return {each.id for each in found.candidates if each.certain or order.has_place}
