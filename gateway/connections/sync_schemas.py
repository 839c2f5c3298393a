"""Estimates, progress, items and failures, as JSON."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from connectors.kit.contract import Mode
from gateway.connections.waiting import WAITS_FOR, WaitsFor
from gateway.wire import Wire


class SurfaceEstimate(Wire):
    surface: str
    items: int
    bytes: int
    tokens: int = Field(description="to embed, guessed from what this mandate's documents came to")
    seconds: int = Field(description="guessed from the rate measured here")
    exact: bool = Field(description="whether the vendor counts exactly")
    containers: list[str] = Field(default_factory=list)
    error: str | None = Field(default=None, description="why this surface could not be asked")


class EstimateOut(Wire):
    items: int
    bytes: int
    tokens: int
    seconds: int
    surfaces: list[SurfaceEstimate]


class SyncIn(Wire):
    surfaces: list[str] | None = Field(default=None, description="all of the connection's, if not given")
    mode: Mode = Field(default="delta", description="`bootstrap` lists everything anew")


class QueuedSync(Wire):
    surface: str
    job_id: UUID | None = Field(description="none if the connection cannot be synced now")


class SyncOut(Wire):
    jobs: list[QueuedSync]


class ItemOut(Wire):
    """An object of the vendor's and what became of it. `answer` is one word, `why` a sentence."""

    external_id: str
    surface: str
    authority: str | None
    connection_id: UUID | None
    source_kind: str
    name: str
    path: str
    uri: str | None
    size: int | None
    version: str | None
    modified_at: datetime | None
    seen_at: datetime
    answer: str
    why: str
    detail: str | None = Field(default=None, description="the reason behind the answer, where it says more")
    document_id: UUID | None
    retry_at: datetime | None = None
    failure_id: UUID | None = None


class FailureOut(Wire):
    id: UUID
    surface: str
    external_id: str
    name: str
    reason: str
    detail: str
    attempts: int
    retry_at: datetime | None = Field(description="none: not by itself")
    first_at: datetime
    last_at: datetime


class HeldOut(Wire):
    """Deletions that wait for a person: a listing was complete, but so much was missing that it may be a mistake."""

    surface: str
    count: int
    known: int
    percent: float
    since: datetime
    examples: list[str] = Field(default_factory=list)


class HeldList(Wire):
    items: list[HeldOut]


class ApprovedOut(Wire):
    approved: int


class SurfaceProgress(Wire):
    surface: str
    phase: str
    found: int
    indexed: int
    waiting: int = Field(description="to be downloaded")
    indexing: int = Field(description="handed over, not searchable yet")
    skipped: int
    failed: int
    held: int
    items_per_second: float | None
    seconds_left: int | None
    last_sync_at: datetime | None
    last_error: str | None
    waits_for: WaitsFor | None = Field(default=None, description=WAITS_FOR)
    waits_until: datetime | None = None
    done: bool


class ProgressOut(Wire):
    connection_id: UUID
    done: bool
    surfaces: list[SurfaceProgress]
