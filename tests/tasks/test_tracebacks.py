"""Of a failure's stack a user sees their own code, and an administrator all of it."""

import json
import sys

from headrace.tasks.tracebacks import for_users

FOLDER = "/srv/shop"


def _failure() -> str:
    import traceback

    scope: dict[str, object] = {"json": json}
    exec(compile("def handler():\n    json.loads('{')\n", f"{FOLDER}/handlers.py", "exec"), scope)
    try:
        scope["handler"]()  # type: ignore[operator]
    except ValueError as exc:
        return "".join(traceback.format_exception(exc)).rstrip()
    raise AssertionError


def test_frames_of_the_handler_stay_without_their_folder() -> None:
    whole = _failure()
    assert f'File "{FOLDER}/handlers.py"' in whole
    assert sys.prefix in whole or "lib/python" in whole
    shown = for_users(whole) or ""
    assert '  File "handlers.py", line 2, in handler' in shown
    assert shown.startswith("Traceback (most recent call last):")
    assert shown.endswith(whole.splitlines()[-1])
    assert "/" not in shown
    assert "raw_decode" not in shown


def test_a_message_without_a_stack_stays_as_it_is() -> None:
    for text in (None, "", "there is no paper", 'File "a" is not there'):
        assert for_users(text) == text
