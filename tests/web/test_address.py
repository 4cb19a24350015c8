"""A-06: the client's address, with proxies that are ours and headers that are forged."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.database import Database
from headrace.web.address import client_address, parse
from headrace.web.config import WebConfig
from tests.edge import stand

OURS = [ip_network("10.0.0.0/8"), ip_network("2001:db8:ffff::/48"), ip_network("::1/128")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # nobody in between
        ("203.0.113.9", [], "203.0.113.9"),
        ("2001:db8::9", [], "2001:db8::9"),
        ("::ffff:203.0.113.9", [], "203.0.113.9"),
        ("fe80::1%eth0", [], "fe80::1"),
        # a stranger who claims to be a proxy
        ("203.0.113.9", ["127.0.0.1"], "203.0.113.9"),
        ("203.0.113.9", ["10.0.0.1, 10.0.0.2"], "203.0.113.9"),
        # our proxy: the hop it saw
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("::1", ["203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["2001:db8::9"], "2001:db8::9"),
        ("10.0.0.1", ["[2001:db8::9]:443"], "2001:db8::9"),
        ("10.0.0.1", ["[2001:db8::9]"], "2001:db8::9"),
        ("10.0.0.1", ['"[2001:db8::9]:443"'], "2001:db8::9"),
        ("10.0.0.1", ["203.0.113.9:51234"], "203.0.113.9"),
        ("10.0.0.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["fe80::1%25eth0"], "fe80::1"),
        # what the client wrote before our proxy added its hop
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["127.0.0.1, 10.9.9.9, 203.0.113.9"], "203.0.113.9"),
        # two proxies of ours
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, 2001:db8:ffff::2"], "203.0.113.9"),
        # all of it ours: the first of them is the client
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        # something unreadable: believe no further
        ("10.0.0.1", ["1.1.1.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1, garbage, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["203.0.113.9,"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9:port"], "10.0.0.1"),
        ("10.0.0.1", ["[2001:db8::9"], "10.0.0.1"),
        ("10.0.0.1", ["[2001:db8::9]443"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.09"], "10.0.0.1"),
        # no address at all: a socket file
        (None, ["203.0.113.9"], None),
        ("", ["203.0.113.9"], None),
        ("testclient", [], None),
    ],
)
def test_the_rightmost_hop_that_is_not_ours(peer: str | None, forwarded: list[str], client: str | None) -> None:
    assert client_address(peer, forwarded, OURS) == client


def test_without_trusted_proxies_nobody_is_believed() -> None:
    assert client_address("10.0.0.1", ["203.0.113.9"], []) == "10.0.0.1"


@given(st.text(max_size=60))
def test_no_hop_breaks_the_reader(text: str) -> None:
    address = parse(text)
    assert address is None or parse(str(address)) == address


async def test_it_reaches_the_routes(no_db: Database) -> None:
    app = stand.app(no_db, config=WebConfig(trusted_proxies=(ip_network("10.0.0.0/8"),)))
    forged = {"X-Forwarded-For": "127.0.0.1, 203.0.113.9", "Forwarded": "for=1.1.1.1", "X-Real-IP": "1.1.1.1"}
    async with stand.client(app, peer="10.0.0.1", **stand.AUTHORIZED) as client:
        assert (await client.get("/v1/me", headers=forged)).json()["client_ip"] == "203.0.113.9"
    async with stand.client(app, peer="198.51.100.1", **stand.AUTHORIZED) as client:
        assert (await client.get("/v1/me", headers=forged)).json()["client_ip"] == "198.51.100.1"
