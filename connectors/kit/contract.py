"""What a vendor's surface promises the sync engine, and nothing more.

A surface is one kind of thing in one connected account: a mailbox, the SharePoint libraries, a calendar. It lists, it
fetches, it can be watched; it never stores anything and never swallows an error. The engine in `workers/sync` alone
commits: a page's items, tombstones, failures and next cursor become one transaction there.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

# `bootstrap` is a first listing, newest first where the vendor can; `delta` asks for changes since the cursor.
Mode = Literal["bootstrap", "delta"]

# The word of a refusal that says this user may not read a container any more. Every other word is somebody's setting, plan or
# bad day, and no reason to end anything.
FORBIDDEN = "forbidden"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a document that came with the listing; `locator` is one of DESIGN §5's kinds, without offsets."""

    text: str
    mime_type: str = "text/plain"
    locator: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Item:
    """One object of the vendor's. `external_id` is stable, and the same id a tombstone will name.

    With `parts` the content came along and nothing is fetched; otherwise `fetch` brings it. A `folder` is remembered,
    so that its end is the end of what lies in it, but never becomes a document. What hangs on something else – a file in
    a folder, an attachment on a message – names it in `parent_id`.
    """

    external_id: str
    source_kind: str  # of DESIGN §4; `folder` for what only holds others
    name: str
    container_id: str  # drive, mail folder, calendar, list: what a listing is complete for
    version: str | None = None
    parent_id: str | None = None
    path: str = ""
    uri: str | None = None
    mime_type: str | None = None
    size: int | None = None
    modified_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    handle: Mapping[str, str] = field(default_factory=dict[str, str])  # what `fetch` needs beside the id
    parts: Sequence[Part] | None = None
    # Ids of all that hangs on it and is listed like it: what did so before and is not among them is gone. None: not said.
    children: Sequence[str] | None = None
    # Why it must not become a document although it exists: too_large, unsupported, filtered, outside_window …
    skip: str | None = None

    @property
    def is_folder(self) -> bool:
        return self.source_kind == "folder"


@dataclass(frozen=True, kw_only=True)
class Tombstone:
    """The vendor says it is gone. `container_id`: only if it is still known to lie there (a move is not a deletion)."""

    external_id: str
    reason: Literal["deleted", "access_lost", "trashed", "moved_out"] = "deleted"
    container_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One item that could not be listed. It goes to the failure ledger and never holds the cursor."""

    external_id: str
    name: str
    reason: str
    detail: str = ""
    container_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is committed together. `next_cursor` resumes after exactly this page.

    `listing` pages belong to a full listing: what they name is marked as seen in this generation. `container_complete`
    names containers whose listing ends with this page; `containers_failed` those that could not be listed to the end, which
    forbids any deletion by absence; `refusals` says of those that were refused with which word: one `FORBIDDEN` proves
    nothing yet. It may also name what the account does not have at all, by the word for that. `containers_gone` are those that
    are no longer there for this user, `containers_left_out` those that are there and that policy no longer wants.
    """

    next_cursor: str
    upserts: Sequence[Item] = ()
    tombstones: Sequence[Tombstone] = ()
    failures: Sequence[Failure] = ()
    listing: bool = False
    container_complete: Sequence[str] = ()
    containers_failed: Sequence[str] = ()
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])
    containers_gone: Sequence[str] = ()
    containers_left_out: Sequence[str] = ()
    last: bool = False  # the round ends here; a listing that ends here was complete unless a container failed


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """The bytes of a file, or the `parts` of what is made of several answers. `children` hang on it and were found with it:
    those named before and not any more are gone; None where nothing can be said about them.
    """

    data: bytes = b""
    parts: Sequence[Part] | None = None
    children: Sequence[Item] | None = None
    mime_type: str | None = None
    version: str | None = (
        None  # of these bytes, if the vendor says so; the file may have changed since it was listed
    )
    file_name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a first sync would bring. `exact` is False where the vendor only allows a guess."""

    items: int
    size: int  # bytes
    exact: bool = False
    containers: Sequence[str] = ()  # names, for a person


@dataclass(frozen=True, kw_only=True)
class Watch:
    """A push subscription at the vendor's."""

    vendor_id: str
    resource: str
    expires_at: datetime
    secret: str  # clientState, channel token or signing key: proves that a notification is theirs
    details: Mapping[str, str] = field(default_factory=dict[str, str])


class Surface(Protocol):
    def pages(self, cursor: str | None, mode: Mode) -> AsyncIterator[Page]:
        """Pages from the cursor on; without one a full listing, whose start cursor is taken before the first item is listed.

        Raises `CursorLost` with a cursor that begins the needed listing. The last page of a round has `last`.
        """
        ...

    def left_out(self, item: Item) -> str | None:
        """Why a listing that just ended did not name an item which may well exist: policy does not ask for it any more. Such
        an end is nobody's loss. None if policy is not the reason.
        """
        ...

    async def fetch(self, item: Item) -> Fetched:
        """The bytes of an item. `item` carries id, kind, name, version, size, mime type and handle as they were listed."""
        ...

    async def estimate(self) -> Estimate: ...

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        """Push to `url`: subscriptions that should exist now, renewed or made anew. Empty where the vendor has none."""
        ...

    async def unwatch(self, known: Sequence[Watch]) -> None: ...


# -- what can go wrong


class ConnectorError(Exception):
    """A vendor's answer that the engine must act on."""


class Throttled(ConnectorError):
    """Not now: try again after so many seconds."""

    def __init__(self, after: float, detail: str = "") -> None:
        self.after = after
        super().__init__(detail or f"throttled for {after:g} s")


class VendorUnavailable(ConnectorError):
    """The vendor does not answer as it should; trying again later may help. `word` says it to a person."""

    word = "unavailable"


class CursorLost(ConnectorError):
    """The vendor forgot the cursor. `cursor` begins the listing that is needed: None for all of the surface."""

    def __init__(
        self, detail: str = "", *, cursor: str | None = None, container_id: str | None = None
    ) -> None:
        self.cursor, self.container_id = cursor, container_id
        super().__init__(detail or "the vendor forgot the cursor")


class ListingDue(CursorLost):
    """The cursor still works, but only a listing can tell what ended since the last one."""


class AuthRevoked(ConnectorError):
    """The grant is dead; only the user can renew it."""


class ItemFailed(ConnectorError):
    """One item cannot be had. `permanent`: trying again will not help until it changes."""

    def __init__(self, reason: str, detail: str = "", *, permanent: bool = False) -> None:
        self.reason, self.detail, self.permanent = reason, detail, permanent
        super().__init__(detail or reason)


class ItemGone(ConnectorError):
    """The item was deleted between listing and fetching."""


class ContainerForbidden(ConnectorError):
    """A container that may no longer be read."""

    def __init__(self, container_id: str, detail: str = "") -> None:
        self.container_id = container_id
        super().__init__(detail or f"no access to {container_id}")


# -- what a surface is given


class TokenSource(Protocol):
    """Access tokens of one connection. The gateway's vault refreshes them, once per expiry, across processes."""

    async def token(self) -> str: ...

    async def renew(self, stale: str) -> str:
        """After a 401 for `stale`: the newer token if somebody has it already, else a refresh. Raises AuthRevoked."""
        ...


class RateWindow(Protocol):
    """The vendor's limits, shared by every process that works for one connection."""

    async def enter(self, cost: float = 1.0) -> None:
        """Waits for room; raises Throttled when the wait would be long."""
        ...

    async def leave(self) -> None: ...

    async def turn(self, place: str, seconds: float) -> None:
        """Waits for its turn at a place the vendor lets everybody together ask once in so many seconds."""
        ...

    async def close_for(self, seconds: float) -> None:
        """The vendor said Retry-After: nobody asks before that."""
        ...


# -- consent


@dataclass(frozen=True, kw_only=True)
class Client:
    """The registered application, and where the vendor lives (national clouds and the sandbox override `endpoints`)."""

    client_id: str
    client_secret: str
    endpoints: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Tokens:
    access_token: str
    refresh_token: str | None = None
    expires_at: datetime | None = None
    scopes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Account:
    """Whose account was connected, as the vendor says it."""

    id: str
    name: str = ""
    email: str = ""


@dataclass(frozen=True, kw_only=True)
class Consent:
    """Where to send the browser, and what to keep sealed until it comes back."""

    url: str
    flow: Mapping[str, Any]


class Authority(Protocol):
    """How one vendor grants, renews and takes back access. Blocking vendor libraries run in threads."""

    name: str
    surfaces: Sequence[str]
    has_refresh: bool

    def begin(self, client: Client, *, redirect_uri: str, state: str, surfaces: Sequence[str]) -> Consent: ...

    def granted_surfaces(self, scopes: Sequence[str]) -> Sequence[str]:
        """What can be read with these scopes of a token; all of the surfaces where none are told."""
        ...

    async def finish(
        self, client: Client, *, flow: Mapping[str, Any], answer: Mapping[str, str]
    ) -> tuple[Tokens, Account]:
        """Redeems the code of the callback's query. Raises ConsentRefused."""
        ...

    async def account(self, client: Client, tokens: Tokens) -> Account:
        """Whose tokens these are: one call that proves a credential which was handed in. Raises AuthRevoked."""
        ...

    async def refresh(self, client: Client, tokens: Tokens) -> Tokens:
        """Raises AuthRevoked, Throttled, VendorUnavailable."""
        ...

    async def revoke(self, client: Client, tokens: Tokens) -> bool:
        """False where the vendor has no way to take a grant back by API."""
        ...


class ConsentRefused(ConnectorError):
    """The user declined, or the vendor did not accept the code. `code` is the vendor's error word."""

    def __init__(self, code: str, detail: str = "") -> None:
        self.code = code
        super().__init__(detail or code)


# -- push


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A request at the webhook door, raw."""

    headers: Mapping[str, str]  # names in lower case
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One notification inside a delivery. `route` finds the watch; `proves` says whether its secret is in it."""

    route: str  # the watch's vendor_id
    delivery_id: str | None  # what makes a replay one; None where the vendor gives nothing unique
    kind: Literal["change", "missed", "removed", "reauthorize"] = "change"
    proof: str = ""  # what the sender showed: clientState, channel token, signature
    signed: bool = False  # `proof` is a signature over the body rather than the secret itself


class Webhooks(Protocol):
    def handshake(self, delivery: Delivery) -> str | None:
        """What to answer to a validation request; None if it is none."""
        ...

    def notices(self, delivery: Delivery) -> Sequence[Notice]:
        """Raises ValueError for a body that is not theirs."""
        ...

    def verify(self, notice: Notice, secret: str, delivery: Delivery) -> bool:
        """In constant time."""
        ...
