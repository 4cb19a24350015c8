"""Strangers choose where requests go: what they may not reach is refused with a reason, never connected to. W-13."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import httpcore2
import pytest

from headrace.webhooks.http.addresses import Address, AddressPolicy, parse
from headrace.webhooks.http.client import HttpClient, HttpConfig
from headrace.webhooks.http.targets import Target, UrlRefused, parse_target
from headrace.webhooks.model import networks_of

STRICT = AddressPolicy()

# Refused as they are written: nothing is looked up for them.
URLS = [
    # schemes
    "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com:70/_x", "//example.com/",
    "javascript:alert(1)", "data:text/plain,x", "unix:/run/x.sock", "example.com/hooks", "",
    # this machine
    "https://localhost/", "https://localhost./", "https://LOCALHOST/", "https://api.localhost/", "https://127.0.0.1/",
    "https://127.1.2.3:8443/", "https://[::1]/", "https://[0:0:0:0:0:0:0:1]/", "https://0.0.0.0/", "https://[::]/",
    # other ways of writing an address
    "https://2130706433/", "https://017700000001/", "https://0x7f000001/", "https://0x7f.1/", "https://127.1/",
    "https://0177.0.0.1/", "https://127.0.0.01/", "https://1.2.3/", "https://１２７.0.0.1/", "https://①②⑦.0.0.1/",
    "https://127。0。0。1/", "https://ⓛocalhost/", "https://0/", "https://1.2.3.4.5/", "https://256.1.1.1/",
    # private, shared, link-local, metadata, multicast, reserved
    "https://10.0.0.1/", "https://172.16.0.1/", "https://172.31.255.255/", "https://192.168.1.1/",
    "https://100.64.0.1/", "https://100.100.100.200/", "https://169.254.169.254/latest/meta-data/",
    "https://168.63.129.16/", "https://192.0.0.192/", "https://224.0.0.1/", "https://255.255.255.255/",
    "https://240.0.0.1/", "https://198.18.0.1/", "https://192.0.2.1/", "https://192.88.99.1/",
    # IPv6 and what can be hidden in it
    "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::ffff:169.254.169.254]/",
    "https://[::127.0.0.1]/", "https://[::ffff:0:127.0.0.1]/", "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::1]/", "https://[2002:7f00:1::]/",
    "https://[2001:0:53aa:64c::1]/", "https://[fd00:ec2::254]/", "https://[fc00::1]/", "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/", "https://[fec0::1]/", "https://[ff02::1]/", "https://[2001:db8::1]/",
    "https://[100::1]/", "https://[4000::1]/", "https://[::1", "https://[nonsense]/",
    # names of internal networks
    "https://metadata.google.internal/", "https://printer.local/", "https://router.lan/", "https://intranet/",
    "https://db.corp/", "https://1.0.0.127.in-addr.arpa/", "https://abc.onion/",
    # credentials, fragments, ports, bytes that parsers disagree about
    "https://user:secret@example.com/", "https://example.com@127.0.0.1/", "https://user@example.com/",
    "https://example.com/#fragment", "https://example.com/#", "https://example.com:25/", "https://example.com:22/",
    "https://example.com:0/", "https://example.com:99999/", "https://example.com:x/", "https://example.com\\@127.0.0.1/",
    "https://example.com/a b", "https://example.com/\r\nHost: evil", "https://example.com/\t", "https://exam\u0000ple.com/",
    "https:///hooks", "https://", "https://.example.com/", "https://example..com/", "https://" + "a" * 64 + ".com/",
    "https://example.com/" + "a" * 2048, "https://exa$mple.com/", "https://-\u200d.com/",
]  # fmt: skip

# Names that look harmless and lead elsewhere: refused when they are connected to.
ANSWERS = {
    "loopback": ["127.0.0.1"],
    "loopback by IPv6": ["::1"],
    "unspecified": ["0.0.0.0"],
    "private": ["10.1.2.3"],
    "private by IPv6": ["fd12:3456::1"],
    "carrier": ["100.64.0.1"],
    "metadata": ["169.254.169.254"],
    "metadata by IPv6": ["fd00:ec2::254"],
    "Alibaba's metadata": ["100.100.100.200"],
    "Azure's wire server": ["168.63.129.16"],
    "link-local with a zone": ["fe80::1%eth0"],
    "mapped": ["::ffff:127.0.0.1"],
    "mapped private": ["::ffff:10.0.0.1"],
    "compatible": ["::127.0.0.1"],
    "NAT64 to loopback": ["64:ff9b::7f00:1"],
    "NAT64 to metadata": ["64:ff9b::a9fe:a9fe"],
    "NAT64, local prefix": ["64:ff9b:1::a00:1"],
    "6to4": ["2002:7f00:1::1"],
    "Teredo": ["2001:0:53aa:64c::1"],
    "multicast": ["224.0.0.251"],
    "broadcast": ["255.255.255.255"],
    "a public one among private ones": ["93.184.215.14", "10.0.0.1"],
    "a private one last": ["93.184.215.14", "2606:2800:21f:cb07::1", "::1"],
}

GOOD = {
    "https://example.com": "https://example.com/",
    "https://Example.COM:443/a?b=c": "https://example.com/a?b=c",
    "https://example.com.:8443/x": "https://example.com:8443/x",
    "https://bücher.example/ü": "https://xn--bcher-kva.example/%C3%BC",
    "https://93.184.215.14/": "https://93.184.215.14/",
    "https://[2606:2800:21f:cb07::1]:8443/": "https://[2606:2800:21f:cb07::1]:8443/",
    "https://[::ffff:93.184.215.14]/": "https://[::ffff:5db8:d70e]/",
    "https://my_service.example.com?x": "https://my_service.example.com/?x",
}


class Sockets(httpcore2.AsyncNetworkBackend):
    """Writes down what would be connected to."""

    def __init__(self) -> None:
        self.connected: list[str] = []

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        self.connected.append(host)
        raise httpcore2.ConnectError("this is a test")


class Names:
    """A server of names that says something else each time, if it is told to."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def __call__(self, *_: object) -> Sequence[Address]:
        self.asked += 1
        return [parse(text) for text in self._answers[min(self.asked, len(self._answers)) - 1]]


def client(names: Names, sockets: Sockets, policy: AddressPolicy = STRICT) -> HttpClient:
    return HttpClient(HttpConfig(policy=policy), resolve=names, backend=sockets)


def target(url: str = "https://hooks.example.com/", policy: AddressPolicy = STRICT) -> Target:
    return parse_target(url, policy)


SECOND = timedelta(seconds=10)


def test_there_are_enough_of_them() -> None:
    assert len(URLS) + len(ANSWERS) >= 60
    assert len(set(URLS)) == len(URLS)


@pytest.mark.parametrize("url", URLS)
def test_a_hostile_url_is_refused_with_a_reason(url: str) -> None:
    with pytest.raises(UrlRefused) as refused:
        target(url)
    assert len(refused.value.message) > 20
    assert "secret" not in refused.value.message.replace("a secret path", "")


@pytest.mark.parametrize(("url", "normal"), GOOD.items())
def test_a_good_url_is_written_in_one_way(url: str, normal: str) -> None:
    assert target(url).url == normal
    assert target(normal).url == normal  # what is stored is read again when it is sent


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
async def test_a_hostile_answer_is_never_connected_to(answers: list[str]) -> None:
    sockets = Sockets()
    http = client(Names(answers), sockets)
    reply = await http.post(target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND)
    assert (reply.status, reply.kind) == (None, "refused")
    assert "leads to" in (reply.error or "")
    assert sockets.connected == []
    await http.close()


async def test_a_name_that_is_rebound_after_the_check_leads_nowhere_else() -> None:
    """The address that was checked is the one that is connected to; each new connection is checked anew."""
    sockets, names = Sockets(), Names(["93.184.215.14"], ["127.0.0.1"])
    http = client(names, sockets)
    first = await http.post(target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND)
    assert (first.kind, names.asked, sockets.connected) == ("connection", 1, ["93.184.215.14"])
    second = await http.post(target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND)
    assert (second.kind, names.asked, sockets.connected) == ("refused", 2, ["93.184.215.14"])
    await http.close()


async def test_nat64_to_a_public_address_is_fine() -> None:
    sockets = Sockets()
    http = client(Names(["64:ff9b::5db8:d70e"]), sockets)
    await http.post(target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND)
    assert sockets.connected == ["64:ff9b::5db8:d70e"]
    await http.close()


async def test_allowed_addresses_narrow_further() -> None:
    sockets = Sockets()
    http = client(Names(["93.184.215.14", "1.1.1.1"]), sockets)
    await http.post(target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND, allow_ips=networks_of(["1.1.1.0/24"]))
    assert sockets.connected == ["1.1.1.1"]
    reply = await http.post(
        target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND, allow_ips=networks_of(["9.9.9.9"])
    )
    assert reply.kind == "refused"
    assert "allow_ips" in (reply.error or "")
    assert sockets.connected == ["1.1.1.1"]
    await http.close()


async def test_no_endpoint_uses_a_connection_that_another_policy_made() -> None:
    sockets = Sockets()
    http = client(Names(["93.184.215.14"]), sockets)
    await http.post(target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND)
    reply = await http.post(
        target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND, allow_ips=networks_of(["1.1.1.1"])
    )
    assert reply.kind == "refused"
    await http.close()


async def test_allowed_addresses_open_nothing_that_is_forbidden() -> None:
    sockets = Sockets()
    http = client(Names(["10.0.0.1"]), sockets)
    reply = await http.post(
        target(), b"{}", {}, endpoint_id="wep_1", timeout=SECOND, allow_ips=networks_of(["10.0.0.0/8"])
    )
    assert reply.kind == "refused"
    assert sockets.connected == []
    await http.close()


def test_development_opens_this_machine_and_nothing_else() -> None:
    local = AddressPolicy(local=True)
    for url in ("http://localhost:9000/", "http://127.0.0.1:9000/", "https://[::1]:9000/", "http://hook.localhost/"):
        assert target(url, local).port
    for url in ("http://10.0.0.1/", "http://example.com/", "https://192.168.0.1/", "https://169.254.169.254/"):
        with pytest.raises(UrlRefused):
            target(url, local)


def test_an_operator_opens_networks_of_their_own() -> None:
    own = AddressPolicy(networks=networks_of(["10.20.0.0/16"]) or ())
    assert target("http://10.20.1.1/", own).host == "10.20.1.1"
    assert target("http://hooks.corp/", own).host == "hooks.corp"
    for url in ("http://10.21.0.1/", "http://localhost/", "http://127.0.0.1/"):
        with pytest.raises(UrlRefused):
            target(url, own)


async def test_files_of_this_machine_are_no_targets() -> None:
    from headrace.webhooks.http.connecting import AddressRefused, GuardedBackend

    backend = GuardedBackend(STRICT, Names([]))
    with pytest.raises(AddressRefused):
        await backend.connect_unix_socket("/run/postgresql/.s.PGSQL.5432")


def test_every_range_that_is_not_public_is_refused() -> None:
    """Held against Python's own list, address by address over the ranges' edges."""
    import ipaddress

    def edges(networks: Iterable[str]) -> Iterable[Address]:
        for text in networks:
            network = ipaddress.ip_network(text)
            yield network[0]
            yield network[-1]

    private = ("10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
               "fc00::/7", "fe80::/10", "::1/128", "ff00::/8", "240.0.0.0/4", "0.0.0.0/8")  # fmt: skip
    for address in edges(private):
        assert STRICT.obstacle(address) is not None, address
    for text in ("1.1.1.1", "8.8.8.8", "223.5.5.5", "172.32.0.1", "100.128.0.1", "2400:3200::1", "2606:4700::1111"):
        assert STRICT.obstacle(parse(text)) is None, text
