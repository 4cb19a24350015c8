"""What the inspection believes of its children, and what it needs."""

from pathlib import Path

import pytest

from headrace import extras
from headrace.assets.inspection import handlers, service
from headrace.assets.inspection.errors import REFUSALS, FileRefused, InspectionCrashed
from headrace.assets.inspection.model import MEDIA, FileLimits, Format
from headrace.assets.inspection.service import Inspector
from headrace.tasks.errors import Fatal


def test_every_refusal_has_a_code_of_its_own_and_says_what_to_do() -> None:
    kinds = FileRefused.__subclasses__()
    assert {kind.code: kind for kind in kinds} == dict(REFUSALS)
    assert len(REFUSALS) == len(kinds)
    for kind in kinds:
        message = kind().message
        assert message.endswith("."), kind
        assert ":" in message, kind
        assert len(message) < 150, "it fits a line"


def test_every_format_has_a_kind_and_a_name_for_the_web() -> None:
    assert {kind.media_type for kind in Format} == set(MEDIA)
    assert len({kind.mime_type for kind in Format}) == len(Format)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "facts",
        {},
        {"media_type": "VIRUS", "format": "jpeg", "mime_type": "image/jpeg"},
        {"media_type": "IMAGE", "format": "jpeg", "mime_type": "text/html"},
        {"media_type": "PDF", "format": "jpeg", "mime_type": "image/jpeg"},
        {"media_type": "IMAGE", "format": "jpeg", "mime_type": "image/jpeg", "width": "wide"},
        {"media_type": "IMAGE", "format": "jpeg", "mime_type": "image/jpeg", "width": -1},
        {"media_type": "IMAGE", "format": "jpeg", "mime_type": "image/jpeg", "pages": 10**12},
        {"media_type": "IMAGE", "format": "jpeg", "mime_type": "image/jpeg", "details": {"a": "\0"}},
    ],
)
def test_what_a_child_answers_is_not_believed_blindly(answer: object) -> None:  # W-05
    with pytest.raises(InspectionCrashed):
        service._facts(answer)


def test_of_a_childs_refusals_only_known_codes_are_passed_on() -> None:
    known = service._refusal(Fatal("Too long.", code="file_too_long", seconds=9, deep={"a": 1}))
    assert (known.code, known.message, known.details) == ("file_too_long", "Too long.", {"seconds": 9})
    assert service._refusal(Fatal("Give it up.", code="denied")).code == "inspection_crashed"


async def test_without_the_libraries_it_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender of a file, a client, was told to install an extra of the server's."""
    monkeypatch.setattr(handlers, "LIBRARIES", ("PIL", "no_such_library"))
    path = tmp_path / "upload"
    path.write_bytes(b"x")
    async with Inspector() as inspector:
        reason = r"The server .*no_such_library.*Its operator runs `pip install 'av>=18' 'pikepdf"
        with pytest.raises(extras.ExtraMissing, match=reason):
            await inspector.inspect(path, limits=FileLimits())
        assert not inspector.pids
