"""The connection to one server with one API key: safe retries, and refusals as exceptions."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2

from headrace.client.errors import Unreachable, error_of
from headrace.client.retrying import RetryPolicy, may_repeat, retry_after, wants_repeat


class Connection:
    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: timedelta,
        retry: RetryPolicy,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url must begin with http:// or https://, not {base_url!r}")
        self._retry = retry
        self.timeout = timeout
        self._http = httpx2.AsyncClient(
            base_url=base_url.rstrip("/"),
            headers={**({"Authorization": f"Bearer {api_key}"} if api_key else {}), "Accept": "application/json"},
            timeout=timeout.total_seconds(),
            transport=transport,
            verify=base_url.startswith("https://"),  # loading certificates takes longer than a request
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - of each attempt
        safe: bool,
    ) -> Any:
        """The answer's JSON. ``safe`` requests may be repeated without harm, and are retried after a broken connection.

        ``content`` replaces the JSON body; ``timeout`` is for longer requests.
        """
        waits = self.timeout if timeout is None else timeout
        attempt = 0
        while True:
            asked: timedelta | None = None
            error: Exception
            try:
                response = await self._http.request(
                    method,
                    path,
                    json=json,
                    content=content,
                    params=params,
                    headers=headers,
                    timeout=waits.total_seconds(),
                )
            except httpx2.TransportError as exc:
                error, again = _unreachable(exc), may_repeat(exc, safe=safe)
            else:
                if response.is_success:
                    return response.json() if response.content else None
                problem = _problem(response)
                asked = retry_after(response)
                again = wants_repeat(response, problem.get("code"), safe=safe)
                error = error_of(response.status_code, problem, retry_after=asked)
            pause = self._retry.pause(attempt, asked) if again else None
            if pause is None:
                raise error
            await asyncio.sleep(pause)
            attempt += 1

    @asynccontextmanager
    async def stream(
        self, path: str, *, headers: Mapping[str, str], read_timeout: timedelta
    ) -> AsyncIterator[httpx2.Response]:
        """A streamed response. Not retried: the caller knows where to continue."""
        timeout = httpx2.Timeout(self.timeout.total_seconds(), read=read_timeout.total_seconds())
        try:
            async with self._http.stream(
                "GET", path, headers={"Accept": "text/event-stream", **headers}, timeout=timeout
            ) as response:
                yield response
        except httpx2.TransportError as exc:
            raise _unreachable(exc) from exc

    @asynccontextmanager
    async def stream_bytes(
        self, path: str, *, headers: Mapping[str, str], params: Mapping[str, Any] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """A streamed file; a refusal raises. Not retried: the caller knows where to continue."""
        try:
            async with self._http.stream("GET", path, params=params, headers={"Accept": "*/*", **headers}) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response.status_code, _problem(response), retry_after=retry_after(response))
                yield response
        except httpx2.TransportError as exc:
            raise _unreachable(exc) from exc


def _problem(response: httpx2.Response) -> Mapping[str, Any]:
    """The problem document; empty for other answers, such as a proxy's error page."""
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _unreachable(exc: httpx2.TransportError) -> Unreachable:
    # Without the URL's query or the key: only the address and the error.
    try:
        url = exc.request.url
        deployment = f"{url.scheme}://{url.netloc.decode()}"
    except RuntimeError:  # the error occurred before the request was built
        deployment = "The server"
    what = str(exc) or type(exc).__name__
    return Unreachable(f"{deployment} cannot be reached: {what}.")
