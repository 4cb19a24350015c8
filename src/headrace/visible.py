"""Text of strangers on an operator's terminal: shown, never obeyed.

A name can hold sequences that clear the screen, write the clipboard, or turn the reading direction. Each such
character is shown as its escape instead, ``\\x1b`` for example.
"""

import re

# Controls but line feed and tab; separators of lines; marks of direction; what has no width; lone surrogates.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def make_visible(text: str) -> str:
    """The same text with escapes for characters that a terminal would act on.

    >>> make_visible("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)
