"""Receivers that answer slowly, endlessly, packed, or as somebody else: bounded, recorded, tried again. W-13."""

import asyncio
import datetime as dt
import gzip
import ssl
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headrace.database import Database
from headrace.webhooks.http.client import MAX_BODY_BYTES, HttpClient, HttpConfig, Reply
from headrace.webhooks.http.targets import parse_target
from tests.webhooks import stand
from tests.webhooks.receiver import OK, Answer, Receiver, Request, hangs, receiving, says

SHORT = timedelta(seconds=1)


async def post(
    receiver: Receiver, *, within: timedelta = timedelta(seconds=30), tls: ssl.SSLContext | None = None
) -> Reply:
    http = HttpClient(HttpConfig(policy=stand.LOCAL), tls=tls)
    try:
        return await http.post(parse_target(receiver.url, stand.LOCAL), b"{}", {}, endpoint_id="wep_1", timeout=within)
    finally:
        await http.close()


async def _endless_headers(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-More: " + b"x" * 1000 + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0)


async def _head_byte_by_byte(_: Request, writer: asyncio.StreamWriter) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + b"X-Slow: " + b"x" * 10_000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


async def _body_byte_by_byte(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    for _number in range(10_000):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def _endless_informations(_: Request, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 102 Processing\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


async def _nonsense(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff SSH-2.0-OpenSSH\r\n\r\n")


async def _cut_off(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _two_lengths(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (hangs, "timeout"),
        (_head_byte_by_byte, "timeout"),
        (_endless_informations, "timeout"),
        (_endless_headers, "protocol"),
        (_nonsense, "protocol"),
        (_cut_off, "protocol"),
        (_two_lengths, "protocol"),
    ],
)
async def test_no_answer_is_bounded_and_said_why(answer: Answer, kind: str) -> None:
    async with receiving(answer) as receiver:
        limit = SHORT if kind == "timeout" else timedelta(seconds=30)
        reply = await post(receiver, within=limit)
    assert (reply.status, reply.kind) == (None, kind)
    assert reply.error


async def test_a_body_without_end_does_not_change_the_answer() -> None:
    async with receiving(_body_byte_by_byte) as receiver:
        reply = await post(receiver, within=SHORT)
    assert reply.status == 200
    assert reply.is_success
    assert set(reply.body or "x") == {"x"}


async def test_of_a_long_body_four_kilobytes_are_kept() -> None:
    async with receiving(says(500, body="y" * 1_000_000)) as receiver:
        reply = await post(receiver)
    assert (reply.status, reply.body) == (500, "y" * MAX_BODY_BYTES)


async def test_a_gzip_bomb_stays_packed() -> None:
    bomb = gzip.compress(b"0" * 50_000_000)

    async def explode(_: Request, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
        writer.write(head.encode() + bomb)

    async with receiving(explode) as receiver:
        reply = await post(receiver)
        assert receiver.requests[0].headers["accept-encoding"] == "identity"
    assert reply.status == 200
    assert len((reply.body or "").encode()) <= MAX_BODY_BYTES * 3  # each byte that is no text is one sign
    assert "\0" not in (reply.body or "")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(status: int, db: Database) -> None:
    async with receiving() as elsewhere:
        async with receiving(says(status, headers=f"Location: {elsewhere.url}\r\n")) as receiver:
            reply = await post(receiver)
        assert reply.status == status
        assert not reply.is_success
        assert elsewhere.requests == []


@pytest.mark.parametrize("surplus_later", [False, True])
async def test_surplus_bytes_of_one_answer_are_not_the_next_answer(*, surplus_later: bool) -> None:
    """A receiver that answers twice at once would otherwise decide how the next request fared."""

    async def answers_twice(_: Request, writer: asyncio.StreamWriter) -> None:
        answer = b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"
        if surplus_later:
            writer.write(answer)
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.write(OK)
        else:
            writer.write(answer + OK)

    http = HttpClient(HttpConfig(policy=stand.LOCAL))
    async with receiving(answers_twice) as receiver:
        target = parse_target(receiver.url, stand.LOCAL)
        for _number in range(3):
            reply = await http.post(target, b"{}", {}, endpoint_id="wep_1", timeout=timedelta(seconds=30))
            assert reply.status == 500
            if surplus_later:
                await asyncio.sleep(0.2)  # until it has come, or is sure to be read as surplus by the next request
        assert receiver.connections == 3
    await http.close()


async def test_two_endpoints_of_one_host_share_no_connection() -> None:
    """Another user's endpoint on the same host: its receiver cannot answer for ours."""
    http = HttpClient(HttpConfig(policy=stand.LOCAL))
    async with receiving() as receiver:
        target = parse_target(receiver.url, stand.LOCAL)
        for endpoint_id in ("wep_1", "wep_2", "wep_1", "wep_2"):
            await http.post(target, b"{}", {}, endpoint_id=endpoint_id, timeout=timedelta(seconds=30))
        assert receiver.connections == 2
    await http.close()


async def test_idle_connections_are_bounded_over_all_endpoints() -> None:
    http = HttpClient(HttpConfig(policy=stand.LOCAL, kept=2))
    async with receiving() as receiver:
        target = parse_target(receiver.url, stand.LOCAL)
        for endpoint_id in ("wep_1", "wep_2", "wep_3", "wep_3", "wep_1"):
            await http.post(target, b"{}", {}, endpoint_id=endpoint_id, timeout=timedelta(seconds=30))
        assert receiver.connections == 4  # the first one's was closed for the third one's
    await http.close()


async def test_connections_are_used_again() -> None:
    http = stand.http_client()
    async with receiving() as receiver:
        target = parse_target(receiver.url, stand.LOCAL)
        for _ in range(20):
            assert (await http.post(target, b"{}", {}, endpoint_id="wep_1", timeout=SHORT * 30)).status == 204
        assert receiver.connections == 1
    await http.close()


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for this name, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    alternative: x509.GeneralName = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.create_default_context(cafile=str(file))
    return server, client


async def test_certificates_are_checked(tmp_path: Path) -> None:
    server, trusting = certificate(tmp_path, "127.0.0.1")
    async with receiving(tls=server) as receiver:
        unknown = await post(receiver)
        assert (unknown.status, unknown.kind) == (None, "tls")
        assert "certificate" in (unknown.error or "")
        assert (await post(receiver, tls=trusting)).status == 204
    other, trusting_other = certificate(tmp_path, "hooks.example.com")
    async with receiving(tls=other) as receiver:
        wrong = await post(receiver, tls=trusting_other)
        assert (wrong.status, wrong.kind) == (None, "tls")
        assert receiver.requests == []


async def test_hostile_answers_are_recorded_and_tried_again(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with (
        receiving(_nonsense) as nonsense,
        receiving(says(200, body="a\0b\ud83d".encode("utf-8", "replace").decode())) as odd,
    ):
        await stand.make_endpoint(db, ada, nonsense.url, max_retries=1)
        await stand.make_endpoint(db, ada, odd.url)
        await stand.make_endpoint(db, ada, "http://127.0.0.1:1/closed", max_retries=0)
        await stand.happen(db, ada)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    rows = await stand.attempts(db)
    assert sorted(row["status"] for row in rows) == ["DEAD", "DEAD", "DEAD", "SUCCESS"]
    assert all(row["error"] for row in rows if row["status"] != "SUCCESS")
    assert all(row["duration_ms"] is not None for row in rows)
