"""What every vendor's world offers the control API and the server, whatever is in it."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from connectors.sandbox.clock import Clock
from connectors.sandbox.faults import Fault, Faults
from connectors.sandbox.requests import RequestLog

Fields = Mapping[str, Any]


class NoSuchObject(Exception):
    """The control API was asked for an object that is not there."""


class Refused(Exception):
    """The control API was asked for something that makes no sense in this world."""


class Ids:
    """Ids that look random and are the same in every run: from the kind and a count."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def digest(self, kind: str) -> bytes:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return hashlib.sha256(f"{kind}:{self._counts[kind]}".encode()).digest()

    def guid(self, kind: str) -> str:
        return str(UUID(bytes=self.digest(kind)[:16]))


class World(ABC):
    """State in memory, deterministic ids, an injected clock. All calls happen on the server's one event loop.

    A vendor implements the abstract part. `url` and `second_url` (another origin of the same server, for downloads) are
    set before the first request; `reset` is called once at the start and by `POST /_control/reset`.
    """

    # Kinds of faults that only this vendor knows.
    bad_days: frozenset[str] = frozenset()

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.faults = Faults()
        self.requests = RequestLog()
        self.ids = Ids()
        self.url = ""
        self.second_url = ""

    @abstractmethod
    def reset(self, seed: str) -> None:
        """Everything gone, then `empty` (users, nothing else) or `demo`. Also resets `self.ids`."""

    @abstractmethod
    def state(self, user: str | None) -> Fields:
        """The truth per surface: every live object with id, kind, version, text; as `user` sees it when given."""

    @abstractmethod
    def create(self, fields: Fields) -> Fields: ...

    @abstractmethod
    def edit(self, object_id: str, fields: Fields) -> Fields:
        """Edit, rename, move, share, unshare: whatever `fields` names. Raises NoSuchObject, Refused."""

    @abstractmethod
    def delete(self, object_id: str, fields: Fields) -> Fields: ...

    @abstractmethod
    def restore(self, object_id: str) -> Fields: ...

    @abstractmethod
    def revoke(self, fields: Fields) -> Fields:
        """Ends grants: of `user`, or all. Access tokens too unless `refreshOnly`."""

    @abstractmethod
    async def deliver(self, fields: Fields) -> Fields:
        """Push on order: deliver what waits, again, late, forged, or a lifecycle event."""

    @abstractmethod
    def refusal(self, fault: Fault, request: Request) -> Response:
        """How this vendor words `throttle` (options status, retryAfter), `server_error` (status), `unauthorized`."""
