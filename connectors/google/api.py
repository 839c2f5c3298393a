"""Asking one Google API with Google's own client, and what its refusals mean."""

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import httplib2
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

from connectors.google.crossing import ApiHttp, in_thread
from connectors.kit.contract import (
    FORBIDDEN,
    ConnectorError,
    ItemFailed,
    ItemGone,
    Throttled,
    VendorUnavailable,
)
from connectors.kit.http import HOPS, LONGEST_ANSWER, Answer
from connectors.kit.vendor import Place, VendorClient, retry_after

RATE_REASONS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "sharingRateLimitExceeded"})
DAY_REASONS = frozenset({"dailyLimitExceeded", "quotaExceeded", "dailyLimitExceededUnreg"})
SHORT_WAIT, LONG_WAIT = 2.0, 1800.0
# What a 403 is about. Only the first few speak of this user and this container; the others of the registered application, the
# organisation's administrator, what was consented to, or a limit – they end some day without anything having been lost.
REFUSED: Mapping[str, str] = {
    "forbidden": FORBIDDEN,
    "insufficientFilePermissions": FORBIDDEN,
    "teamDriveMembershipRequired": FORBIDDEN,
    "accessNotConfigured": "not_enabled",
    "SERVICE_DISABLED": "not_enabled",
    "domainPolicy": "admin_policy",
    "insufficientPermissions": "not_granted",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": "not_granted",
    "appNotAuthorizedToFile": "not_granted",
}


class Refusal(VendorUnavailable):
    """A 4xx with a reason. Where nobody knows better it is tried again later, and never taken for an empty answer."""

    def __init__(self, status: int, reason: str) -> None:
        self.status, self.reason = status, reason
        self.word = REFUSED.get(reason, "refused")
        super().__init__(f"Google refused with {status} {reason}")


def lacks_scope(error: Refusal) -> bool:
    """The user left this box unticked. The surface is there, and nothing of it can be read."""
    return error.status == 403 and error.word == "not_granted"


def about_container(error: Refusal) -> ItemGone | ItemFailed | Refusal:
    """What a refusal means for the drive, mailbox or calendar that was asked for. A reason nobody knows proves nothing."""
    if error.status == 404:
        return ItemGone(str(error))
    return ItemFailed(error.word, str(error)) if error.status == 403 else error


def reason_in(body: bytes) -> str:
    """The first reason in the `errors` array; newer back ends say there only that it is forbidden, and why in `details`.
    What is not an error envelope has none.
    """
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    told = [_reason(entry) for entry in _entries(error, "errors")[:1]]
    deeper = [reason for entry in _entries(error, "details") if (reason := _reason(entry))]
    found = next(iter(told), "")
    return deeper[0] if deeper and found in {"", "forbidden"} else found


def _entries(error: Any, name: str) -> list[Any]:
    found = error.get(name) if isinstance(error, dict) else None
    return found if isinstance(found, list) else []


def _reason(entry: Any) -> str:
    found = entry.get("reason") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else ""


def classify(answer: Answer) -> ConnectorError | None:
    """Only what concerns every request; the rest is the surface's to judge."""
    if answer.status == 429:
        return Throttled(retry_after(answer.headers, default=SHORT_WAIT))
    if answer.status == 408 or answer.status >= 500:
        return VendorUnavailable(f"Google answered {answer.status}")
    if answer.status == 403:
        reason = reason_in(answer.body)
        if reason in RATE_REASONS:
            return Throttled(retry_after(answer.headers, default=SHORT_WAIT), reason)
        if reason in DAY_REASONS:
            return Throttled(retry_after(answer.headers, default=LONG_WAIT), reason)
    return None


@lru_cache(maxsize=16)
def _service(name: str, version: str, endpoint: str) -> Any:
    """From the discovery document in the wheel: building it asks nobody anything."""
    return build(
        name,
        version,
        http=httplib2.Http(),
        static_discovery=True,
        cache_discovery=False,
        client_options={"api_endpoint": endpoint},
    )


class GoogleApi:
    def __init__(self, place: Place, endpoints: Mapping[str, str], name: str, version: str) -> None:
        self._name, self._version, self._endpoint = name, version, endpoints[name]
        self._client = VendorClient(
            place, authority="google", api=self._endpoint, classify=classify, headers={"Accept": "*/*"}
        )

    async def ask(self, make: Callable[[Any], Any], *, cost: float = 1.0) -> Mapping[str, Any]:
        """The answer to the request `make` builds on the service. Raises Refusal for a 4xx."""
        found = await self._execute(make, cost, LONGEST_ANSWER)
        if not isinstance(found, dict):  # Google's client hands on what it cannot read
            raise VendorUnavailable("an answer that is not JSON")
        return found

    async def tell(self, make: Callable[[Any], Any]) -> None:
        """A request that is answered with nothing."""
        await self._execute(make, 1.0, LONGEST_ANSWER)

    async def read(self, make: Callable[[Any], Any], *, max_bytes: int) -> bytes:
        """The bytes of a file, wherever Google keeps them."""
        found = await self._execute(make, 1.0, max_bytes, follow=HOPS)
        return found if isinstance(found, bytes) else str(found).encode()

    async def _execute(
        self, make: Callable[[Any], Any], cost: float, max_bytes: int, *, follow: int = 0
    ) -> Any:
        loop = asyncio.get_running_loop()

        def run() -> Any:
            request = make(_service(self._name, self._version, self._endpoint))
            return request.execute(
                http=ApiHttp(self._client, loop, cost=cost, max_bytes=max_bytes, follow=follow)
            )

        try:
            return await in_thread(run)
        except HttpError as error:
            raise Refusal(int(error.resp.status), reason_in(error.content)) from error
