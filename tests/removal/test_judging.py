"""What is a mark and what is not, by what both looks say of a group."""

import numpy as np

from headrace.removal.images.eye.judging import Judged, judge
from headrace.removal.images.eye.model import Levels, Picture

SIZE = (400, 600)
GREY = np.full((*SIZE, 3), 128, np.uint8)


def _judge(likely: Levels, coarse: Levels, *, picture: Picture = GREY, prior: float = 0.0) -> Judged:
    return judge(picture, likely, coarse, prior=prior)


def _word(level: int, *, left: int = 420, top: int = 350, letters: int = 6) -> Levels:
    """Letters side by side, each 14 x 20 pixels."""
    likely = np.zeros(SIZE, np.uint8)
    for k in range(letters):
        likely[top : top + 20, left + 24 * k : left + 24 * k + 14] = level
    return likely


def test_letters_of_a_word_are_judged_together() -> None:
    (region,) = _judge(_word(254), _word(254)).regions
    assert (region.left, region.top) == (416, 346)
    assert region.width > 5 * 24
    assert region.pixels == 6 * 14 * 20


def test_what_both_looks_doubt_is_less_likely_than_what_they_are_sure_of() -> None:
    sure, doubtful = _judge(_word(254), _word(254)).score, _judge(_word(110), _word(40)).score
    assert sure > 0.75
    assert doubtful < 0.3


def test_the_same_word_is_less_likely_a_mark_where_much_else_looks_like_one() -> None:
    alone = _judge(_word(252), _word(252)).score
    page = _word(252)
    for top in range(10, 300, 44):
        for left in range(10, 560, 60):
            page[top : top + 6, left : left + 8] = 120
    assert _judge(page, _word(252)).score < alone


def test_every_pixel_tells_how_sure_its_group_is() -> None:
    both = np.maximum(_word(254), _word(252, left=20, top=350, letters=4))
    judged = _judge(both, both)
    assert len(judged.regions) == 2
    assert judged.certainty[360, 425] > judged.certainty[360, 25] > 0
    assert judged.score == judged.regions[0].score


def test_somebody_who_knows_of_a_mark_makes_it_likelier() -> None:
    faint = _word(120)
    assert _judge(faint, faint, prior=5.0).score > _judge(faint, faint).score


def test_nothing_is_a_mark_where_nothing_is() -> None:
    judged = _judge(np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8))
    assert judged.regions == []
    assert not judged.tight.any()


def test_letters_on_a_board_of_the_scene_are_less_likely_a_mark() -> None:  # a road sign
    word = _word(254, left=240, top=180)
    over_the_scene = GREY.copy()
    over_the_scene[word > 0] = 230
    sign = over_the_scene.copy()
    sign[160:220, 220:400][word[160:220, 220:400] == 0] = (20, 60, 160)
    # In the middle of a picture a word is unlikely: an odds prior lifts both above the least score that is listed.
    known = [_judge(word, word, picture=picture, prior=4.0).score for picture in (sign, over_the_scene)]
    assert 0 < known[0] < known[1]
    assert _judge(word, word, picture=sign).score < 0.5
