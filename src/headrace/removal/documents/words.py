"""What watermarks say, and what layers and shapes that hold one are called."""

import re
import unicodedata
from enum import Enum

# Said by watermarks and hardly by anything else: enough inside a short text.
_TELLING = (
    "draft", "confidential", "specimen", "watermark", "do not copy", "do not distribute", "not for distribution",
    "not for sale", "internal use only", "for review only", "for evaluation", "evaluation only", "evaluation version",
    "evaluation copy", "trial version", "demo version", "unregistered version", "unlicensed", "top secret",
    "licensed to", "registered to", "purchased by", "downloaded by", "personal use only", "for personal use",
    "proof only", "preview only", "sample only", "uncontrolled copy", "controlled copy", "entwurf", "vertraulich",
    "brouillon", "confidentiel", "borrador", "confidencial", "rascunho", "bozza", "riservato", "черновик",
    "конфиденциально",
)  # fmt: skip
_TELLING_CJK = (
    "样张", "机密", "绝密", "草稿", "样本", "样稿", "内部资料", "内部文件", "仅供参考", "仅供内部", "禁止复制",
    "请勿复制", "水印", "试用版", "演示版", "保密", "作废", "仅限", "仅用于", "樣張", "機密", "草稿", "見本", "社外秘",
    "下書き", "極秘", "초안", "기밀", "견본", "대외비",
)  # fmt: skip
# Lines that programs put on every page until they are paid for, in a corner or in the margin.
_TRIAL = (
    "evaluation only", "evaluation version", "evaluation copy", "evaluation warning", "trial version", "demo version",
    "unregistered version", "scanned with camscanner", "scanned by camscanner",
)  # fmt: skip
# Lines in the margin that name the buyer of a copy; elsewhere they may be part of the text.
_LICENCE = (
    "licensed to", "registered to", "purchased by", "downloaded by", "prepared for", "this copy belongs to",
    "this copy was made for", "personal use only", "for personal use", "not for redistribution", "仅供", "授权给",
)  # fmt: skip
# Said by other things, too: telling only where they are all that is said.
_ALONE = (
    "sample", "copy", "proof", "preview", "demo", "trial", "void", "secret", "restricted", "asap", "urgent", "example",
    "muster", "kopie", "copie", "copia", "muestra", "образец", "副本", "秘密", "试用", "演示", "测试", "样品", "示例",
)  # fmt: skip
_LAYER = re.compile(
    r"water\s*mark|powerpluswatermark|wasserzeichen|filigrane?\b|marca\s*de\s*agua|marca\s*d.?[aá]gua|водян|水印|浮水印"
    r"|透かし|워터마크",
    re.IGNORECASE,
)
_MAX_LETTERS = 80  # a mark is a word or a line, no paragraph


class Words(Enum):
    NONE = 0
    PART = 1
    ALL = 2
    TRIAL = 3
    LICENCE = 4


def watermark_words(text: str) -> Words:
    """Whether a text says what watermarks say, and nothing else."""
    plain = _plain(text)
    if not plain or len(plain) > _MAX_LETTERS:
        return Words.NONE
    padded = f" {plain} "
    if any(f" {word} " in padded for word in _TRIAL):
        return Words.TRIAL
    if plain in _ALONE or plain in _TELLING or plain in _TELLING_CJK or _is_one_repeated(plain):
        return Words.ALL
    if any(f" {word} " in padded or (not word.isascii() and word in plain) for word in _LICENCE):
        return Words.LICENCE
    if any(f" {word} " in padded for word in _TELLING) or any(word in plain for word in _TELLING_CJK):
        return Words.PART
    return Words.NONE


def is_watermark_name(name: str) -> bool:
    """Whether a layer, shape or annotation is called a watermark."""
    return bool(_LAYER.search(unicodedata.normalize("NFKC", name)))


def _plain(text: str) -> str:
    """Small letters and single spaces; letters that stand apart (D R A F T) are drawn together."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text[: 4 * _MAX_LETTERS]).casefold())
    if len(words) > 2 and all(len(word) == 1 for word in words):
        return "".join(words)
    return " ".join(words)


def _is_one_repeated(plain: str) -> bool:
    words = set(plain.split())
    return len(words) == 1 and words <= {*_ALONE, *_TELLING, *_TELLING_CJK}
