"""Structured logs: constant event names, values in camelCase fields, no secrets, one catalogue.

`emit(event, **fields)` is the only way a log line of ours is written. The catalogue below says each event's severity and
the keys it must carry; a test walks every call in the code and fails on an unknown event or a missing key.
"""

import logging
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import EventDict

from gateway.log_file import LogFile


@dataclass(frozen=True)
class Event:
    severity: str
    keys: tuple[str, ...]
    meaning: str


_SURFACE = ("connectionId", "part")
_JOB = ("mandateId", "documentId", "jobId")

CATALOGUE: dict[str, Event] = {
    # the way of one document
    "ingestion.queued": Event("info", (*_JOB, "sourceKind", "lane"), "accepted; a job row is committed"),
    "ingestion.extracted": Event(
        "info", (*_JOB, "chunks", "durationMs"), "text and chunks came out of the parser"
    ),
    "ingestion.embedding": Event("info", (*_JOB, "chunks"), "texts without a vector are being embedded"),
    "ingestion.indexed": Event(
        "info", (*_JOB, "chunks", "embedded", "durationMs"), "searchable from this commit on"
    ),
    "ingestion.skipped.duplicate": Event(
        "info", (*_JOB, "sourceKind"), "the same content is indexed or in flight; nothing was done twice"
    ),
    "ingestion.skipped.policy": Event(
        "info", ("mandateId", "sourceKind", "reason"), "policy, quota, type or revocation kept it out"
    ),
    "ingestion.failed": Event("error", (*_JOB, "reason", "error"), "gave up; the reason says why"),
    "ingestion.retry": Event(
        "warning", (*_JOB, "reason", "attempts", "delayMs"), "transient trouble; tried again later"
    ),
    "ingestion.superseded": Event("info", _JOB, "newer content overtook this job"),
    "ingestion.cancelled": Event("info", _JOB, "withdrawn before it was indexed"),
    "ingestion.deleted": Event(
        "info", ("mandateId", "documentId", "chunks"), "document and all it left behind are gone"
    ),
    "ingestion.erased": Event(
        "info",
        ("mandateId", "receiptId", "subject", "documents", "chunks", "durationMs"),
        "an erasure finished",
    ),
    "ingestion.retention.done": Event(
        "info",
        ("mandateId", "sourceKind", "documents", "chunks"),
        "documents older than their kind may be were erased",
    ),
    "ingestion.exported": Event(
        "info", ("mandateId", "userId", "documents", "durationMs"), "everything about a user was handed out"
    ),
    "ingestion.quota.reached": Event(
        "warning", ("mandateId", "reason"), "a quota of the mandate keeps content out"
    ),
    "ingestion.budget.waiting": Event(
        "warning", ("mandateId", "jobId", "reason"), "waits until the budget is raised"
    ),
    "ingestion.secret.removed": Event("warning", ("mandateId", "documentId", "kinds"), "a secret was masked"),
    "ingestion.audit.done": Event("info", ("mandateId", "checked", "violations"), "the tenancy audit ran"),
    "ingestion.event.ignored": Event(
        "warning", ("mandateId", "type", "reason"), "a domain event could not be used"
    ),
    # connections
    "ingestion.connection.bootstrap.queued": Event(
        "info", ("connectionId", "authority"), "first sync is enqueued"
    ),
    "ingestion.connection.bootstrap.started": Event("info", _SURFACE, "the walker of one surface began"),
    "ingestion.connection.bootstrap.progress": Event(
        "info", (*_SURFACE, "processed", "skippedDup", "failed"), "heart-beat every 50 items"
    ),
    "ingestion.connection.bootstrap.done": Event(
        "info",
        (*_SURFACE, "indexed", "skippedDup", "skippedPolicy", "failed", "durationMs"),
        "the walker finished cleanly",
    ),
    "ingestion.connection.bootstrap.failed": Event("error", (*_SURFACE, "error"), "one surface gave up"),
    "ingestion.connection.bootstrap.skipped": Event(
        "info", ("connectionId", "authority", "reason"), "nothing to do for this connection"
    ),
    "ingestion.connection.delta.queued": Event("info", ("connectionId", "authority"), "a delta is enqueued"),
    "ingestion.connection.delta.started": Event("info", _SURFACE, "a delta began"),
    "ingestion.connection.delta.progress": Event(
        "info", (*_SURFACE, "processed", "skippedDup", "failed"), "heart-beat every 50 items"
    ),
    "ingestion.connection.delta.done": Event(
        "info",
        (*_SURFACE, "indexed", "skippedDup", "skippedPolicy", "failed", "durationMs"),
        "a delta finished",
    ),
    "ingestion.connection.delta.failed": Event("error", (*_SURFACE, "error"), "a delta gave up"),
    "ingestion.connection.established": Event(
        "info", ("connectionId", "authority"), "an account was connected"
    ),
    "ingestion.connection.consent.failed": Event(
        "warning", ("connectionId", "authority", "reason"), "a browser came back without consent"
    ),
    "ingestion.connection.vendor.told": Event(
        "info", ("connectionId", "authority", "outcome"), "the vendor was asked to take the grant back"
    ),
    "ingestion.connection.reauth.needed": Event(
        "warning", ("connectionId", "authority", "reason"), "the grant is dead"
    ),
    "ingestion.connection.cursor.lost": Event(
        "warning", _SURFACE, "the vendor forgot our cursor; a full listing follows"
    ),
    "ingestion.connection.deletions.held": Event(
        "warning", (*_SURFACE, "reason"), "a person must approve the deletions"
    ),
    "ingestion.connection.watch.failed": Event(
        "warning", (*_SURFACE, "error"), "the vendor took no subscription; the schedule goes on without"
    ),
    "ingestion.connection.purged": Event(
        "info",
        ("connectionId", "authority", "reason", "indexRows", "chunks"),
        "everything it brought is gone",
    ),
    "ingestion.connection.purged.failed": Event(
        "error", ("connectionId", "error"), "a purge raised; it will resume"
    ),
    "webhook.accepted": Event("info", ("authority",), "a verified notification enqueued a delta"),
    "webhook.rejected": Event("warning", ("authority", "reason"), "a notification failed verification"),
    # the house
    "house.starting": Event("info", ("component",), "a process of ours starts"),
    "house.ready": Event("info", ("component",), "a process of ours serves"),
    "house.stopping": Event("info", ("component",), "a process of ours stops cleanly"),
    "house.child.died": Event(
        "error", ("component", "exitCode"), "a supervised process died and is restarted"
    ),
    "house.store.unavailable": Event("warning", ("component", "error"), "a store does not answer; retrying"),
    "house.migrated": Event("info", ("revision", "durationMs"), "the database schema is current"),
    "house.index.built": Event(
        "info", ("model", "rows", "durationMs"), "vectors were moved into the HNSW index"
    ),
    "house.vectors.collected": Event("info", ("mandateId", "vectors"), "vectors no chunk refers to are gone"),
    "http.request": Event("info", ("method", "path", "status", "durationMs"), "one answered request"),
    "http.failed": Event(
        "error",
        ("method", "path", "error"),
        "an unexpected error; the answer was a 500, or a 503 if it was about the schema",
    ),
    "ledger.rang": Event("debug", ("lane", "mandateId"), "the doorbell of a mandate was rung"),
    "ledger.rescued": Event(
        "warning", ("lane", "mandateId", "jobs"), "jobs of a dead worker are up for taking again"
    ),
    "ledger.fence.lost": Event(
        "warning", ("mandateId", "jobId"), "somebody else took the job over; nothing was written"
    ),
    "ledger.answer.failed": Event(
        "error",
        ("lane", "mandateId", "error"),
        "a worker could not take up a mandate's jobs, for a reason nobody foresaw; they wait and it is rung again",
    ),
    "ledger.poison": Event(
        "error", ("mandateId", "jobId", "deaths"), "a job that kills its process was set aside"
    ),
    "insights.querylog.dropped": Event(
        "warning", ("queries",), "the process ended before these were written"
    ),
    "insights.retention.done": Event(
        "info", ("mandateId", "queries", "citations", "answers", "timeline"), "rows past their days are gone"
    ),
    "tenancy.member.left": Event(
        "info", ("mandateId", "userId"), "sessions and keys of a leaving member are gone"
    ),
    "tenancy.mandate.deleted": Event("warning", ("mandateId",), "a mandate is gone, with its users and keys"),
    "tenancy.key.created": Event("info", ("mandateId", "keyId"), "a key was made; its secret was shown once"),
    "tenancy.key.revoked": Event("info", ("mandateId", "keyId"), "a key stopped working"),
}

# A second wall behind "never pass a secret": what looks like one is starred before the line is written.
_SECRET_KEY = re.compile(r"(token|secret|password|authorization|cookie|api_?key)$", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"\b(c[kls]_[A-Za-z0-9_-]{8,}|Bearer\s+\S+|postgres(?:ql)?(?:\+\w+)?://\S+@\S+|sk-[A-Za-z0-9]{8,})"
)


def _redact(_logger: Any, _method: str, fields: EventDict) -> EventDict:
    for key, value in fields.items():
        if _SECRET_KEY.search(key):
            fields[key] = "***"
        elif isinstance(value, str) and _SECRET_VALUE.search(value):
            fields[key] = _SECRET_VALUE.sub("***", value)
    return fields


class _Writer:
    """Renders once for the file (always JSON) and once for the terminal (JSON or colours)."""

    def __init__(self, log_format: str, file: LogFile | None) -> None:
        self._json = structlog.processors.JSONRenderer(ensure_ascii=False)
        self._shown = structlog.dev.ConsoleRenderer() if log_format == "console" else self._json
        self._file = file

    def __call__(self, logger: Any, method: str, fields: EventDict) -> str:
        # A name that is no Unicode must not silence the line it is in; in JSON its escape is what it was.
        kept = str(self._json(logger, method, dict(fields))).encode(errors="backslashreplace")
        if self._file:
            self._file.keep(kept)
        return kept.decode() if self._shown is self._json else str(self._shown(logger, method, fields))


class _Printer:
    """A terminal that is gone costs the line, never the request or the job that spoke."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def msg(self, line: str) -> None:
        with suppress(OSError):
            self._show(line)

    debug = info = warning = error = critical = exception = log = msg


def _to_stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def configure_logs(
    *,
    log_format: str = "json",
    level: str = "info",
    data_dir: Path | None = None,
    show: Callable[[str], None] = _to_stdout,
) -> None:
    """`show` gets the lines for the terminal; the file in the data folder always gets JSON."""
    file = LogFile(data_dir / "logs" / "catchment.jsonl") if data_dir else None
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _redact,
            _Writer(log_format, file),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=lambda *_: _Printer(show),
        cache_logger_on_first_use=False,
    )


def emit(event: str, /, **fields: Any) -> None:
    known = CATALOGUE[event]
    getattr(structlog.get_logger(), known.severity)(event, **fields)


def place_of(error: BaseException) -> str:
    """Type and place of an error, without its words: messages may quote contents."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return f"{type(error).__name__} at " + " < ".join(
        f"{frame.name}:{frame.lineno}" for frame in reversed(frames)
    )
