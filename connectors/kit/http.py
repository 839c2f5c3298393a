"""The one way out: every request to a vendor and every download goes through here.

A vendor's answer is untrusted input: a next link, a redirect or a DNS record may point anywhere. So only known origins
are reached, names are resolved once and the connection goes to an address that was looked at, redirects are followed by
hand, and nothing is read without an end. Proxies of the environment are not used.
"""

import asyncio
import json
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, cast
from urllib.parse import urljoin

import httpcore
import httpx

from connectors.kit.addresses import refusal
from connectors.kit.contract import VendorUnavailable

MIB = 1024 * 1024
LONGEST_ANSWER = 64 * MIB
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HOPS = 5
PORTS = {"https": 443, "http": 80}
# What may go along to another origin. Everything else could be a credential.
HARMLESS = frozenset({"accept", "accept-encoding", "range", "user-agent"})

Origin = tuple[str, str, int]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class RequestRefused(VendorUnavailable):
    """We do not go there: not a host of this vendor's, not a public address, not a safe redirect."""


class AnswerTooLarge(VendorUnavailable):
    """More bytes than were asked for, on the wire or after decompression."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    url: str  # where it came from, after redirects

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise VendorUnavailable(f"an answer with status {self.status} that is not JSON") from error


# -- origins


def origin(url: str) -> Origin:
    """Scheme, host and port of an absolute URL, in one spelling."""
    try:
        parsed = httpx.URL(url)
        host = parsed.raw_host.decode("ascii").lower().rstrip(".")
    except (httpx.InvalidURL, UnicodeError) as error:
        raise RequestRefused("not a URL") from error
    if parsed.scheme not in PORTS or not host:
        raise RequestRefused(f"the scheme {parsed.scheme or 'of nothing'}")
    if parsed.userinfo:
        raise RequestRefused("credentials in a URL")
    return parsed.scheme, host, parsed.port or PORTS[parsed.scheme]


class Allowlist:
    """Entries are origins (`https://graph.microsoft.com`, any path is ignored) or `*.sharepoint.com`: https on 443 below it.

    `private` are origins an operator named on purpose although they are not public, or not https: the sandbox.
    """

    def __init__(self, allowed: Iterable[str], private: Iterable[str]) -> None:
        entries = list(allowed)
        self._private = {origin(url) for url in private}
        self._suffixes = tuple(entry[1:].lower() for entry in entries if entry.startswith("*."))
        self._origins = {origin(entry) for entry in entries if not entry.startswith("*.")} | self._private
        self._private_places = {(host, port) for _, host, port in self._private}
        plain = {found for found in self._origins if found[0] != "https"} - self._private
        if plain:
            raise RequestRefused(f"{min(plain)[1]} is neither https nor trusted")

    def check(self, url: str) -> Origin:
        found = origin(url)
        scheme, host, port = found
        if found in self._origins or (scheme == "https" and port == 443 and host.endswith(self._suffixes)):
            return found
        raise RequestRefused(f"{scheme}://{host}:{port} is not a host of this vendor's")

    def may_be_private(self, host: str, port: int) -> bool:
        return (host.lower().rstrip("."), port) in self._private_places


# -- connections


async def system_resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a name once, looks at every address, and connects to one of exactly these.

    The name itself stays in the Host header and in TLS, where httpcore takes it from the URL.
    """

    def __init__(self, allowlist: Allowlist, resolve: Resolve) -> None:
        self._allowlist, self._resolve = allowlist, resolve
        self._network = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's word
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failed: Exception | None = None
        for address in await self._addresses(host, port, timeout):
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError as error:
                failed = error
        raise failed or httpcore.ConnectError("the name has no address")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)

    async def _addresses(self, host: str, port: int, seconds: float | None) -> Sequence[str]:
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._resolve(host.rstrip("."), port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("the name could not be resolved") from error
        private_allowed = self._allowlist.may_be_private(host, port)
        for address in addresses:  # one bad address spoils the name: the next answer may lead with it
            reason = refusal(address, private_allowed=private_allowed)
            if reason is not None:
                raise RequestRefused(f"{host} stands for {reason}")
        return addresses


# -- reading


class _Body:
    """Collects an answer, limited before and after decompression."""

    def __init__(self, encoding: str, limit: int) -> None:
        if encoding not in {"", "identity", "gzip", "x-gzip"}:
            raise VendorUnavailable(f"an answer in the encoding {encoding[:20]}, which was not asked for")
        self._unzip = zlib.decompressobj(31) if encoding.endswith("gzip") else None
        self._limit, self._encoded = limit, 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self._encoded += len(data)
        if self._unzip is not None:
            room = self._limit - len(self._kept) + 1
            try:
                data = self._unzip.decompress(data, room)
            except zlib.error as error:
                raise VendorUnavailable("an answer that cannot be decompressed") from error
            if self._unzip.unconsumed_tail:
                raise AnswerTooLarge(f"more than {self._limit} bytes")
        self._kept += data
        if len(self._kept) > self._limit or self._encoded > self._limit:
            raise AnswerTooLarge(f"more than {self._limit} bytes")

    def end(self) -> bytes:
        if self._unzip is not None and self._encoded and not self._unzip.eof:
            raise VendorUnavailable("an answer that breaks off")
        return bytes(self._kept)


class VendorHttp:
    """One per process. `allowed` are the vendors' origins and download hosts, `trusted_private` the sandbox's origins.

    `timeout` is for connecting and for each read; `deadline` for an answer as a whole. `on_response` counts:
    it hears the authority and the status of every answer.
    """

    def __init__(
        self,
        *,
        allowed: Collection[str],
        trusted_private: Collection[str] = (),
        timeout: float = 30,
        deadline: float = 300,
        on_response: Callable[[str, int], None] | None = None,
        resolve: Resolve = system_resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allowlist = Allowlist(allowed, trusted_private)
        self._timeout, self._deadline, self._on_response = timeout, deadline, on_response
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls or _tls(),
            max_connections=64,
            max_keepalive_connections=16,
            keepalive_expiry=30,
            network_backend=PinnedBackend(self._allowlist, resolve),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        data: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        max_bytes: int = LONGEST_ANSWER,
        follow: int = 0,
        authority: str = "",
    ) -> Answer:
        """One answer, whatever its status. Only a GET follows redirects, and at most `follow` of them.

        Raises RequestRefused, AnswerTooLarge, VendorUnavailable.
        """
        try:
            request = httpx.Request(
                method,
                url,
                headers=headers,
                params=params,
                json=json,
                data=cast("Any", data),
                content=content,
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            raise RequestRefused("not a URL") from error
        request.headers["accept-encoding"] = "gzip"
        request.headers.setdefault("accept", "*/*")
        try:
            async with asyncio.timeout(self._deadline):
                return await self._ask(request, max_bytes, follow if method == "GET" else 0, authority)
        except TimeoutError as error:
            raise VendorUnavailable(f"no answer within {self._deadline:g} s") from error
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            raise VendorUnavailable(f"{type(error).__name__} on the way") from error

    async def download(
        self, url: str, *, headers: Mapping[str, str] | None = None, max_bytes: int, authority: str = ""
    ) -> Answer:
        """A GET that follows redirects; what could be a credential stays at the origin it was meant for."""
        return await self.request(
            "GET", url, headers=headers, max_bytes=max_bytes, follow=HOPS, authority=authority
        )

    async def _ask(self, request: httpx.Request, max_bytes: int, follow: int, authority: str) -> Answer:
        answer = await self._exchange(request, max_bytes, authority)
        for _ in range(follow):
            target = answer.headers.get("location")
            if answer.status not in REDIRECTS or not target:
                return answer
            request = self._redirected(request, urljoin(answer.url, target))
            answer = await self._exchange(request, max_bytes, authority)
        if follow and answer.status in REDIRECTS:
            raise RequestRefused("too many redirects")
        return answer

    def _redirected(self, request: httpx.Request, url: str) -> httpx.Request:
        before, after = self._allowlist.check(str(request.url)), self._allowlist.check(url)
        if before[0] == "https" and after[0] != "https":
            raise RequestRefused("a redirect from https to http")
        kept = {
            name: value
            for name, value in request.headers.items()
            if name != "host" and (before == after or name in HARMLESS)
        }
        return httpx.Request("GET", url, headers=kept)

    async def _exchange(self, request: httpx.Request, max_bytes: int, authority: str) -> Answer:
        self._allowlist.check(str(request.url))
        limits = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout)
        async with self._pool.stream(
            request.method,
            httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host.rstrip(b"."),
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.content,
            extensions={"timeout": limits},
        ) as response:
            headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
            }
            if self._on_response is not None:
                self._on_response(authority, response.status)
            body = _Body(headers.get("content-encoding", "").strip().lower(), max_bytes)
            if headers.get("content-length", "").isdigit() and int(headers["content-length"]) > max_bytes:
                raise AnswerTooLarge(f"more than {max_bytes} bytes")
            async for part in response.aiter_stream():
                body.add(part)
        return Answer(response.status, headers, body.end(), str(request.url))


def way_out(
    endpoints: Iterable[str],
    *,
    downloads: Iterable[str] = (),
    on_response: Callable[[str, int], None] | None = None,
) -> VendorHttp:
    """To these base URLs (values that are no URL are settings of another kind) and download hosts.

    An endpoint that is plain http or a private address in so many words can only be an operator's override: trusted.
    """
    urls = [value for value in endpoints if value.startswith(("http://", "https://"))]
    trusted = [url for url in urls if origin(url)[0] == "http" or _named_private(origin(url)[1])]
    return VendorHttp(allowed=[*urls, *downloads], trusted_private=trusted, on_response=on_response)


def _named_private(host: str) -> bool:
    return host == "localhost" or refusal(host.strip("[]")) == "not a public address"
