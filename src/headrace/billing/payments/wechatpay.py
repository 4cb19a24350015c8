"""A client of WeChat Pay API v3 for orders and refunds. It is never called inside a transaction.

The vendor's Python clients have a fixed address, block, and drop all certificates when fetching new ones fails: so this
client sends with httpx2 and signs with ``signing``. Requests are not logged.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import httpx2
import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from headrace import clock, logs
from headrace.billing.payments import signing
from headrace.billing.payments.config import WeChatPayConfig
from headrace.billing.payments.errors import WeChatPayMisconfigured, WeChatPayRefused, WeChatPayUnavailable
from headrace.billing.payments.model import Order, PayMethod, Refund, RefundState, Trade, TradeState
from headrace.billing.payments.platform_keys import PlatformKeys

log = logs.get(__name__)

T = TypeVar("T")

_MAX_RESPONSE_BYTES = 256 * 1024
_TRANSACTIONS = "/v3/pay/transactions"
_REFUNDS = "/v3/refund/domestic/refunds"


class WeChatPay:
    """The merchant's side of WeChat Pay."""

    def __init__(self, config: WeChatPayConfig) -> None:
        self.config = config
        self._private_key = _private_key(config)
        self.keys = PlatformKeys(_configured_key(config), None if config.public_key else self._fetch_certificates)
        self._http = httpx2.AsyncClient(
            base_url=config.base_url.rstrip("/"), timeout=config.timeout.total_seconds(), follow_redirects=False
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prepare(self, order: Order, *, openid: str | None) -> tuple[str | None, str | None]:
        """(code_url, prepay_id): the way to pay this order. Idempotent by order."""
        body = {
            "appid": self.config.app_id,
            "mchid": self.config.mch_id,
            "description": order.description,
            "out_trade_no": order.id,
            "time_expire": order.expires_at.astimezone(UTC).isoformat(timespec="seconds"),
            "notify_url": self.config.notify_url,
            "amount": {"total": order.amount_cents, "currency": order.currency},
        }
        if openid is not None:
            body["payer"] = {"openid": openid}
        status, answer = await self._ask("POST", f"{_TRANSACTIONS}/{order.method.lower()}", body)
        if status != 200:
            raise _refusal(status, answer)
        code_url, prepay_id = answer.get("code_url"), answer.get("prepay_id")
        if not isinstance(code_url if order.method is PayMethod.NATIVE else prepay_id, str):
            raise WeChatPayUnavailable
        return code_url, prepay_id

    async def find_trade(self, order_id: str) -> Trade | None:
        """The state of an order at WeChat Pay; None if it is unknown there."""
        status, answer = await self._ask("GET", f"{_TRANSACTIONS}/out-trade-no/{order_id}?mchid={self.config.mch_id}")
        if status == 404:
            return None
        if status != 200:
            raise _refusal(status, answer)
        return _understood(trade_of, answer)

    async def close_order(self, order_id: str) -> None:
        """Make an order unpayable. ``WeChatPayRefused`` if it was just paid."""
        status, answer = await self._ask(
            "POST", f"{_TRANSACTIONS}/out-trade-no/{order_id}/close", {"mchid": self.config.mch_id}
        )
        if status not in (200, 204, 404):
            raise _refusal(status, answer)

    async def refund(self, order: Order) -> Refund:
        """Refund an order in full. Idempotent by refund id."""
        amount = {"refund": order.amount_cents, "total": order.amount_cents, "currency": order.currency}
        body = {
            "out_trade_no": order.id,
            "out_refund_no": order.refund_id,
            "reason": order.refund_reason,
            "notify_url": self.config.notify_url,
            "amount": amount,
        }
        status, answer = await self._ask("POST", _REFUNDS, body)
        if status != 200:
            raise _refusal(status, answer)
        return _understood(refund_of, answer)

    async def find_refund(self, refund_id: str) -> Refund | None:
        status, answer = await self._ask("GET", f"{_REFUNDS}/{refund_id}")
        if status == 404:
            return None
        if status != 200:
            raise _refusal(status, answer)
        return _understood(refund_of, answer)

    def jsapi_parameters(self, prepay_id: str) -> dict[str, str]:
        """The arguments of `wx.requestPayment` in a mini-program."""
        stamp, nonce, package = str(int(clock.now().timestamp())), secrets.token_hex(16), f"prepay_id={prepay_id}"
        signature = signing.sign(self._private_key, f"{self.config.app_id}\n{stamp}\n{nonce}\n{package}\n")
        return {
            "appId": self.config.app_id,
            "timeStamp": stamp,
            "nonceStr": nonce,
            "package": package,
            "signType": "RSA",
            "paySign": signature,
        }

    def decrypt(self, resource: Mapping[str, Any]) -> bytes | None:
        """Decrypt a notice's resource; None if it was not encrypted with this merchant's key."""
        if resource.get("algorithm") != "AEAD_AES_256_GCM":
            return None
        try:
            return signing.decrypt(
                self.config.api_v3_key,
                nonce=resource["nonce"],
                ciphertext=resource["ciphertext"],
                associated_data=resource.get("associated_data") or "",
            )
        except (KeyError, ValueError, TypeError, AttributeError):
            return None

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, signed: bool = True
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer; ``WeChatPayUnavailable`` without an answer, or for an unsigned one."""
        content = b"" if body is None else orjson.dumps(body)
        try:
            # httpx2 limits each read; this limits their total time.
            async with asyncio.timeout(2 * self.config.timeout.total_seconds()):
                status, headers, raw = await self._send(method, path, content)
        except (httpx2.HTTPError, TimeoutError) as exc:
            log.warning("wechatpay.unreachable", error=type(exc).__name__)
            raise WeChatPayUnavailable from None
        # Refusals are often unsigned, and a forged one gains nothing.
        if signed and 200 <= status < 300 and not await self.keys.verify(headers, raw):
            log.error("wechatpay.unsigned", status=status)
            raise WeChatPayUnavailable
        return status, _read(status, raw)

    async def _send(self, method: str, path: str, content: bytes) -> tuple[int, httpx2.Headers, bytes]:
        authorization = signing.authorization(
            self._private_key,
            mch_id=self.config.mch_id,
            serial=self.config.cert_serial,
            method=method,
            path=path,
            body=content.decode(),
            now=clock.now(),
        )
        headers = {"Authorization": authorization, "Accept": "application/json", "Accept-Encoding": "identity"}
        if content:
            headers["Content-Type"] = "application/json"
        if self.config.public_key_id is not None:
            headers["Wechatpay-Serial"] = self.config.public_key_id  # the key that verifies answers
        async with self._http.stream(method, path, content=content, headers=headers) as reply:
            raw = b""
            async for part in reply.aiter_raw():
                raw += part
                if len(raw) > _MAX_RESPONSE_BYTES:
                    raise httpx2.DecodingError("longer than any answer of WeChat Pay's")
            return reply.status_code, reply.headers, raw

    async def _fetch_certificates(self) -> Mapping[str, str]:
        """Fetch WeChat Pay's certificates. The answer's signature cannot be verified without them; but only a holder of
        the merchant's APIv3 key can have encrypted it."""
        status, answer = await self._ask("GET", "/v3/certificates", signed=False)
        if status != 200:
            raise WeChatPayUnavailable
        found = {}
        for each in answer.get("data", ()):
            pem = self.decrypt(each.get("encrypt_certificate", {}))
            if pem is not None:
                found[str(each["serial_no"])] = pem.decode()
        return found


def _read(status: int, raw: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(raw) if raw else {}
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        log.warning("wechatpay.garbled", status=status)
        raise WeChatPayUnavailable
    return answer


def _understood(read: Callable[[Mapping[str, Any]], T], answer: Mapping[str, Any]) -> T:
    """Parse an answer; an unknown format counts as unavailable, so that one order does not block the others."""
    try:
        return read(answer)
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        log.error("wechatpay.not_understood", error=repr(exc))
        raise WeChatPayUnavailable from None


def _refusal(status: int, answer: Mapping[str, Any]) -> WeChatPayRefused | WeChatPayUnavailable:
    """4xx is final, except for the few codes that WeChat Pay marks as retryable."""
    code = str(answer.get("code", status))[:64]
    log.warning("wechatpay.refused", status=status, code=code)
    if status >= 500 or status == 429 or code in ("SYSTEM_ERROR", "FREQUENCY_LIMITED"):
        return WeChatPayUnavailable()
    if code in ("SIGN_ERROR", "NO_AUTH", "MCH_NOT_EXISTS", "APPID_MCHID_NOT_MATCH"):
        log.error("wechatpay.misconfigured", code=code)  # for the operator; the user need not know
    return WeChatPayRefused(reason=code)


def trade_of(answer: Mapping[str, Any]) -> Trade:
    """Parse a payment of an answer or a notice; raises ``KeyError``, ``ValueError`` or ``TypeError``."""
    amount = answer.get("amount") or {}
    return Trade(
        order_id=str(answer["out_trade_no"]),
        state=TradeState(answer["trade_state"]),
        transaction_id=answer.get("transaction_id"),
        amount_cents=amount.get("total"),
        currency=amount.get("currency", "CNY"),
        app_id=answer.get("appid"),
        mch_id=answer.get("mchid"),
        paid_at=_time(answer.get("success_time")),
    )


def refund_of(answer: Mapping[str, Any]) -> Refund:
    """Notices call the state ``refund_status``, answers ``status``."""
    amount = answer.get("amount") or {}
    return Refund(
        order_id=str(answer["out_trade_no"]),
        refund_id=str(answer["out_refund_no"]),
        state=RefundState(answer.get("refund_status") or answer["status"]),
        transaction_id=answer.get("transaction_id"),
        total_cents=amount.get("total"),
        refund_cents=amount.get("refund"),
        refunded_at=_time(answer.get("success_time")),
    )


def _time(text: object) -> datetime | None:
    if not isinstance(text, str) or not text:
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _private_key(config: WeChatPayConfig) -> RSAPrivateKey:
    try:
        return signing.load_private_key(config.private_key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise WeChatPayMisconfigured("HEADRACE_WECHATPAY_PRIVATE_KEY_FILE holds no readable private key.") from None


def _configured_key(config: WeChatPayConfig) -> dict[str, RSAPublicKey]:
    if config.public_key is None or config.public_key_id is None:
        return {}
    try:
        key = load_pem_public_key(config.public_key.encode())
    except ValueError:
        key = None
    if not isinstance(key, RSAPublicKey):
        raise WeChatPayMisconfigured("HEADRACE_WECHATPAY_PUBLIC_KEY_FILE holds no readable RSA public key.")
    return {config.public_key_id: key}
