"""How fast content goes through the whole path: façade, bell, worker, parser child, embedder, every index – on real
processes and a throw-away instance. The façade is called in-process, as a feature module or connector would.
"""

import asyncio
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from gateway.corpus.blobs import BlobStore
from gateway.db import Database
from gateway.embedded.stores import running_stores
from gateway.ingestion import repository
from gateway.ingestion.facade import request_ingestions
from gateway.ingestion.schemas import IngestionRequest
from gateway.migration import migrate
from gateway.settings import Settings, get_settings
from gateway.tenancy import service as tenancy

BATCH = 100
# Bare COPY of split and hashed chunks with their vectors, without any index, on the guide's machine (performance.md §1b).
FLOOR_CHUNKS_PER_SECOND = 29_649
# LangChain's index() on the same 500 documents, no vector index (performance.md §1b).
LANGCHAIN_CHUNKS_PER_SECOND = 1_178


@dataclass(frozen=True)
class Figures:
    documents: int
    chunks: int
    seconds: float
    unchanged_seconds: float

    @property
    def chunks_per_second(self) -> float:
        return self.chunks / self.seconds

    def as_dict(self) -> dict[str, float]:
        return {
            "documents": self.documents,
            "chunks": self.chunks,
            "seconds": round(self.seconds, 2),
            "chunksPerSecond": round(self.chunks_per_second),
            "shareOfFloor": round(self.chunks_per_second / FLOOR_CHUNKS_PER_SECOND, 3),
            "timesLangChain": round(self.chunks_per_second / LANGCHAIN_CHUNKS_PER_SECOND, 2),
            "unchangedDocumentsPerSecond": round(self.documents / self.unchanged_seconds),
        }


def make_text(number: int, chunks: int) -> str:
    """Prose of about `chunks` kilobytes with a Zipf-like vocabulary, the same for the same number."""
    rng = random.Random(number)  # noqa: S311 - a benchmark's words
    words = [f"{'aeiou'[n % 5]}{n:x}n" for n in range(4000)]
    picks = [words[min(int(rng.paretovariate(0.6)), 3999)] for _ in range(chunks * 190)]
    lines = [" ".join(picks[at : at + 19]) + "." for at in range(0, len(picks), 19)]
    return "\n\n".join("\n".join(lines[at : at + 10]) for at in range(0, len(lines), 10))


async def bench_ingest(documents: int = 500, chunks: int = 18, embedder: str = "lookup:384") -> Figures:
    texts = [make_text(number, chunks) for number in range(documents)]
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as folder:
        data_dir = Path(folder)
        with running_stores(data_dir) as stores:
            await asyncio.to_thread(migrate, stores.postgres.owner_url)
            db = Database(stores.postgres.runtime_url)
            settings = get_settings().model_copy(update={"embedder": embedder, "data_dir": data_dir})
            async with _worker(stores.postgres.runtime_url, stores.redis.url, settings):
                try:
                    return await _measure(db, texts, settings)
                finally:
                    await db.dispose()


@asynccontextmanager
async def _worker(database_url: str, redis_url: str, settings: Settings) -> AsyncGenerator[None]:
    env = os.environ | {
        "CATCHMENT_DATABASE_URL": database_url,
        "CATCHMENT_REDIS_URL": redis_url,
        "CATCHMENT_DATA_DIR": str(settings.data_dir),
        "CATCHMENT_EMBEDDER": settings.embedder,
        "CATCHMENT_LOG_LEVEL": "error",
        "CATCHMENT_SECRET_KEY": secrets.token_urlsafe(32),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "workers", env=env, stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def _measure(db: Database, texts: list[str], settings: Settings) -> Figures:
    async with db.routing_session() as session:
        made = await tenancy.open_mandate(
            session, "bench", "Bench", email="bench@localhost", owner_name="Bench"
        )
    mandate_id, user_id = made.mandate.mandate_id, made.owner_id
    blobs = BlobStore.of(settings)
    requests = [
        IngestionRequest.model_validate(
            {"sourceKind": "paste", "sourceId": f"d{number}", "content": {"text": text}, "userId": user_id}
        )
        for number, text in enumerate(texts)
    ]
    await _hand_in(db, mandate_id, requests[:1], blobs)  # the worker is up and warm when this one is done
    await _wait(db, mandate_id)
    before = await _count(db, mandate_id)
    began = time.monotonic()
    await _hand_in(db, mandate_id, requests[1:], blobs)
    await _wait(db, mandate_id)
    seconds = time.monotonic() - began
    chunks = await _count(db, mandate_id) - before
    began = time.monotonic()
    await _hand_in(db, mandate_id, requests[1:], blobs)
    return Figures(len(requests) - 1, chunks, seconds, time.monotonic() - began)


async def _hand_in(
    db: Database, mandate_id: UUID, requests: list[IngestionRequest], blobs: BlobStore
) -> None:
    for start in range(0, len(requests), BATCH):
        async with db.tenant_session(mandate_id) as session:
            await request_ingestions(session, requests[start : start + BATCH], blobs=blobs)


async def _wait(db: Database, mandate_id: UUID) -> None:
    while True:
        async with db.tenant_session(mandate_id) as session:
            if not await repository.live_jobs(session):
                return
        await asyncio.sleep(0.02)


async def _count(db: Database, mandate_id: UUID) -> int:
    async with db.tenant_session(mandate_id) as session:
        return await repository.indexed_chunks(session)
