"""What counts as a mark, and what does not."""

from dataclasses import replace

import pytest

from headrace.removal.documents.scoring import Evidence, Traits, judge
from headrace.removal.documents.words import Words, is_watermark_name, watermark_words
from headrace.removal.thresholds import MIN_AUTO_SCORE, MIN_LISTED_DOCUMENT_SCORE

MARK = Traits(text="Mara Lind", angle=45, alpha=0.3, span=0.6, centred=True, pages=5, of_pages=5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("DRAFT", Words.ALL),
        ("D R A F T", Words.ALL),
        ("draft draft draft", Words.ALL),
        ("样张", Words.ALL),
        ("仅供参考", Words.ALL),  # no buyer's name
        ("内部资料 请勿外传", Words.PART),
        ("Strictly confidential", Words.PART),
        ("Evaluation Only. Created with a library", Words.TRIAL),
        ("Evaluation Warning : The document was created with a library", Words.TRIAL),
        ("Scanned with CamScanner", Words.TRIAL),
        ("Licensed to jane@x.example", Words.LICENCE),
        ("This copy belongs to M. Lind", Words.LICENCE),
        ("SAMPLE", Words.ALL),
        ("A sample of one hundred", Words.NONE),
        ("Overdraft fees", Words.NONE),
        ("This draft is long. " * 9, Words.NONE),
        ("", Words.NONE),
    ],
)
def test_words_of_marks(text: str, found: Words) -> None:
    assert watermark_words(text) is found


def test_names_of_layers() -> None:
    names = ("Watermark", "water mark 2", "PowerPlusWaterMarkObject3", "水印", "Wasserzeichen", "透かし")
    assert all(is_watermark_name(name) for name in names)
    assert not any(is_watermark_name(name) for name in ("Layer 1", "Waterways", "Title 2", "Stamp"))


def test_what_the_file_calls_a_watermark_is_one() -> None:
    verdict = judge(Traits(named=True, pages=1, in_margin=True))
    assert verdict.score > MIN_AUTO_SCORE
    assert verdict.method is Evidence.NAMED


@pytest.mark.parametrize(
    "certain",
    [
        MARK,
        replace(MARK, alpha=1.0, pale=True),
        replace(MARK, text="", angle=0),  # a picture that is seen through
        replace(MARK, text="DRAFT", pages=1, of_pages=9),
        replace(MARK, text="x@y.example", span=0.05, centred=False, copies_a_page=20),
    ],
)
def test_a_mark_is_certain(certain: Traits) -> None:
    assert judge(certain).score >= MIN_AUTO_SCORE


@pytest.mark.parametrize(
    "doubtful",
    [
        replace(MARK, pages=1),  # slanted and seen through, but once, and it says nothing of a mark
        replace(MARK, plain_shape=True, text=""),
        replace(MARK, belongs=True),
        replace(MARK, alpha=1.0, text="Big sale", pages=3, of_pages=9),
        replace(MARK, angle=0, text="", backdrop=True),
        replace(MARK, text="SAMPLE", pages=1, of_pages=50),  # on a cheque that is drawn in instructions
        Traits(text="Evaluation Only. Created with Slides", in_margin=True, pages=50, of_pages=50),
        Traits(text="Scanned with CamScanner", in_margin=True, pages=1, of_pages=1),
        Traits(text="Licensed to jane@x.example", in_margin=True, pages=5, of_pages=5),
    ],
)
def test_a_doubtful_one_is_the_users(doubtful: Traits) -> None:
    assert MIN_LISTED_DOCUMENT_SCORE <= judge(doubtful).score < MIN_AUTO_SCORE


@pytest.mark.parametrize(
    "own",
    [
        Traits(text="Tern & Gull Ltd.", in_margin=True, pages=9, of_pages=9),  # a letterhead
        Traits(text="Page 3", in_margin=True, pages=1, of_pages=9),
        Traits(text="Confidential", in_margin=True, pages=9, of_pages=9),  # a footer says it, too
        Traits(in_margin=True, pages=9, of_pages=9, span=0.1),  # a logo
        Traits(text="axis of time", angle=90, pages=1),
        Traits(text="N", angle=30, pages=1, span=0.1),  # on a map
        Traits(text="A heading", span=0.5, centred=True),
    ],
)
def test_what_belongs_to_the_document_is_not_even_listed(own: Traits) -> None:
    assert judge(own).score < MIN_LISTED_DOCUMENT_SCORE
