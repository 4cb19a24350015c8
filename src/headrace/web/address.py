"""The client address of a request behind trusted proxies.

A proxy appends the address it sees to ``X-Forwarded-For``; entries further left came from outside and may be forged. So
the list is read from the right, while the hop is one of our own proxies. ``Forwarded`` (RFC 7239) is not read: a proxy
that fills one header passes the other on unchanged, so trusting both would mean trusting the client.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str | None:
    """The client's address: the rightmost hop that is not a trusted proxy, or as far as hops can be read."""
    address = parse(peer or "")
    if address is None:
        return None
    for hop in reversed([hop for line in forwarded_for for hop in line.split(",")]):
        if not is_in(address, trusted):
            break
        if (before := parse(hop)) is None:
            break  # entries left of it are not trusted
        address = before
    return str(address)


@lru_cache(maxsize=1024)  # a few addresses send most requests
def parse(hop: str) -> Address | None:
    """Parse an address as proxies write it: ``1.2.3.4``, ``1.2.3.4:80``, ``::1``, ``[::1]:80``, ``fe80::1%eth0``."""
    text = hop.strip().strip('"')
    if text.startswith("["):
        text, bracket, port = text[1:].partition("]")
        if not bracket or (port and not _is_port(port)):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not _is_port(f":{port}"):
            return None
    try:
        return _plain(ip_address(text))
    except ValueError:
        return None


def _is_port(text: str) -> bool:
    return text[0] == ":" and text[1:].isascii() and text[1:].isdigit()


def _plain(address: Address) -> Address:
    """The normal form of an address: IPv4 within IPv6 becomes IPv4, and zones are removed."""
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or IPv6Address(int(address))
    return address


def is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
