"""WeChat Pay API v3, as far as orders need it. Nobody calls it while a transaction is open.

The vendor's Python clients always send to WeChat Pay's address, block, and drop all certificates when they cannot fetch
new ones: so sending is done here, on httpx, and signing in ``signing``. Nothing of a request is logged.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import httpx
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

_LONGEST_ANSWER = 256 * 1024
_TRANSACTIONS = "/v3/pay/transactions"
_REFUNDS = "/v3/refund/domestic/refunds"


class WeChatPay:
    """The merchant's side of WeChat Pay."""

    def __init__(self, config: WeChatPayConfig) -> None:
        self.config = config
        self._private_key = _private_key(config)
        self.keys = PlatformKeys(_given_key(config), None if config.public_key else self._fetch_certificates)
        self._http = httpx.AsyncClient(
            base_url=config.base_url.rstrip("/"), timeout=config.timeout.total_seconds(), follow_redirects=False
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prepare(self, order: Order, *, openid: str | None) -> tuple[str | None, str | None]:
        """(code_url, prepay_id): how to pay this order. Asked again for the same order, it is the same order."""
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
        """What became of an order; None if WeChat Pay never heard of it."""
        status, answer = await self._ask("GET", f"{_TRANSACTIONS}/out-trade-no/{order_id}?mchid={self.config.mch_id}")
        if status == 404:
            return None
        if status != 200:
            raise _refusal(status, answer)
        return _understood(trade_of, answer)

    async def close_order(self, order_id: str) -> None:
        """Nobody can pay it any more. ``WeChatPayRefused`` if somebody has just paid."""
        status, answer = await self._ask(
            "POST", f"{_TRANSACTIONS}/out-trade-no/{order_id}/close", {"mchid": self.config.mch_id}
        )
        if status not in (200, 204, 404):
            raise _refusal(status, answer)

    async def refund(self, order: Order) -> Refund:
        """Give all of it back. Asked again with the same refund id, it is the same refund."""
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
        """What `wx.requestPayment` in a mini-program is called with."""
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
        """What a notice is about; None if it was not encrypted with this merchant's key."""
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
        """The status and the answer; ``WeChatPayUnavailable`` for none, or one that WeChat Pay did not sign."""
        content = b"" if body is None else orjson.dumps(body)
        try:
            # httpx limits each read; this limits them all together.
            async with asyncio.timeout(2 * self.config.timeout.total_seconds()):
                status, headers, raw = await self._send(method, path, content)
        except (httpx.HTTPError, TimeoutError) as exc:
            log.warning("wechatpay.unreachable", error=type(exc).__name__)
            raise WeChatPayUnavailable from None
        # A refusal is often unsigned, and none of them makes anybody richer.
        if signed and 200 <= status < 300 and not await self.keys.verify(headers, raw):
            log.error("wechatpay.unsigned", status=status)
            raise WeChatPayUnavailable
        return status, _read(status, raw)

    async def _send(self, method: str, path: str, content: bytes) -> tuple[int, httpx.Headers, bytes]:
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
            headers["Wechatpay-Serial"] = self.config.public_key_id  # the key that we check answers by
        async with self._http.stream(method, path, content=content, headers=headers) as reply:
            raw = b""
            async for part in reply.aiter_raw():
                raw += part
                if len(raw) > _LONGEST_ANSWER:
                    raise httpx.DecodingError("longer than any answer of WeChat Pay's")
            return reply.status_code, reply.headers, raw

    async def _fetch_certificates(self) -> Mapping[str, str]:
        """The answer is not checked by a signature, for that needs its content; but only who has the merchant's APIv3
        key can have encrypted it."""
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
    """An answer that says what we do not know is like none: one such order must not keep others from being checked."""
    try:
        return read(answer)
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        log.error("wechatpay.not_understood", error=repr(exc))
        raise WeChatPayUnavailable from None


def _refusal(status: int, answer: Mapping[str, Any]) -> WeChatPayRefused | WeChatPayUnavailable:
    """4xx is final but for the few that WeChat Pay itself wants to be asked again after."""
    code = str(answer.get("code", status))[:64]
    log.warning("wechatpay.refused", status=status, code=code)
    if status >= 500 or status == 429 or code in ("SYSTEM_ERROR", "FREQUENCY_LIMITED"):
        return WeChatPayUnavailable()
    if code in ("SIGN_ERROR", "NO_AUTH", "MCH_NOT_EXISTS", "APPID_MCHID_NOT_MATCH"):
        log.error("wechatpay.misconfigured", code=code)  # for the operator; the user need not know
    return WeChatPayRefused(reason=code)


def trade_of(answer: Mapping[str, Any]) -> Trade:
    """A payment out of an answer or a notice; ``KeyError``, ``ValueError`` or ``TypeError`` for what is none."""
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
        raise WeChatPayMisconfigured(
            "HEADRACE_WECHATPAY_PRIVATE_KEY_FILE holds no private key that can be read."
        ) from None


def _given_key(config: WeChatPayConfig) -> dict[str, RSAPublicKey]:
    if config.public_key is None or config.public_key_id is None:
        return {}
    try:
        key = load_pem_public_key(config.public_key.encode())
    except ValueError:
        key = None
    if not isinstance(key, RSAPublicKey):
        raise WeChatPayMisconfigured("HEADRACE_WECHATPAY_PUBLIC_KEY_FILE holds no RSA public key that can be read.")
    return {config.public_key_id: key}
