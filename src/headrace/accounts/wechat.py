"""Login of WeChat mini-programs: exchanges the app's code for the user's openid.

WeChat requires the AppSecret in the URL, so nothing that may quote the URL leaves this module: exceptions of httpx2 are
not chained, requests are not logged.
"""

import asyncio
from datetime import timedelta

import httpx2
import orjson

from headrace import logs
from headrace.accounts.config import WeChatConfig
from headrace.accounts.errors import InvalidWeChatCode, WeChatBlocked, WeChatUnavailable
from headrace.errors import HeadraceError

log = logs.get(__name__)

_MAX_RESPONSE_BYTES = 64 * 1024


class WeChat:
    """A client of WeChat's login endpoint."""

    def __init__(self, config: WeChatConfig, http: httpx2.AsyncClient | None = None) -> None:
        self._config = config
        self._http = http or httpx2.AsyncClient(timeout=config.timeout.total_seconds(), follow_redirects=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def openid_of(self, code: str) -> str:
        """The openid of a code, which works once. The session key in the answer is dropped."""
        params = {
            "appid": self._config.app_id,
            "secret": self._config.app_secret,
            "js_code": code,
            "grant_type": "authorization_code",
        }
        try:
            # httpx2 limits each read; this limits their total time.
            async with asyncio.timeout(self._config.timeout.total_seconds()):
                status, content = await self._ask(params)
        except (httpx2.HTTPError, TimeoutError) as exc:
            log.warning("wechat.unreachable", error=type(exc).__name__)
            raise WeChatUnavailable from None
        answer = _read(status, content)
        if error := answer.get("errcode"):
            raise _error_of(error)
        openid = answer.get("openid")
        if not isinstance(openid, str) or not 0 < len(openid) <= 128 or not openid.isprintable():
            log.warning("wechat.garbled", status=status)
            raise WeChatUnavailable
        return openid

    async def _ask(self, params: dict[str, str]) -> tuple[int, bytes]:
        """The status and the body, which is read up to the size limit.

        Requested uncompressed and not decompressed: a few bytes could decompress into any number.
        """
        url = f"{self._config.base_url.rstrip('/')}/sns/jscode2session"
        async with self._http.stream("GET", url, params=params, headers={"Accept-Encoding": "identity"}) as reply:
            content = b""
            async for part in reply.aiter_raw():
                content += part
                if len(content) > _MAX_RESPONSE_BYTES:
                    return reply.status_code, b""
            return reply.status_code, content


def _read(status: int, content: bytes) -> dict[str, object]:
    # WeChat sends JSON as text/plain, so the content type is ignored.
    try:
        answer = orjson.loads(content)
    except ValueError:
        answer = None
    if status != httpx2.codes.OK or not isinstance(answer, dict):
        log.warning("wechat.garbled", status=status)
        raise WeChatUnavailable
    return answer


def _error_of(errcode: object) -> HeadraceError:
    match errcode:
        case 40029 | 40163:  # unknown, used
            return InvalidWeChatCode(field="code")
        case 40226:
            return WeChatBlocked()
        case 45011:  # a hundred a minute for one user
            return WeChatUnavailable(
                "WeChat's rate limit is reached; try again in a minute.", retry_after=timedelta(minutes=1)
            )
        case -1:
            return WeChatUnavailable()
        case _:  # 40013, 40125: wrong AppID or AppSecret. Logged for the operator, not shown to the user.
            log.error("wechat.refused", errcode=errcode)
            return WeChatUnavailable()
