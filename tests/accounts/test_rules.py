import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.accounts.config import PasswordConfig
from headrace.accounts.errors import InvalidEmail, InvalidPassword, InvalidUsername
from headrace.accounts.rules import check_email, check_password, check_username, fold
from headrace.database import Tx
from headrace.errors import HeadraceError


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("ada", "ada"),
        ("Ada.Lovelace", "ada.lovelace"),
        ("  ada ", "ada"),
        ("ＡＤＡ", "ada"),  # full-width
        ("李雷", "李雷"),
        ("é", "é"),
        ("e\u0301", "é"),
        ("Straße", "straße"),
        ("a" * 64, "a" * 64),
        ("9-to-5_x", "9-to-5_x"),
    ],
)
def test_names_have_one_spelling(typed: str, stored: str) -> None:  # D-01
    assert check_username(typed) == stored


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a" * 65,
        "a" * 10_000,
        "-ada",
        ".",
        "a/b",
        "a@b",
        "a\u200bb",
        "a\u115fb",
        "ada\n.",
        "\u0301a",
        "😀",
        "a\x00",
    ],
)
def test_names_that_nobody_may_have(name: str) -> None:
    with pytest.raises(InvalidUsername) as refused:
        check_username(name)
    assert refused.value.details["field"] == "username"


@pytest.mark.parametrize("name", ["system", "SYSTEM", "Anonymous", "admin", "ｒｏｏｔ"])
def test_reserved_names(name: str) -> None:
    with pytest.raises(InvalidUsername, match="reserved"):
        check_username(name)


def test_an_operator_may_be_called_admin() -> None:
    assert check_username("Admin", allow_reserved=True) == "admin"
    with pytest.raises(InvalidUsername):
        check_username("system", allow_reserved=True)


@pytest.mark.long
@given(st.text(max_size=80))
@example("İstanbul")
@example("ϓ")
def test_folding_twice_is_folding_once(name: str) -> None:
    once = fold(name)
    assert fold(once) == once
    assert unicodedata.is_normalized("NFKC", once)


@pytest.mark.long
async def test_every_name_we_allow_the_database_takes(tx: Tx) -> None:
    """The CHECK on users and the rule here agree, letter by letter of the whole of Unicode."""
    allowed = set()
    for number in range(0x110000):
        if unicodedata.category(chr(number)) in ("Cn", "Co", "Cs"):  # most of it is nothing, and no letter
            continue
        try:
            allowed.add(check_username(f"a{chr(number)}a"))
        except HeadraceError:
            continue
    assert len(allowed) > 100_000
    await tx.execute(
        """INSERT INTO headrace.users (id, username, password_hash)
           SELECT 'u_' || n, name, '!' FROM unnest($1::text[]) WITH ORDINALITY AS names (name, n)
           ON CONFLICT DO NOTHING""",
        sorted(allowed),
    )


@pytest.mark.parametrize("email", ["a@b.cn", "李雷@例子.中国", " ada@example.org "])
def test_addresses(email: str) -> None:
    assert check_email(email) == email.strip()


@pytest.mark.parametrize("email", [None, "", "  "])
def test_no_address_is_fine(email: str | None) -> None:
    assert check_email(email) is None


@pytest.mark.parametrize("email", ["a", "a@b", "a@@b.c", "a b@c.d", "@b.c", "a@b." + "c" * 255])
def test_what_is_no_address(email: str) -> None:
    with pytest.raises(InvalidEmail):
        check_email(email)


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("short", "at least 10"),
        ("x" * 1025, "at most 1024"),
        ("水" * 342, "at most 1024"),
        ("Ada.Lovelace", "username"),
        ("ecalevol.ada", "username"),
        ("1815Ada.Lovelace!", "username"),
        ("aaaaaaaaaaaa", "over and over"),
        ("abcdeabcdeab", "over and over"),
        ("aabbccddaabb", "over and over"),
        ("ABCDEFGHIJ", "a row of"),
        ("9876543210", "a row of"),
        ("1234567890", "10,000 commonest"),
        ("QwertyUiop", "10,000 commonest"),
    ],
)
def test_passwords_that_are_refused_say_why(password: str, why: str) -> None:
    with pytest.raises(InvalidPassword, match=why) as refused:
        check_password(password, username="ada.lovelace", config=PasswordConfig())
    assert refused.value.details["field"] == "password"


@pytest.mark.parametrize(
    "password", ["0123456780", "水火木金土" * 60 + "a", "  spaces are fine  ", "ada and a fish", "Tr0ub4dor&3x"]
)
def test_passwords_that_are_taken(password: str) -> None:
    check_password(password, username="ada", config=PasswordConfig())
