"""Validation of usernames, passwords, e-mail addresses and telephone numbers. No I/O."""

import re
import unicodedata

from headrace.accounts.config import PasswordConfig
from headrace.accounts.errors import InvalidEmail, InvalidMobile, InvalidPassword, InvalidUsername
from headrace.accounts.weak_passwords import weakness

RESERVED = frozenset({"system", "anonymous"})
# Only administrators and the CLI may assign these names; a stranger could pass for the operator.
RESERVED_FOR_OPERATORS = frozenset({"admin", "administrator", "root", "headrace"})

MAX_USERNAME_LENGTH = 64
MAX_PASSWORD_BYTES = 1024
_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]+\.[^@\s.\x00-\x1f\x7f]+")
# E.164, as ck_users_mobile has it; people write it with blanks, hyphens, dots and brackets.
_MOBILE = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_MOBILE_PUNCTUATION = str.maketrans("", "", " \u00a0-.()/")
# Invisible letters and marks, which would make different names look alike. (ck_users_username has them too.)
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def fold(name: str) -> str:
    """The normalized form under which a name is stored and found: compatibility forms and cases are equal.

    Names are kept in lower case (as in RFC 8265's UsernameCaseMapped), so that uniqueness does not depend on the
    database's locale.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).lower())
    return folded if folded == name else fold(folded)


def check_username(name: str, *, allow_reserved: bool = False) -> str:
    """The name in its stored form; raises ``InvalidUsername``."""
    # Folding can lengthen a text many times over, so much too long names are refused first.
    folded = fold(name.strip()) if len(name) <= 4 * MAX_USERNAME_LENGTH else ""
    if not 1 <= len(folded) <= MAX_USERNAME_LENGTH or not _is_well_formed(folded):
        raise InvalidUsername(field="username")
    if folded in RESERVED or (folded in RESERVED_FOR_OPERATORS and not allow_reserved):
        raise InvalidUsername("This username is reserved.", field="username")
    return folded


def _is_well_formed(name: str) -> bool:
    kinds = [unicodedata.category(letter) for letter in name]
    return (
        (kinds[0][0] == "L" or kinds[0] == "Nd")
        and all(kind[0] in "LM" or kind == "Nd" or letter in "_.-" for kind, letter in zip(kinds, name, strict=True))
        and not _INVISIBLE.search(name)
    )


def check_email(email: str | None) -> str | None:
    if email is None or not (text := email.strip()):
        return None
    if len(text) > 255 or not _EMAIL.fullmatch(text):
        raise InvalidEmail(field="email")
    return text


def check_mobile(mobile: str | None) -> str | None:
    """The number in its stored form, ``+`` and digits; raises ``InvalidMobile``. None or empty text removes it."""
    if mobile is None or not (text := mobile.strip().translate(_MOBILE_PUNCTUATION)):
        return None
    if not _MOBILE.fullmatch(text):
        raise InvalidMobile(field="mobile")
    return text


def check_password(password: str, *, username: str | None, config: PasswordConfig, field: str = "password") -> None:
    """Require a minimum length, and refuse passwords that are guessed first."""
    if len(password) < config.min_length:
        raise InvalidPassword(
            f"A password has at least {config.min_length} characters.", field=field, min_length=config.min_length
        )
    if len(password.encode(errors="surrogatepass")) > MAX_PASSWORD_BYTES:
        raise InvalidPassword(f"A password has at most {MAX_PASSWORD_BYTES} bytes.", field=field)
    if (why := weakness(fold(password) if len(password) < MAX_USERNAME_LENGTH else password, username)) is not None:
        raise InvalidPassword(f"A password {why}.", field=field)
