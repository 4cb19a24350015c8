"""Parses a user's URL once. The parsed parts are checked and connected to: the URL is not parsed a second time.

Only the form of DNS names is checked here; their addresses are resolved and checked on connecting.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urlsplit

import idna

from headrace.errors import Invalid
from headrace.webhooks.http.addresses import Address, AddressPolicy

MAX_URL_LENGTH = 2048
_DEFAULT_PORTS = {"https": 443, "http": 80}
_FIRST_UNPRIVILEGED_PORT = 1024
# Names that resolve only inside a network, and names that are not host names.
_INTERNAL = (
    "localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "arpa", "onion",
    "invalid",
)  # fmt: skip
_NUMERIC = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_UNWELCOME = re.compile(r"[\x00-\x20\x7f\\]")
_SAFE_IN_PATH = "/:@!$&'()*+,;=-._~%?[]"


class UrlRefused(Invalid):
    """Webhooks are not sent to this address."""

    code = "webhook_url_refused"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: ``host`` in ASCII, as a name or an address, ``path`` with its query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_target(url: str, policy: AddressPolicy) -> Target:
    """Parse a URL; raises ``UrlRefused`` with the fault."""
    if len(url) > MAX_URL_LENGTH:
        raise UrlRefused(f"A webhook's URL has at most {MAX_URL_LENGTH} characters.", field="url")
    if _UNWELCOME.search(url):
        raise _refused("it holds a blank, a backslash or a control character: encode it (%20)")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused("it is not a URL: write it like https://example.com/hooks") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise _refused("it must begin with https://")
    if "@" in parts.netloc:
        raise _refused("it holds a username or a password: check the signature instead, or use a secret path")
    if parts.fragment or url.endswith("#"):
        raise _refused("it has a fragment (#…), which is never sent: leave it out")
    host, address = _host(parts.netloc, parts.hostname or "", policy)
    target = Target(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port, _path(url))
    _check_reach(target, address, policy)
    return target


def _check_reach(target: Target, address: Address | None, policy: AddressPolicy) -> None:
    """Check address, scheme and port together; literal addresses are checked again on connecting."""
    if address is not None and (kind := policy.obstacle(address)) is not None:
        raise _refused(f"the address {target.host} is {kind}")
    opened = policy.opens(address) if address is not None else _is_local(target.host) or bool(policy.networks)
    if target.scheme == "http" and not opened:
        raise _refused("it must begin with https://, so that deliveries cannot be read or changed on the way")
    if target.port < _FIRST_UNPRIVILEGED_PORT and target.port not in (80, 443) and not opened:
        raise _refused(
            f"port {target.port} belongs to other services: use 443, or one from {_FIRST_UNPRIVILEGED_PORT} on"
        )


def _host(netloc: str, host: str, policy: AddressPolicy) -> tuple[str, Address | None]:
    """The host in ASCII, and its address if it is a literal one."""
    if netloc.startswith("["):
        try:
            address = IPv6Address(host)
        except ValueError:
            raise _refused(f"[{host}] is not an IPv6 address") from None
        if address.scope_id is not None:
            raise _refused("an address with a zone (%…) is one of this machine's own links")
        return str(address), address
    name = _ascii(host).removesuffix(".")
    if not name or ".." in name or name.startswith("."):
        raise _refused("it names no host")
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        # Resolvers differ about 2130706433, 0x7f.1 and 0177.0.0.1: only the usual form is accepted.
        try:
            plain = IPv4Address(name)
        except ValueError:
            raise _refused(f"{name} is not an IPv4 address in its usual form (four numbers, 203.0.113.7)") from None
        return str(plain), plain
    _check_name(name, labels, policy)
    return name, None


def _ascii(host: str) -> str:
    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode() if not _is_plain(host) else host.lower()
    except idna.IDNAError:
        raise _refused(f"{host!r} is not the name of a host") from None


def _is_plain(host: str) -> bool:
    # Underscores are common in names of internal services, and IDNA forbids them.
    return re.fullmatch(r"[A-Za-z0-9_.-]+", host) is not None and not host.startswith("xn--") and ".xn--" not in host


def _check_name(name: str, labels: list[str], policy: AddressPolicy) -> None:
    if len(name) > 253 or any(len(label) > 63 or not label for label in labels):
        raise _refused("the host's name is too long")
    if _is_local(name):
        if not policy.local:
            raise _refused(f"{name} is this machine itself; HEADRACE_WEBHOOK_LOCAL_TARGETS allows that")
        return
    if policy.networks:
        return  # an operator with private receivers names them as they like
    if len(labels) == 1 or labels[-1] in _INTERNAL:
        raise _refused(f"{name} is a name of an internal network")


def _is_local(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _path(url: str) -> str:
    """The path and query as sent: non-ASCII characters are percent-encoded, the rest is unchanged."""
    after_authority = url.partition("://")[2]
    start = re.search(r"[/?]", after_authority)
    path = after_authority[start.start() :] if start else "/"
    return quote(path if path.startswith("/") else f"/{path}", safe=_SAFE_IN_PATH)


def _refused(why: str) -> UrlRefused:
    return UrlRefused(f"Webhooks are not sent to this URL: {why}.", field="url")
