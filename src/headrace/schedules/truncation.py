"""What of a result and of an error is kept with a run: bounded, and visibly so. S-12.

Limits count bytes of UTF-8, and the mark of a cut is within them; no character is cut in two.
"""

RESULT_LIMIT = 65_536
STACK_LIMIT = 10_240
_MESSAGE_LIMIT = 2_000
_TRACEBACK = "Traceback (most recent call last)"
_CUT = "[cut: the top of the stack follows]\n"


def result_text(result: bytes | None) -> str | None:
    """The result's JSON; longer than 64 KB it is cut, and ends with a mark that says how long it was."""
    if result is None:
        return None
    if len(result) <= RESULT_LIMIT:
        return result.decode()
    mark = f"…[cut: {len(result):,} bytes]"
    return result[: RESULT_LIMIT - len(mark.encode())].decode(errors="ignore") + mark


def error_texts(text: str | None) -> tuple[str | None, str | None]:
    """What went wrong in a line or few, and the stack if there is one.

    Python writes the top of the stack, where it happened, last: of a long one the end is kept.
    """
    # One that begins with … has lost its beginning already (storable.text).
    if text is None or not (_TRACEBACK in text or text.startswith("…")):
        return (None if text is None else text[:_MESSAGE_LIMIT]), None
    lines = [line for line in text.splitlines() if line.strip(" |+-")]
    message = lines[-1].strip()[:_MESSAGE_LIMIT]
    encoded = text.encode()
    if len(encoded) <= STACK_LIMIT:
        return message, text
    kept = encoded[-(STACK_LIMIT - len(_CUT)) :].decode(errors="ignore")
    return message, f"{_CUT}{kept}"
