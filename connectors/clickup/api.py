"""ClickUp's API as the surface speaks it: errors with names, and walks that do not lose rows while others change them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from connectors.clickup.auth import credential
from connectors.kit.contract import (
    FORBIDDEN,
    ConnectorError,
    ItemFailed,
    ItemGone,
    Throttled,
    TokenSource,
    VendorUnavailable,
)
from connectors.kit.http import Answer, AnswerTooLarge, RequestRefused
from connectors.kit.vendor import LONGEST_WAIT, VendorClient
from connectors.registry import Workplace

PER_PAGE = 100
DEFAULT_WAIT = 15.0
# The token is fine, but the user did not open this workspace to us, or closed it again.
OTHER_WORKSPACE = frozenset(
    {"OAUTH_023", "OAUTH_026", "OAUTH_027", *(f"OAUTH_{n:03}" for n in range(29, 46))}
)

# The token itself is refused. A 401 with another word is no reason to think it dead.
BAD_TOKEN = frozenset({"OAUTH_019", "OAUTH_021", "OAUTH_025", "OAUTH_077"})

Record = Mapping[str, Any]


def error_code(answer: Answer) -> str:
    try:
        body = answer.json()
    except VendorUnavailable:
        return ""
    return str(body.get("ECODE") or "") if isinstance(body, dict) else ""


def classify(answer: Answer, now: datetime | None = None) -> ConnectorError | None:
    if answer.status < 400:
        return None
    code = error_code(answer)
    if answer.status == 429:
        return Throttled(_until_reset(answer.headers, now), code)
    if answer.status == 404:
        return ItemGone(code or "not found")
    if answer.status == 401 and code not in OTHER_WORKSPACE:
        return VendorUnavailable(f"answered 401 {code}".strip())
    if answer.status in {401, 403}:  # a plan that does not cover it, for one, is no loss of access
        return ItemFailed(FORBIDDEN if code in OTHER_WORKSPACE else "refused", code)
    if answer.status >= 500:
        return VendorUnavailable(f"answered {answer.status}")
    return ItemFailed("refused", code or str(answer.status), permanent=True)


def _until_reset(headers: Mapping[str, str], now: datetime | None) -> float:
    """The reset is a moment in Unix seconds; nothing else says how long to wait."""
    try:
        reset = float(headers["x-ratelimit-reset"])
    except (KeyError, ValueError):
        return DEFAULT_WAIT
    return min(max(reset - (now or datetime.now(UTC)).timestamp(), 0.5), LONGEST_WAIT)


class _Credentials:
    """Tokens as ClickUp wants them in the header."""

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens

    async def token(self) -> str:
        return credential(await self._tokens.token())

    async def renew(self, stale: str) -> str:
        return credential(await self._tokens.renew(stale.removeprefix("Bearer ")))


class ClickUpClient(VendorClient):
    def __init__(self, place: Workplace) -> None:
        super().__init__(
            replace(place, tokens=_Credentials(place.tokens)),
            authority="clickup",
            api=place.endpoints["api"],
            classify=lambda answer: classify(answer, place.clock()),
            bearer="",
            renewable=False,
            refuses_token=lambda answer: answer.status == 401 and error_code(answer) in BAD_TOKEN,
        )
        self._http = place.http

    async def file(self, url: str, max_bytes: int) -> Answer:
        """An attachment. Its address is a ticket in itself and lies on another host: no token goes there."""
        try:
            answer = await self._http.download(url, max_bytes=max_bytes, authority="clickup")
        except AnswerTooLarge as error:
            raise ItemFailed("too_large", str(error), permanent=True) from error
        except RequestRefused as error:
            raise ItemFailed("download_refused", str(error)) from error
        if answer.status in {404, 410}:
            raise ItemGone("the attachment is not there any more")
        if answer.status >= 400:
            raise ItemFailed("download_failed", f"the download address answers {answer.status}")
        return answer


@dataclass
class Walk:
    """Where a walk over tasks is. Rows are asked for by a bound on the date they are ordered by, not by page numbers: those
    shift when rows are deleted meanwhile. `descending` is learnt from the first answer that is not the last.
    """

    field: str  # created or updated
    after: int  # exclusive, milliseconds
    before: int  # exclusive
    archived: bool = False
    descending: bool | None = None
    page: int = 0  # only where more than a page has the same date

    def parameters(self) -> dict[str, str]:
        return {
            "page": str(self.page),
            "order_by": self.field,
            "subtasks": "true",
            "include_closed": "true",
            "include_markdown_description": "true",
            "archived": "true" if self.archived else "false",
            f"date_{self.field}_gt": str(self.after),
            f"date_{self.field}_lt": str(self.before),
        }

    def advance(self, rows: Sequence[Record], *, last: bool) -> bool:
        """True when the walk is over."""
        if last or not rows:
            return True
        dates = [stamp(row, f"date_{self.field}") for row in rows]
        low, high = min(dates), max(dates)
        if self.descending is None and low != high:
            self.descending = dates[0] > dates[-1]
        if low == high:
            self.page += 1
            return False
        self.page = 0
        # The row at the bound is asked for again: others may share its date.
        if self.descending:
            self.before = low + 1
        else:
            self.after = high - 1
        return False


def stamp(row: Record, name: str) -> int:
    """Milliseconds come as strings, numbers or null."""
    try:
        return int(row.get(name) or 0)
    except (TypeError, ValueError):
        return 0


async def tasks(
    client: VendorClient, team_id: str, walk: Walk
) -> AsyncIterator[tuple[Sequence[Record], bool]]:
    """Answers of the workspace-wide listing, each with whether it is the last. `walk` is moved along."""
    over = False
    while not over:
        answer = await client.json(f"/v2/team/{team_id}/task", params=walk.parameters())
        rows = [row for row in answer.get("tasks") or () if isinstance(row, dict) and row.get("id")]
        last = bool(answer.get("last_page", len(rows) < PER_PAGE)) or not rows
        over = walk.advance(rows, last=last)
        yield rows, over
