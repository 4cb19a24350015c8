"""Makes untrusted text safe for an operator's terminal.

A name can contain sequences that clear the screen, write the clipboard, or change the reading direction. Each such
character is replaced by its escape, such as ``\\x1b``.
"""

import re

# Controls except line feed and tab; line separators; direction marks; zero-width characters; lone surrogates.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def make_visible(text: str) -> str:
    """The text with escapes for characters that a terminal would interpret.

    >>> make_visible("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)
