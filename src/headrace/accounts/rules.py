"""What usernames, passwords, e-mail addresses and telephone numbers must look like. No I/O."""

import re
import unicodedata

from headrace.accounts.config import PasswordConfig
from headrace.accounts.errors import InvalidEmail, InvalidMobile, InvalidPassword, InvalidUsername
from headrace.accounts.weak_passwords import weakness

RESERVED = frozenset({"system", "anonymous"})
# Free for those whom an administrator or the CLI names so; a stranger could pass for the operator.
KEPT_BACK = frozenset({"admin", "administrator", "root", "headrace"})

USERNAME_LONGEST = 64
PASSWORD_LONGEST_BYTES = 1024
_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]+\.[^@\s.\x00-\x1f\x7f]+")
# E.164, as ck_users_mobile has it; people write it with blanks, hyphens, dots and brackets.
_MOBILE = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_MOBILE_PUNCTUATION = str.maketrans("", "", " \u00a0-.()/")
# Letters and marks that are drawn as nothing: two names could look alike. (ck_users_username has them too.)
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def fold(name: str) -> str:
    """The one spelling under which a name is stored and found: compatibility forms and cases made equal.

    Names are kept in lower case (as RFC 8265's UsernameCaseMapped does), so that what is unique does not depend on
    which letters the database's locale knows.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).lower())
    return folded if folded == name else fold(folded)


def check_username(name: str, *, allow_kept_back: bool = False) -> str:
    """The name as it is stored, or ``InvalidUsername``."""
    # Folding can lengthen a text many times over: what is far too long is not worth it.
    folded = fold(name.strip()) if len(name) <= 4 * USERNAME_LONGEST else ""
    if not 1 <= len(folded) <= USERNAME_LONGEST or not _spelled_well(folded):
        raise InvalidUsername(field="username")
    if folded in RESERVED or (folded in KEPT_BACK and not allow_kept_back):
        raise InvalidUsername("This username is reserved.", field="username")
    return folded


def _spelled_well(name: str) -> bool:
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
    """The number as it is stored, ``+`` and digits, or ``InvalidMobile``; nothing takes it away."""
    if mobile is None or not (text := mobile.strip().translate(_MOBILE_PUNCTUATION)):
        return None
    if not _MOBILE.fullmatch(text):
        raise InvalidMobile(field="mobile")
    return text


def check_password(password: str, *, username: str | None, config: PasswordConfig, field: str = "password") -> None:
    """Length is what makes a password strong; beyond that, it must not be what everyone would try first."""
    if len(password) < config.min_length:
        raise InvalidPassword(
            f"A password has at least {config.min_length} characters.", field=field, min_length=config.min_length
        )
    if len(password.encode(errors="surrogatepass")) > PASSWORD_LONGEST_BYTES:
        raise InvalidPassword(f"A password has at most {PASSWORD_LONGEST_BYTES} bytes.", field=field)
    if (why := weakness(fold(password) if len(password) < USERNAME_LONGEST else password, username)) is not None:
        raise InvalidPassword(f"A password {why}.", field=field)
