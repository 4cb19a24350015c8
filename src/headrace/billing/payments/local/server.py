"""The server: WeChat Pay's routes, signed like the real ones, and a page with the payer's buttons.

It keeps its orders in memory and listens only on the loopback. Requests without our merchant's signature are refused,
so that a wrong signature is noticed here and not in production.
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs

import httpx2
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from headrace import logs
from headrace.billing.payments.config import WeChatPayConfig
from headrace.billing.payments.local.book import Book, LocalOrder, Refused, refund_of, transaction_of
from headrace.billing.payments.local.keys import LocalKeys
from headrace.billing.payments.local.page import render
from headrace.billing.payments.local.signing import Signer

log = logs.get(__name__)

_NOTICE_DELAYS_S = (0.0, 1.0, 5.0, 15.0, 60.0)
Endpoint = Callable[[Request, bytes], Awaitable[tuple[int, Any]]]


class LocalPayments:
    """A WeChat Pay for one merchant."""

    def __init__(self, keys: LocalKeys, url: str) -> None:
        self.keys = keys
        self.url = url
        self.book = Book()
        self.signer = Signer(keys)
        self.by_public_key = True  # the mode of the merchant's last request
        self.loses_notices = False
        self._form_token = secrets.token_urlsafe(16)
        self._notices: set[asyncio.Task[None]] = set()
        self._http = httpx2.AsyncClient(timeout=10, trust_env=False)
        self.app = Starlette(
            routes=[
                self._signed("/v3/certificates", "GET", self._certificates),
                self._signed("/v3/pay/transactions/native", "POST", self._native),
                self._signed("/v3/pay/transactions/jsapi", "POST", self._jsapi),
                self._signed("/v3/pay/transactions/out-trade-no/{number}", "GET", self._query),
                self._signed("/v3/pay/transactions/out-trade-no/{number}/close", "POST", self._close),
                self._signed("/v3/refund/domestic/refunds", "POST", self._refund),
                self._signed("/v3/refund/domestic/refunds/{number}", "GET", self._query_refund),
                Route("/", self._page),
                Route("/pay/{number}", self._page),
                Route("/orders/{number}/{act}", self._act, methods=["POST"]),
            ]
        )

    def config(self, notify_url: str, *, by_public_key: bool = True) -> WeChatPayConfig:
        """The configuration of a merchant of this server."""
        return WeChatPayConfig(
            mch_id=self.keys.mch_id,
            app_id=self.keys.app_id,
            cert_serial=self.keys.merchant_serial,
            private_key=self.keys.merchant_key,
            api_v3_key=self.keys.api_v3_key,
            notify_url=notify_url,
            public_key=self.keys.platform_public_key if by_public_key else None,
            public_key_id=self.keys.public_key_id if by_public_key else None,
            base_url=self.url,
        )

    async def close(self) -> None:
        for each in self._notices:
            each.cancel()
        await self._http.aclose()

    # -- the protocol

    def _signed(self, path: str, method: str, endpoint: Endpoint) -> Route:
        async def answer(request: Request) -> Response:
            body = await request.body()
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            if not self.signer.is_merchants(request.headers.get("authorization", ""), method, target, body):
                return _plain(401, {"code": "SIGN_ERROR", "message": "the signature is not our merchant's"})
            self.by_public_key = request.headers.get("wechatpay-serial") == self.keys.public_key_id
            try:
                status, content = await endpoint(request, body)
            except Refused as refused:
                return _plain(refused.status, {"code": refused.code, "message": refused.message})
            except (KeyError, ValueError, TypeError) as exc:
                return _plain(400, {"code": "PARAM_ERROR", "message": type(exc).__name__})
            raw = b"" if content is None else orjson.dumps(content)
            headers = self.signer.headers(raw, by_public_key=self.by_public_key)
            return Response(raw, status, headers, media_type="application/json")

        return Route(path, answer, methods=[method])

    async def _certificates(self, _request: Request, _body: bytes) -> tuple[int, Any]:
        sealed = self.signer.sealed(self.keys.platform_certificate.encode(), "certificate")
        known = {
            "serial_no": self.keys.platform_serial,
            "effective_time": "2020-01-01T00:00:00+08:00",
            "expire_time": "2099-01-01T00:00:00+08:00",
            "encrypt_certificate": sealed,
        }
        return 200, {"data": [known]}

    async def _native(self, _request: Request, body: bytes) -> tuple[int, Any]:
        order = self.book.open(orjson.loads(body), "NATIVE")
        return 200, {"code_url": f"{self.url}/pay/{order.number}"}

    async def _jsapi(self, _request: Request, body: bytes) -> tuple[int, Any]:
        order = self.book.open(orjson.loads(body), "JSAPI")
        return 200, {"prepay_id": f"wx{order.number}"}

    async def _query(self, request: Request, _body: bytes) -> tuple[int, Any]:
        return 200, transaction_of(self.book.find(request.path_params["number"]))

    async def _close(self, request: Request, _body: bytes) -> tuple[int, Any]:
        self.book.close(request.path_params["number"])
        return 204, None

    async def _refund(self, _request: Request, body: bytes) -> tuple[int, Any]:
        order, is_new = self.book.ask_refund(orjson.loads(body))
        message = refund_of(order, in_notice=False)
        if is_new:
            self.book.end_refund(order)
            self._notify("REFUND.SUCCESS", order)
        return 200, message  # as with the real one: PROCESSING at first

    async def _query_refund(self, request: Request, _body: bytes) -> tuple[int, Any]:
        return 200, refund_of(self.book.find_refund(request.path_params["number"]), in_notice=False)

    # -- the payer

    def pay(self, number: str, *, notify: bool = True) -> LocalOrder:
        order = self.book.pay(number)
        if notify:
            self._notify("TRANSACTION.SUCCESS", order)
        return order

    def refund(self, number: str, *, notify: bool = True) -> LocalOrder:
        """Refund an order as a merchant does on WeChat Pay's own pages."""
        cents = self.book.find(number).cents
        request = {"out_trade_no": number, "out_refund_no": f"by-hand-{number}", "amount": {"refund": cents}}
        order, is_new = self.book.ask_refund(request)
        if is_new:
            self.book.end_refund(order)
            if notify:
                self._notify("REFUND.SUCCESS", order)
        return order

    def notice(self, event_type: str, order: LocalOrder) -> tuple[bytes, dict[str, str]]:
        """Body and headers of a notice about this order's present state."""
        refund = event_type.startswith("REFUND.")
        body = self.signer.notice(event_type, refund_of(order, in_notice=True) if refund else transaction_of(order))
        headers = self.signer.headers(body, by_public_key=self.by_public_key)
        return body, {**headers, "Content-Type": "application/json"}

    def _notify(self, event_type: str, order: LocalOrder) -> None:
        if self.loses_notices:
            return
        sending = asyncio.create_task(self._send(event_type, order))
        self._notices.add(sending)
        sending.add_done_callback(self._notices.discard)

    async def _send(self, event_type: str, order: LocalOrder) -> None:
        """Send a notice until it is accepted, as the real one does for a day."""
        url = order.refund.notify_url if order.refund and event_type.startswith("REFUND.") else order.notify_url
        for delay in _NOTICE_DELAYS_S:
            await asyncio.sleep(delay)
            body, headers = self.notice(event_type, order)
            with suppress(httpx2.HTTPError):
                reply = await self._http.post(url, content=body, headers=headers)
                log.info("local_payments.notified", order=order.number, kind=event_type, status=reply.status_code)
                if reply.is_success:
                    return

    # -- the page

    async def _page(self, request: Request) -> Response:
        number = request.path_params.get("number")
        orders = [order for order in self.book.orders.values() if number in (None, order.number)]
        return HTMLResponse(render(orders, token=self._form_token))

    async def _act(self, request: Request) -> Response:
        form = parse_qs((await request.body()).decode())
        if not secrets.compare_digest(form.get("token", [""])[0], self._form_token):
            return HTMLResponse("Reload the page.", 403)
        number, act = request.path_params["number"], request.path_params["act"]
        acts = {"pay": self.pay, "refund": self.refund}
        verb, _, lost = act.partition("-")
        if verb not in acts or lost not in ("", "unheard"):
            return HTMLResponse("There is no such button.", 404)
        with suppress(Refused):  # pressed twice: the page shows the present state
            acts[verb](number, notify=not lost)
        return RedirectResponse("/", 303)


def _plain(status: int, content: Any) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process stops more than this server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def local_payments(keys: LocalKeys, *, port: int = 0) -> AsyncIterator[LocalPayments]:
    """Run the server on the loopback while the block runs; the system chooses the port."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        running = LocalPayments(keys, f"http://127.0.0.1:{listening.getsockname()[1]}")
        server = _Server(uvicorn.Config(running.app, log_config=None, lifespan="off", access_log=False))
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield running
        finally:
            server.should_exit = True
            await serving
            await running.close()
