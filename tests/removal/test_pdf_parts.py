"""The parts that read and mend content streams."""

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from headrace.removal.documents.pdf.fonts import Font, read_font
from headrace.removal.documents.pdf.geometry import angle_of, apply, multiply, principal_axis, quad_of, turned_quad
from headrace.removal.documents.pdf.pages import PageFrame
from headrace.removal.documents.pdf.pruning import emptied


def names(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize(
    ("stream", "dropped", "left"),
    [
        ("q cm gs Do Q", {3}, ""),  # everything inside ends with its bracket
        ("q cm Do S Q", {2}, "q cm S Q"),  # something is painted still
        ("BT Tf Td Tj ET", {3}, "Tf"),  # the font outlasts the text object
        ("BDC q Do Q EMC", {2}, ""),
        ("q q Do Q S Q", {2}, "q S Q"),
        ("q Do", {1}, "q"),  # brackets that do not match stay
        ("q Do Q Q", {1}, "q Q Q"),
        ("q cm Q", set(), "q cm Q"),  # it was empty before: not ours
    ],
)
def test_brackets_around_nothing_go(stream: str, dropped: set[int], left: str) -> None:
    operators = names(stream)
    useless = emptied(operators, dropped, set())
    assert " ".join(each for at, each in enumerate(operators) if at not in dropped | useless) == left


def test_a_section_that_the_structure_points_to_stays() -> None:
    operators = names("q BDC Tj EMC Q")
    assert emptied(operators, {2}, {1}) == set()


def test_a_font_says_what_it_shows() -> None:
    assert Font().decode(b"Hello") == "Hello"
    listed = Dictionary(
        Subtype=Name.Type1, BaseFont=Name("/ABCDEF+Some"), FirstChar=65, Widths=Array([500, 250]),
        Encoding=Dictionary(Differences=Array([65, Name("/B"), Name("/uni6837"), Name("/five")])),
    )  # fmt: skip
    font = read_font(listed)
    assert (font.name, font.decode(b"ABC")) == ("Some", "B样5")
    assert font.width(b"AB") == 0.75
    assert read_font(Dictionary(Widths=Name.Broken, FirstChar=Name.Broken)).decode(b"x") == "x"


def test_a_map_to_unicode_is_followed() -> None:
    with pikepdf.new() as pdf:
        table = pdf.make_stream(
            b"1 beginbfchar <0003> <0020> endbfchar "
            b"2 beginbfrange <0010> <0012> <0041> <0020> <0021> [<6837> <5F20>] endbfrange"
        )
        inner = Dictionary(Subtype=Name.CIDFontType2, W=Array([16, Array([700, 600]), 17, 18, 300]), DW=1000)
        font = read_font(
            Dictionary(
                Subtype=Name.Type0, Encoding=Name("/Identity-H"), ToUnicode=table, DescendantFonts=Array([inner])
            )
        )
    assert font.decode(b"\x00\x10\x00\x11\x00\x12\x00\x03\x00\x20\x00\x21") == "ABC 样张"
    assert font.width(b"\x00\x10\x00\x11\x00\x20") == pytest.approx(2.0)


def test_matrices_and_directions() -> None:
    turn = (0.0, 1.0, -1.0, 0.0, 0.0, 0.0)
    assert apply(multiply(turn, (1, 0, 0, 1, 5, 5)), (1, 0)) == (5, 6)
    assert angle_of(quad_of(0, 0, 2, 1, turn)) == pytest.approx(90)
    line = [(float(x), float(x)) for x in range(20)]
    degrees, longer = principal_axis(line)
    assert degrees == pytest.approx(45)
    assert longer > 100
    assert angle_of(turned_quad(line, degrees)) == pytest.approx(45)
    assert apply((float("nan"), 0, 0, float("inf"), 0, 0), (1, 1)) == (1e7, 1e7)


@pytest.mark.parametrize(("turned", "seen"), [(0, (10, 180)), (90, (20, 10)), (180, (90, 20)), (270, (180, 90))])
def test_places_are_told_as_they_are_seen(turned: int, seen: tuple[float, float]) -> None:
    assert PageFrame(0, 0, 100, 200, turned).seen((10, 20)) == seen


@pytest.mark.parametrize(
    ("name", "text", "em"),
    [
        ("/Helvetica", "SAMPLE", 4.057),
        ("/Helvetica-BoldOblique", "SAMPLE", 4.167),
        ("/ArialMT", "SAMPLE", 4.057),
        ("/TimesNewRomanPS-BoldMT", "DRAFT", 3.444),
        ("/Times-Roman", "DRAFT", 3.278),
        ("/CourierNew", "DRAFT", 3.0),
        ("/Unheard", "DRAFT", 3.0),  # guessed
    ],
)
def test_fonts_without_widths_have_those_of_the_standard_14(name: str, text: str, em: float) -> None:
    """Guessed widths of 0.6 em made boxes too short for words in capitals, and good results were refused."""
    font = read_font(pikepdf.Dictionary(Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name(name)))
    assert font.width(text.encode()) == pytest.approx(em, abs=0.001)


def test_glyph_names_are_those_of_adobes_list() -> None:
    names = ["eacute", "Adieresis", "endash", "fi", "uni4E2D", "zero", "nonsense"]
    differences = pikepdf.Array([65, *(pikepdf.Name(f"/{name}") for name in names)])
    font = read_font(
        pikepdf.Dictionary(
            Subtype=pikepdf.Name.Type1,
            BaseFont=pikepdf.Name.Other,
            Encoding=pikepdf.Dictionary(Differences=differences),
        )
    )
    assert font.decode(bytes(range(65, 65 + len(names)))) == "éÄ–ﬁ中0"
