"""Change feeds: one count of all changes in the world, and opaque marks in it that links carry around."""

import base64
import binascii
import heapq
import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeVar

from connectors.sandbox.clock import Clock

T = TypeVar("T")
Key = Sequence[Any]
# Instead of a token: no enumeration, only what comes from now on.
LATEST = "latest"


class Changes:
    """Every change has a number of its own. What a client has seen is a number too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stamps: list[datetime] = []

    @property
    def last(self) -> int:
        return len(self._stamps)

    def next(self) -> tuple[int, datetime]:
        self._stamps.append(self._clock.stamp())
        return self.last, self._stamps[-1]

    def until(self, when: datetime) -> int:
        """The last change that is not later than this."""
        return bisect_right(self._stamps, when)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A place in a feed: changes after `since` and not after `until`, of which those up to `after` were shown.

    `since` 0 is a full enumeration. The query of the first call travels along, as at the vendor. `life` tells marks of a
    world that was reset since; a mark from before any change is good in every life of the same seed.
    """

    feed: str
    since: int
    until: int
    life: str
    after: list[Any] | None = None
    query: dict[str, str] = field(default_factory=dict[str, str])

    def written(self) -> str:
        data = json.dumps(asdict(self), separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    @classmethod
    def read(cls, text: str) -> "Mark | None":
        try:
            return cls(**json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
        except (binascii.Error, ValueError, TypeError):
            return None

    def finished(self) -> "Mark":
        """Where the next round begins."""
        return replace(self, since=self.until, until=0, after=None)

    def moved(self, key: Key) -> "Mark":
        return replace(self, after=list(key))


def cut(entries: Iterable[tuple[Key, T]], mark: Mark, size: int) -> tuple[list[T], Mark, bool]:
    """One page in the order of the keys: its entries, the mark behind it, and whether it is the last.

    By key and not by position: what changes during the walk moves out of it and comes with the next round, and nothing is
    stepped over.
    """
    after = None if mark.after is None else tuple(mark.after)
    ahead = (pair for pair in entries if after is None or tuple(pair[0]) > after)
    # One more than is shown says whether there are more, without sorting a large feed for every page.
    left = heapq.nsmallest(size + 1, ahead, key=itemgetter(0))
    page, last = left[:size], len(left) <= size
    behind = mark.finished() if last else mark.moved(page[-1][0])
    return [entry for _, entry in page], behind, last
