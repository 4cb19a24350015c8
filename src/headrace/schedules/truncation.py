"""Truncates results and errors of runs, with a visible mark. S-12.

Limits count bytes of UTF-8 and include the mark; no character is split.
"""

MAX_RESULT_BYTES = 65_536
MAX_STACK_BYTES = 10_240
_MAX_MESSAGE_CHARACTERS = 2_000
_TRACEBACK = "Traceback (most recent call last)"
_CUT = "[cut: the top of the stack follows]\n"


def result_text(result: bytes | None) -> str | None:
    """The result's JSON; above 64 KB it is truncated, with a mark of its full length."""
    if result is None:
        return None
    if len(result) <= MAX_RESULT_BYTES:
        return result.decode()
    mark = f"…[cut: {len(result):,} bytes]"
    return result[: MAX_RESULT_BYTES - len(mark.encode())].decode(errors="ignore") + mark


def error_texts(text: str | None) -> tuple[str | None, str | None]:
    """The error message, and the stack if there is one.

    Python prints the innermost frame last: of a long stack the end is kept.
    """
    # A text that begins with … was truncated before (storable.text).
    if text is None or not (_TRACEBACK in text or text.startswith("…")):
        return (None if text is None else text[:_MAX_MESSAGE_CHARACTERS]), None
    lines = [line for line in text.splitlines() if line.strip(" |+-")]
    message = lines[-1].strip()[:_MAX_MESSAGE_CHARACTERS]
    encoded = text.encode()
    if len(encoded) <= MAX_STACK_BYTES:
        return message, text
    kept = encoded[-(MAX_STACK_BYTES - len(_CUT)) :].decode(errors="ignore")
    return message, f"{_CUT}{kept}"
