"""Decides which addresses a request may go to: public ones, and those that the operator allows.

The forbidden ranges are those of IANA's special-purpose registries and the few public addresses that clouds use.
An IPv6 address that carries an IPv4 address is judged by that one, where a network really translates it (IPv4-mapped,
NAT64), and refused otherwise (6to4, Teredo, IPv4-compatible): no receiver needs those.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_NAT64 = ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ip_network("2000::/3")

_FORBIDDEN: Sequence[tuple[Network, str]] = [
    (ip_network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier's customers"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own service"),  # Azure's, in a public range
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a relay of 6to4"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for measurements"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "an IPv4 address in disguise"),
        ("::ffff:0:0:0/96", "an IPv4 address in disguise"),
        ("64:ff9b:1::/48", "translated into a private network"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "for documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
]


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """``local`` allows this machine, for development; ``networks`` are private networks of the operator's own
    receivers."""

    local: bool = False
    networks: tuple[Network, ...] = ()

    def obstacle(self, address: Address) -> str | None:
        """Why the address is forbidden; None when it is allowed."""
        judged = plain(address)
        if self.opens(judged):
            return None
        for network, kind in _FORBIDDEN:
            if judged.version == network.version and judged in network:
                return kind
        if isinstance(judged, IPv6Address) and judged not in _GLOBAL_UNICAST:
            return "not a public address"
        return None

    def opens(self, address: Address) -> bool:
        """Whether only this deployment's settings allow the address."""
        opened = (*_LOOPBACK, *self.networks) if self.local else self.networks
        return within(plain(address), opened)


def plain(address: Address) -> Address:
    """The address that is finally reached, without a zone."""
    if isinstance(address, IPv4Address):
        return address
    if (mapped := address.ipv4_mapped) is not None:
        return mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return IPv6Address(int(address))


def within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def parse(text: str) -> Address:
    return ip_address(text.partition("%")[0])
