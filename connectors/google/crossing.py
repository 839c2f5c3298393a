"""Google's libraries block and bring their own way to the network; here they cross over to the guarded one.

They run in threads of their own – the loop's default threads resolve names, and must not all be waiting for the loop –
and whatever they want to send goes through the loop, the rate window and the guard like everything else.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httplib2
import requests
from requests.adapters import BaseAdapter

from connectors.kit.contract import Throttled, VendorUnavailable
from connectors.kit.http import Answer, VendorHttp
from connectors.kit.vendor import VendorClient, retry_after

T = TypeVar("T")
_THREADS = ThreadPoolExecutor(max_workers=24, thread_name_prefix="google")
# The connection's own business; the guarded way out sets what it needs.
_DROPPED = frozenset({"accept-encoding", "content-length", "host", "connection"})


async def in_thread(call: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, call)


def _kept(headers: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (headers or {}).items() if name.lower() not in _DROPPED}


class ApiHttp:
    """What `googleapiclient` takes for `httplib2.Http`: one request's way to the vendor, with its limits."""

    def __init__(
        self,
        client: VendorClient,
        loop: asyncio.AbstractEventLoop,
        *,
        cost: float,
        max_bytes: int,
        follow: int,
    ) -> None:
        self._client, self._loop = client, loop
        self._cost, self._max_bytes, self._follow = cost, max_bytes, follow

    def request(
        self,
        uri: str,
        method: str = "GET",
        body: str | bytes | None = None,
        headers: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> tuple[httplib2.Response, bytes]:
        coming = self._client.request(
            method,
            uri,
            headers=_kept(headers),
            json=json.loads(body) if body else None,
            max_bytes=self._max_bytes,
            cost=self._cost,
            follow=self._follow,
        )
        answer = asyncio.run_coroutine_threadsafe(coming, self._loop).result()
        response = httplib2.Response({**answer.headers, "status": str(answer.status)})
        response.reason = ""
        return response, answer.body


class SignInAdapter(BaseAdapter):
    """What `requests` takes for a network: the token exchange of `google-auth-oauthlib` goes out through it.

    oauthlib insists on https. An endpoint that an operator overrode with plain http is called https on that side, and by
    its real name – `real` – on this one; nothing in the environment has to be loosened for it.
    """

    def __init__(self, http: VendorHttp, loop: asyncio.AbstractEventLoop, real: Callable[[str], str]) -> None:
        super().__init__()
        self._http, self._loop, self._real = http, loop, real

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        body = request.body.encode() if isinstance(request.body, str) else request.body
        coming: Coroutine[Any, Any, Answer] = self._http.request(
            request.method or "POST",
            self._real(request.url or ""),
            headers=_kept(request.headers),
            content=body if isinstance(body, bytes) else None,
            authority="google",
        )
        answer = _healthy(asyncio.run_coroutine_threadsafe(coming, self._loop).result())
        response = requests.Response()
        response.status_code, response.url, response.request = answer.status, request.url or "", request
        response.headers.update(answer.headers)
        response._content = answer.body  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return response

    def close(self) -> None:
        pass


class RefreshAnswer:
    """An answer in the shape `google.auth` reads."""

    def __init__(self, answer: Answer) -> None:
        self.status, self.headers, self.data = answer.status, dict(answer.headers), answer.body


class RefreshHttp:
    """What `google.auth` takes for a transport when it renews a token."""

    def __init__(self, http: VendorHttp, loop: asyncio.AbstractEventLoop) -> None:
        self._http, self._loop = http, loop

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> RefreshAnswer:
        content = body.encode() if isinstance(body, str) else body
        coming = self._http.request(method, url, headers=_kept(headers), content=content, authority="google")
        return RefreshAnswer(_healthy(asyncio.run_coroutine_threadsafe(coming, self._loop).result()))


def _healthy(answer: Answer) -> Answer:
    """The libraries would repeat a request that was answered so; when to ask again is not theirs to decide."""
    if answer.status == 429:
        raise Throttled(retry_after(answer.headers, default=30.0), "sign-in is throttled")
    if answer.status >= 500:
        raise VendorUnavailable(f"sign-in answered {answer.status}")
    return answer


def shown(url: str) -> str:
    """An endpoint as oauthlib must see it."""
    return f"https://{url.split('://', 1)[1]}"
