"""Asking one vendor on behalf of one connection: token, rate window, patience, and errors with names.

Each vendor brings a `classify`: what an answer means there. What all have in common is here – the token goes only to the
vendor's own API, a 401 is answered by one renewal, a short wait is waited out, a longer one is the engine's to schedule.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from connectors.kit.contract import (
    AuthRevoked,
    ConnectorError,
    ItemFailed,
    RateWindow,
    Throttled,
    TokenSource,
    VendorUnavailable,
)
from connectors.kit.http import LONGEST_ANSWER, Answer, AnswerTooLarge, RequestRefused, VendorHttp, origin

PATIENCE = 5.0  # seconds waited here, with the job's lease running; longer waits go back to the engine
ATTEMPTS = 3
LONGEST_WAIT = 3600.0

# Places with a limit of their own, and how many seconds a request takes of it.
Turns = Mapping[str, float]
Classify = Callable[[Answer], ConnectorError | None]


class DownloadRefused(VendorUnavailable):
    """The place a download was sent to does not take its ticket; a new ticket may help."""


class Place(Protocol):
    """What of a `Workplace` is needed here."""

    @property
    def tokens(self) -> TokenSource: ...

    @property
    def http(self) -> VendorHttp: ...

    @property
    def rate(self) -> RateWindow: ...


def retry_after(headers: Mapping[str, str], *, default: float, now: datetime | None = None) -> float:
    """Seconds a throttled caller waits: the larger of what the headers say, bounded; `default` if they say nothing."""
    said = [_seconds(headers.get(name, ""), now) for name in ("retry-after", "ratelimit-reset")]
    return min(max((seconds for seconds in said if seconds is not None), default=default), LONGEST_WAIT)


def _seconds(text: str, now: datetime | None) -> float | None:
    if re.fullmatch(r"-?\d{1,9}(\.\d+)?", text):
        return max(float(text), 0.0)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return max((until.replace(tzinfo=until.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds(), 0.0)


class VendorClient:
    """`api` are base URLs the token may be sent to; paths are relative to the first of them. `refuses_token` tells a refused
    token from any other refusal; where tokens are not `renewable`, asking the vault means to declare one dead.
    """

    def __init__(
        self,
        place: Place,
        *,
        authority: str,
        api: str | Collection[str],
        classify: Classify,
        headers: Mapping[str, str] | None = None,
        bearer: str = "Bearer ",
        renewable: bool = True,
        refuses_token: Callable[[Answer], bool] = lambda answer: answer.status == 401,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        bases = [api] if isinstance(api, str) else list(api)
        self._place, self._authority, self._classify = place, authority, classify
        self._base = bases[0].rstrip("/")
        self._origins = {origin(base) for base in bases}
        self._headers, self._bearer, self._pause = dict(headers or {}), bearer, pause
        self._renewable, self._refuses_token = renewable, refuses_token

    def address(self, path_or_link: str) -> str:
        """The URL of a path, or a link the vendor gave – which must lead back to the vendor's own API."""
        if not path_or_link.startswith(("http://", "https://")):
            return f"{self._base}/{path_or_link.lstrip('/')}"
        if origin(path_or_link) not in self._origins:
            raise RequestRefused("a link of the vendor's leads to another host")
        return path_or_link

    async def json(self, path_or_link: str, **options: Any) -> Any:
        return (await self.request("GET", path_or_link, **options)).json()

    async def request(
        self,
        method: str,
        path_or_link: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        data: Mapping[str, Any] | None = None,
        max_bytes: int = LONGEST_ANSWER,
        cost: float = 1.0,
        turns: Turns | None = None,
        follow: int = 0,
    ) -> Answer:
        """An answer that `classify` finds nothing wrong with. Raises what it found otherwise."""
        url = self.address(path_or_link)

        async def ask(token: str) -> Answer:
            return await self._place.http.request(
                method,
                url,
                headers={**self._headers, **(headers or {}), "Authorization": self._bearer + token},
                params=params,
                json=json,
                data=data,
                max_bytes=max_bytes,
                follow=follow,
                authority=self._authority,
            )

        return await self._with_patience(ask, cost, turns or {}, repeatable=method in {"GET", "DELETE"})

    async def download(
        self,
        path_or_link: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int,
        cost: float = 1.0,
    ) -> Answer:
        """Bytes behind an API path, through redirects. Too many of them, or a strange place, is the item's failure."""
        url = self.address(path_or_link)

        async def ask(token: str) -> Answer:
            return await self._place.http.download(
                url,
                headers={**self._headers, **(headers or {}), "Authorization": self._bearer + token},
                max_bytes=max_bytes,
                authority=self._authority,
            )

        try:
            return await self._with_patience(ask, cost, {}, repeatable=True)
        except AnswerTooLarge as error:
            raise ItemFailed("too_large", str(error), permanent=True) from error
        except RequestRefused as error:
            raise ItemFailed("download_refused", str(error)) from error
        except DownloadRefused as error:
            raise ItemFailed("download_failed", str(error)) from error

    async def _with_patience(
        self, ask: Callable[[str], Awaitable[Answer]], cost: float, turns: Turns, *, repeatable: bool
    ) -> Answer:
        token = await self._place.tokens.token()
        attempt = refusals = 0
        while True:
            attempt += 1
            try:
                for place, seconds in turns.items():
                    await self._place.rate.turn(f"{self._authority}:{place}", seconds)
                answer = await self._once(ask, token, cost)
            except (AnswerTooLarge, RequestRefused):
                raise
            except VendorUnavailable:
                if attempt >= ATTEMPTS or not repeatable:
                    raise
                await self._pause(_backoff(attempt))
                continue
            if self._refuses_token(answer) and origin(answer.url) in self._origins:
                refusals, attempt = refusals + 1, attempt - 1
                token = await self._after_refusal(token, refusals)
                continue
            error = self._judge(answer)
            if error is None:
                return answer
            await self.bear(error, attempt, repeatable=repeatable)

    async def _after_refusal(self, token: str, refusals: int) -> str:
        """What to ask with next. The grant was good a moment ago: one refusal makes nobody's content disappear."""
        if self._renewable and refusals == 1:
            return await self._place.tokens.renew(token)
        if self._renewable and refusals > ATTEMPTS:
            raise AuthRevoked("the vendor refuses a token that was just renewed")
        if not self._renewable and refusals % (ATTEMPTS + 1) == 0:
            return await self._place.tokens.renew(token)  # consent given anew meanwhile, or the end
        await self._pause(_backoff(min(refusals, ATTEMPTS)))
        return token

    def _judge(self, answer: Answer) -> ConnectorError | None:
        """The addresses downloads lead to know nothing of the API's errors: their refusals mean that a ticket is stale."""
        if answer.status in {401, 403, 404, 410} and origin(answer.url) not in self._origins:
            return DownloadRefused(f"the download address answers {answer.status}")
        return self._classify(answer)

    async def _once(self, ask: Callable[[str], Awaitable[Answer]], token: str, cost: float) -> Answer:
        await self._place.rate.enter(cost)
        try:
            return await ask(token)
        finally:
            await self._place.rate.leave()

    async def bear(self, error: ConnectorError, attempt: int, *, repeatable: bool = True) -> None:
        """Waits and returns if it is worth asking again right here; raises otherwise."""
        if isinstance(error, Throttled):
            await self._place.rate.close_for(error.after)
            if error.after > PATIENCE or attempt >= ATTEMPTS:
                raise error
            await self._pause(error.after)
        elif isinstance(error, VendorUnavailable) and repeatable and attempt < ATTEMPTS:
            await self._pause(_backoff(attempt))
        else:
            raise error


def _backoff(attempt: int) -> float:
    return 0.25 * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311 - spread, not secrecy
