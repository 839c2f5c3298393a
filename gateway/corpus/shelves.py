"""Directories of lexical segments, kept in memory so that a search reads only the postings of its words.

A directory is valid for one version of its segment; which versions are current, every search reads together with its
postings, so what is kept is never stale. With them are kept the most frequent words, counted out, because theirs are the
longest postings and the most often asked for; and what else holds for as long as no chunk comes or goes. Memory is bounded:
the mandates searched longest ago are forgotten first.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from gateway.corpus import search_repository as repository
from gateway.corpus.lexical.bm25 import Shelf
from gateway.corpus.lexical.postings import Directory
from gateway.corpus.lexical.scores import Groups, Impact, Rows, Scores, impact_of
from gateway.corpus.search_repository import State
from gateway.errors import StoreUnavailable
from gateway.readers import Connection

MAX_CHUNKS = 1_000_000  # about 50 bytes each, and 4 for every frequent word
MOST_FREQUENT = 48  # words per mandate that are kept counted out
STATE_SECONDS = 60.0


class SegmentChanged(Exception):
    """A segment was rewritten between two statements; read again."""


@dataclass(frozen=True, eq=False)
class Kept:
    """One mandate's segments end to end, as they were when their versions were `versions`."""

    versions: bytes  # as the database tells them
    places: dict[bytes, int]  # segment → its number in that order
    directories: list[Directory]
    shelf: Shelf
    frequent: dict[str, Impact] = field(default_factory=dict[str, Impact])
    states: dict[str, tuple[State, float]] = field(default_factory=dict[str, tuple[State, float]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def state(self, model: str) -> State | None:
        state, until = self.states.get(model, (None, 0.0))
        return state if until > time.monotonic() else None

    def known(self, terms: Sequence[str]) -> dict[str, Impact]:
        """The frequent among them."""
        found = ((term, self.frequent.get(term)) for term in terms)
        return {term: impact for term, impact in found if impact is not None}

    def remember(self, impacts: dict[str, Impact]) -> None:
        """Keeps the frequent among them; the ones asked for longest ago make room."""
        with self._lock:
            for term, impact in impacts.items():
                if impact.places is None:
                    self.frequent.pop(term, None)
                    self.frequent[term] = impact
            while len(self.frequent) > MOST_FREQUENT:
                del self.frequent[next(iter(self.frequent))]


class Postings(NamedTuple):
    """The postings of a query's terms, and the shelf they stand on."""

    kept: Kept
    rows: Rows
    known: dict[str, Impact]  # of the frequent terms, for which no rows were read

    def impact(self, term: str) -> Impact | None:
        """None when no chunk holds the term."""
        rows = self.rows.get(term)
        return self.known.get(term) if rows is None else impact_of(rows, self.kept.shelf)

    def score(self, groups: Groups, limit: int) -> Scores:
        """Every chunk's BM25, with the best already picked."""
        impacts = dict[str, Impact]()
        for term in {term for group in groups for term in group}:
            if (impact := self.impact(term)) is not None:
                impacts[term] = impact
        self.kept.remember(impacts)
        return Scores(self.kept.shelf, groups, impacts, limit)


class Shelves:
    def __init__(self, max_chunks: int = MAX_CHUNKS) -> None:
        self._kept: OrderedDict[UUID, Kept] = OrderedDict()
        self._max_chunks = max_chunks
        self._lock = threading.Lock()  # searches run in threads

    def state(self, mandate_id: UUID, model: str) -> State | None:
        """As it was read of late, for the shelf that is kept; which is still the mandate's if the next `read` says so."""
        kept = self._kept.get(mandate_id)
        return kept.state(model) if kept else None

    def note(self, kept: Kept, model: str, state: State) -> None:
        # Vectors settle without a chunk coming or going: a mandate without settled ones is looked at each time.
        if state.share is not None and kept.state(model) is None:
            kept.states[model] = state, time.monotonic() + STATE_SECONDS

    def read(self, connection: Connection, mandate_id: UUID, terms: Sequence[str]) -> Postings:
        """Postings of these terms with the mandate's current shelf."""
        for _ in range(3):  # a merge now and then is normal, three during one search are not
            try:
                return self._read(connection, mandate_id, terms)
            except SegmentChanged:
                continue
        raise StoreUnavailable("The index is being rewritten; try again in a moment.")

    def _read(self, connection: Connection, mandate_id: UUID, terms: Sequence[str]) -> Postings:
        kept = self._kept.get(mandate_id)
        known = kept.known(terms) if kept else {}
        wanted = [term for term in terms if term not in known]
        versions, found = repository.read_postings(connection, mandate_id, wanted)
        if kept is None or kept.versions != versions:
            kept = self._renew(connection, mandate_id, versions, kept)
            self._keep(mandate_id, kept)
            if known:
                raise SegmentChanged  # what was known was of other versions
        else:
            self._used(mandate_id)
        rows: dict[str, list[tuple[int, bytes]]] = {}
        for term, segment, data in found:
            rows.setdefault(term, []).append((kept.places[segment], data))
        return Postings(kept, rows, known)

    def _renew(self, connection: Connection, mandate_id: UUID, versions: bytes, old: Kept | None) -> Kept:
        """The shelf of these versions, with as much of the old one as still holds."""
        current = repository.segment_versions(versions)
        known: dict[bytes, Directory] = {}
        if old is not None:
            before = repository.segment_versions(old.versions)
            known = {
                segment: old.directories[place]
                for segment, place in old.places.items()
                if current.get(segment) == before[segment]
            }
        missing = [segment for segment in current if segment not in known]
        for segment, version, directory in repository.read_directories(connection, mandate_id, missing):
            if version != current[segment]:
                raise SegmentChanged
            known[segment] = Directory(directory)
        if len(known) != len(current):
            raise SegmentChanged
        directories = [known[segment] for segment in current]
        shelf = Shelf(dict(enumerate(directories)))
        return Kept(versions, {segment: place for place, segment in enumerate(current)}, directories, shelf)

    def _used(self, mandate_id: UUID) -> None:
        with self._lock:
            if mandate_id in self._kept:
                self._kept.move_to_end(mandate_id)

    def _keep(self, mandate_id: UUID, kept: Kept) -> None:
        with self._lock:
            self._kept[mandate_id] = kept
            self._kept.move_to_end(mandate_id)
            total = sum(len(one.shelf) for one in self._kept.values())
            while total > self._max_chunks and len(self._kept) > 1:
                _, forgotten = self._kept.popitem(last=False)
                total -= len(forgotten.shelf)
