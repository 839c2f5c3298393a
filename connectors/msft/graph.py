"""Microsoft Graph v1.0 as all our surfaces speak it: collections, delta links, batches, and what its errors mean."""

import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from connectors.kit.contract import (
    FORBIDDEN,
    ConnectorError,
    CursorLost,
    ItemFailed,
    ItemGone,
    Throttled,
    VendorUnavailable,
)
from connectors.kit.http import Answer
from connectors.kit.vendor import Place, Turns, VendorClient, retry_after

# SharePoint wants to know who asks; undecorated traffic is throttled first.
USER_AGENT = "NONISV|Catchment|Catchment/0.1"
BATCH = 20
MOST_PAGES = 2000  # of containers; the feeds of items are not read in one go
THROTTLED_CODES = frozenset(
    {"activityLimitReached", "ApplicationThrottled", "TooManyRequests", "quotaLimitReached"}
)
LOST_CODES = frozenset(
    {
        "resyncRequired",
        "resyncChangesApplyDifferences",
        "resyncChangesUploadDifferences",
        "resyncApplyDifferences",
        "resyncUploadDifferences",
        "SyncStateNotFound",
        "SyncStateInvalid",
        "syncStateNotFound",
    }
)
# What a 403 says to somebody who may not read it. Others speak of a suspended account, a policy, a licence.
DENIED_CODES = frozenset(
    {"accessDenied", "ErrorAccessDenied", "Authorization_RequestDenied", "Forbidden", "AccessDenied"}
)
UNDERSTOOD = THROTTLED_CODES | LOST_CODES | DENIED_CODES
DEFAULT_WAIT = 10.0

Record = Mapping[str, Any]


def error_code(body: Any) -> str:
    """The deepest code we understand: new ones may appear below it at any time. Without one the deepest there is."""
    error = body.get("error") if isinstance(body, dict) else None
    codes: list[str] = []
    while isinstance(error, dict):
        found = error.get("code")
        # Throttled answers repeat the status as the inner code.
        codes += [found] if isinstance(found, str) and found and not found.isdigit() else []
        error = error.get("innerError") or error.get("innererror")
    return next((code for code in reversed(codes) if code in UNDERSTOOD), codes[-1] if codes else "")


def classify(answer: Answer) -> ConnectorError | None:
    if answer.status < 400:
        return None
    try:
        code = error_code(json.loads(answer.body))
    except (ValueError, RecursionError):
        code = ""
    return meaning(answer.status, code, answer.headers)


def meaning(status: int, code: str, headers: Mapping[str, str]) -> ConnectorError:
    told = f"{status} {code}".strip()
    if status in {429, 509} or code in THROTTLED_CODES or (status == 503 and "retry-after" in headers):
        return Throttled(retry_after(headers, default=DEFAULT_WAIT), told)
    if status == 410 or code in LOST_CODES:
        return CursorLost(told)
    if status >= 500 or status == 408:
        return VendorUnavailable(told)
    if status == 404:
        return ItemGone(told)
    if status == 423:
        return ItemFailed("locked", told)  # by an administrator, and some day no more: no loss of access
    if status == 403 and code in DENIED_CODES:
        return ItemFailed(FORBIDDEN, told)
    return ItemFailed("refused", told)


@dataclass(frozen=True)
class GraphPage:
    value: Sequence[Record]
    next_link: str | None
    delta_link: str | None


class Graph:
    def __init__(self, place: Place, endpoint: str) -> None:
        self._base = endpoint.rstrip("/")
        self.client = VendorClient(
            place, authority="msft", api=self._base, classify=classify, headers={"User-Agent": USER_AGENT}
        )

    async def get(self, path: str, **options: Any) -> Record:
        return _record(await self.client.json(path, **options))

    async def page(self, path_or_link: str, **options: Any) -> GraphPage:
        return self.collection(await self.client.json(path_or_link, **options))

    def collection(self, answer: Any) -> GraphPage:
        body = _record(answer)
        value = body.get("value")
        if not isinstance(value, list):
            raise VendorUnavailable("a collection without a value")
        return GraphPage(
            [entry for entry in value if isinstance(entry, dict)],
            self._short(body.get("@odata.nextLink")),
            self._short(body.get("@odata.deltaLink")),
        )

    async def every(self, path: str, **options: Any) -> AsyncIterator[Record]:
        """All of a collection, page by page. Links repeat the query, so it is sent once."""
        page = await self.page(path, **options)
        options.pop("params", None)
        for _ in range(MOST_PAGES):
            for entry in page.value:
                yield entry
            if page.next_link is None:
                return
            page = await self.page(page.next_link, **options)
        raise VendorUnavailable("a collection without an end")

    async def batch(
        self,
        paths: Sequence[str],
        *,
        headers: Mapping[str, str] | None = None,
        turns: Turns | None = None,
    ) -> Sequence[tuple[int, Any]]:
        """Status and body of each path, in order; twenty in one request. Each is throttled by itself and asked again."""
        answers: dict[int, tuple[int, Any]] = {}
        waiting = list(range(len(paths)))
        attempt = 0
        while waiting:
            attempt += 1
            troubles: list[ConnectorError] = []
            for start in range(0, len(waiting), BATCH):
                asked = {number: paths[number] for number in waiting[start : start + BATCH]}
                for number, found in (await self._batch_once(asked, headers, turns or {})).items():
                    if isinstance(found, ConnectorError):
                        troubles.append(found)
                    else:
                        answers[number] = found
            waiting = [number for number in waiting if number not in answers]
            if waiting:
                throttled = [one for one in troubles if isinstance(one, Throttled)]
                worst = max(throttled, key=lambda one: one.after) if throttled else troubles[0]
                await self.client.bear(worst, attempt)
        return [answers[number] for number in range(len(paths))]

    async def _batch_once(
        self, asked: Mapping[int, str], headers: Mapping[str, str] | None, turns: Turns
    ) -> dict[int, tuple[int, Any] | ConnectorError]:
        requests = [
            {"id": str(number), "method": "GET", "url": path, "headers": dict(headers or {})}
            for number, path in asked.items()
        ]
        answer = await self.client.request(
            "POST",
            "$batch",
            json={"requests": requests},
            cost=len(asked),
            turns={place: seconds * len(asked) for place, seconds in turns.items()},
        )
        found = {
            str(entry.get("id")): entry
            for entry in _record(answer.json()).get("responses") or []
            if isinstance(entry, dict)
        }
        return {number: _batched(found.get(str(number))) for number in asked}

    def _short(self, link: Any) -> str | None:
        """A link without our base URL: cursors hold many of them. One to a foreign host is refused here."""
        if not isinstance(link, str) or not link:
            return None
        return self.client.address(link).removeprefix(self._base)


def _batched(entry: Record | None) -> tuple[int, Any] | ConnectorError:
    """The answer, or why it must be asked for again."""
    if entry is None:
        return VendorUnavailable("a batch that was answered in part")
    status, body = int(entry.get("status") or 0), entry.get("body")
    if status >= 400:
        headers = {str(name).lower(): str(value) for name, value in (entry.get("headers") or {}).items()}
        error = meaning(status, error_code(body), headers)
        if isinstance(error, Throttled | VendorUnavailable):
            return error
    if isinstance(body, str):  # what is not JSON comes in base64
        body = base64.b64decode(body)
    return status, body


def _record(body: Any) -> Record:
    if not isinstance(body, dict):
        raise VendorUnavailable("an answer that is no object")
    return body


def segment(text: str) -> str:
    """An id as one segment of a path."""
    return quote(text, safe="!,@:'()=-_.~")


def moment(text: Any) -> datetime | None:
    """Graph's times come with none, three or seven digits after the point, mostly with a Z."""
    if not isinstance(text, str) or not text:
        return None
    head, point, rest = text.removesuffix("Z").partition(".")
    digits = rest[:6] if point else ""
    try:
        found = datetime.fromisoformat(f"{head}.{digits:0<6}" if digits else head)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def display_name(identity: Any) -> str:
    """The name in an identity set: a user, an application, whoever comes first with one."""
    if not isinstance(identity, dict):
        return ""
    for kind in ("user", "group", "application", "device"):
        who = identity.get(kind)
        if isinstance(who, dict) and who.get("displayName"):
            return str(who["displayName"])
    return ""


def lies_in(root: str, *names: object) -> bool:
    """Whether a container is the part of the account a data source is for; all of them if it names none."""
    return not root or root.lower().rstrip("/") in {str(name).lower().rstrip("/") for name in names if name}
