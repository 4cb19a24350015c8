"""What queued tasks and finished steps hold in the database is read by later releases."""

from headrace.removal.order import RemovalOrder
from headrace.removal.service import removal_task
from headrace.removal.service.schemas import CandidateOut

# As the release before wrote it; an animation of a batch has all fields.
PAYLOAD = {
    "asset_id": "ast_1", "sha256": "0" * 64, "format": "webp", "units": 2, "quality": "HIGH", "mode": "MANUAL",
    "output_format": "webp", "mask_asset_id": "ast_2", "candidates": [1, 3], "pages": [[1, 4]],
    "hints": [
        {"boxes": [[1, 2, 3, 4]], "polygons": [[[0, 0], [9, 0], [9, 9]]], "keep": [], "pages": [2, 3], "seconds": None}
    ],
    "break_signature": True, "accept_poor": True, "frames": 12, "batch_id": "bat_1",
}  # fmt: skip
REGION = {
    "id": 1, "kind": "region", "method": "eye", "score": 0.9312, "pages": [], "text": None, "box": [1, 2, 3, 4],
    "certain": True,
}  # fmt: skip


def test_an_order_that_was_queued_by_the_release_before_is_read() -> None:
    order = RemovalOrder.model_validate(PAYLOAD)
    assert order.model_dump(mode="json", exclude_unset=True) == PAYLOAD
    assert order.hints[0].all_boxes == [(1, 2, 3, 4), (0, 0, 9, 9)]
    shortest = {name: PAYLOAD[name] for name in ("asset_id", "sha256", "format", "units", "output_format")}
    assert RemovalOrder.model_validate(shortest).accept_poor is False


def test_candidates_that_were_listed_by_the_release_before_are_shown() -> None:
    assert CandidateOut.model_validate(REGION).model_dump() == REGION
    # Its unfinished attempts left other files: their steps are done again.
    assert removal_task._LAYOUT_VERSION == 3
