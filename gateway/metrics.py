"""What Prometheus sees: counters of every process of the tree, gauges read from the ledger when asked.

The processes share `PROMETHEUS_MULTIPROC_DIR`, so the gateway's `/metrics` includes the workers and outlives a killed one.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, mmap_dict, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

# What the library's files begin with; ours never grow beyond it.
_FILE_BYTES = 1 << 16


class _ReservedFile(mmap_dict.MmapedDict):
    """A process's own counters, on blocks that the disk has promised.

    The library maps a file with holes, and the kernel kills (SIGBUS) whoever first writes into one on a full disk.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if hasattr(os, "posix_fallocate"):
            _reserve(Path(filename))
        super().__init__(filename, read_mode)


def _reserve(path: Path) -> None:
    with path.open("ab") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, _FILE_BYTES)
        except OSError:
            if not file.tell():
                path.unlink()  # nobody could read an empty one
            raise


values.MmapedDict = _ReservedFile  # pyright: ignore[reportPrivateImportUsage]

INGESTIONS = Counter("catchment_ingestions", "Requests at the façade by outcome", ["outcome"])
EXTRACTIONS = Counter("catchment_extractions", "Documents that went through the parser")
EMBEDDED_CHUNKS = Counter("catchment_embedded_chunks", "Texts sent to the embedder", ["model"])
EMBEDDING_TOKENS = Counter("catchment_embedding_tokens", "Tokens sent to the embedder", ["model"])
SEARCHES = Counter("catchment_searches", "Answered searches by origin", ["origin"])
SEARCH_SECONDS = Histogram(
    "catchment_search_seconds",
    "Time to answer a search",
    buckets=(0.002, 0.004, 0.008, 0.015, 0.025, 0.05, 0.1, 0.25, 1, 5),
)
QUERY_LOG_DROPPED = Counter("catchment_query_log_dropped", "Searches that left no row in the query log")
VENDOR_REQUESTS = Counter(
    "catchment_vendor_requests", "Requests to vendors by answer", ["authority", "status"]
)

# name → meaning, as ops read them; wiki/metrics.md is checked against this.
METRICS: dict[str, str] = {
    "catchment_ingestions_total": "requests at the façade by outcome",
    "catchment_extractions_total": "documents that went through the parser",
    "catchment_embedded_chunks_total": "texts sent to the embedder, by model",
    "catchment_embedding_tokens_total": "tokens sent to the embedder, by model",
    "catchment_jobs": "live jobs by lane and status",
    "catchment_oldest_job_seconds": "age of the oldest job that could run now, by lane",
    "catchment_searches_total": "answered searches by origin",
    "catchment_search_seconds": "time to answer a search",
    "catchment_query_log_dropped_total": "searches that left no row in the query log (no room, or refused)",
    "catchment_vendor_requests_total": "requests to vendors by authority and answer",
}

_OTHER_TYPES = {
    "catchment_jobs": "gauge",
    "catchment_oldest_job_seconds": "gauge",
    "catchment_search_seconds": "histogram",
}
LANES, LIVE = ("interactive", "delta", "backfill"), ("pending", "extracted", "embedding")


# Jobs by lane and status, age of the oldest by lane.
LedgerCounts = tuple[dict[tuple[str, str], int], dict[str, float]]


def render(ledger: LedgerCounts | None) -> bytes:
    """All processes' counters plus the ledger's gauges, in Prometheus text format."""
    registry = CollectorRegistry()
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        MultiProcessCollector(registry)
        shown = generate_latest(registry)
    else:
        shown = generate_latest()
    if ledger:
        gauges = CollectorRegistry()
        gauges.register(_Ledger(*ledger))
        shown += generate_latest(gauges)
    return shown + _unseen(shown.decode())


class _Ledger(Collector):
    """Read from the database, so the same whoever is asked: these must not go through the processes' files."""

    def __init__(self, jobs: dict[tuple[str, str], int], oldest: dict[str, float]) -> None:
        self._jobs, self._oldest = jobs, oldest

    def collect(self) -> Iterator[Metric]:
        live = GaugeMetricFamily("catchment_jobs", METRICS["catchment_jobs"], labels=["lane", "status"])
        age = GaugeMetricFamily(
            "catchment_oldest_job_seconds", METRICS["catchment_oldest_job_seconds"], labels=["lane"]
        )
        for lane in LANES:
            # Zero is a figure too: an alert on a series that vanishes when all is well would never fire.
            age.add_metric([lane], self._oldest.get(lane, 0.0))
            for status in LIVE:
                live.add_metric([lane, status], self._jobs.get((lane, status), 0))
        yield live
        yield age


def _unseen(shown: str) -> bytes:
    """Names of what no process counted yet, so that dashboards and rules find every metric from the start."""
    lines = [
        f"# HELP {name} {meaning}\n# TYPE {name} {_OTHER_TYPES.get(name, 'counter')}\n"
        for name, meaning in METRICS.items()
        if f"# TYPE {name} " not in shown
    ]
    return "".join(lines).encode()
