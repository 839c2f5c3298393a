"""How good and how fast search is, on a throw-away instance.

    python -m gateway.corpus.benchmarks retrieval COLLECTION
    python -m gateway.corpus.benchmarks search [--chunks N]

`bench_retrieval` measures a labelled collection (BEIR layout); each of its documents is one passage. `bench_search`
measures latency on synthetic text with the word frequencies of prose, for queries of rare, middling, frequent and
mixed words, beside the bare index query and the bare SQL and scoring of both legs, in the same run.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from psycopg import AsyncConnection

from gateway.corpus import search_repository, settlement_repository
from gateway.corpus.embedders import Embedder, build_embedder
from gateway.corpus.evaluation import Collection, load_collection, summary
from gateway.corpus.lexical.language import detect_language
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.loading import ReadyDocument, load_documents
from gateway.corpus.search import MAX_LIMIT, Member, Method, SearchQuery, answer, search
from gateway.corpus.search_repository import SETTINGS, Filters, Space, View, halfvec_literal
from gateway.corpus.shelves import Shelves
from gateway.corpus.synthetic import KINDS, SyntheticText
from gateway.db import Database, driver_url, new_id
from gateway.embedded.stores import Stores, running_stores
from gateway.logs import configure_logs
from gateway.migration import migrate
from gateway.readers import Connection
from gateway.settings import get_settings
from gateway.tenancy import service as tenancy

Tell = Callable[[str], None]

METHODS: dict[str, Method] = {"dense": "dense", "bm25": "bm25", "hybrid": "convex"}
BATCH = 2_000  # passages per store transaction, as the pipeline gathers them
SEGMENT = 10_000  # passages per lexical segment once the background has merged them
LARGE = 5_000  # from here on the settler would have built the index
MEASURED = 150  # queries per kind, after some to warm up
THROWN_AWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def silent(_line: str) -> None:
    """For callers who show nothing meanwhile."""


class Instance:
    """A database of its own with one mandate in it."""

    def __init__(self, db: Database, owner_url: str, mandate_id: UUID) -> None:
        self.db, self.owner_url, self.mandate_id = db, owner_url, mandate_id

    async def settle(self, model: str) -> None:
        """What the settler does for a large mandate."""
        async with self.db.tenant_session(self.mandate_id) as session:
            width = await settlement_repository.dimensions(session, model)
            rows = 0
            while moved := await settlement_repository.mark(session, model, settled=True, limit=SEGMENT):
                rows += moved
        async with await AsyncConnection.connect(driver_url(self.owner_url), autocommit=True) as owner:
            await settlement_repository.build_index(owner, model, width or 0, rows)
            await settlement_repository.tidy(owner)


@asynccontextmanager
async def instance() -> AsyncGenerator[Instance]:
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as folder, _stores(Path(folder)) as stores:
        await asyncio.to_thread(migrate, stores.postgres.owner_url)
        db = Database(stores.postgres.runtime_url)
        try:
            slug = f"bench-{new_id().hex}"
            async with db.routing_session() as session:
                made = await tenancy.open_mandate(
                    session, slug, "Benchmark", email="bench@example.org", owner_name="Bench"
                )
            yield Instance(db, stores.postgres.owner_url, made.mandate.mandate_id)
        finally:
            await db.dispose()


def _stores(data_dir: Path) -> AbstractContextManager[Stores]:
    data_dir.chmod(0o711)  # they may run as another user
    return running_stores(data_dir, THROWN_AWAY)


# -- quality


async def bench_retrieval(
    collection_dir: Path, *, embedder: str | None = None, tell: Tell = silent
) -> dict[str, dict[str, float]]:
    """`{"dense": {"ndcg@10", "recall@100", "mrr"}, "bm25": …, "hybrid": …}`."""
    collection = await asyncio.to_thread(load_collection, collection_dir)
    settings = get_settings()
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    built = build_embedder(embedder or settings.embedder, api_key=key, base_url=settings.openai_base_url)
    try:
        async with instance() as house:
            names = await load_passages(house, built, collection, tell)
            figures: dict[str, dict[str, float]] = {}
            for leg, method in METHODS.items():
                tell(f"{leg}: {len(collection.queries)} queries")
                run = {
                    query: await answer_with(house, built, text, method, names)
                    for query, text in collection.queries.items()
                }
                figures[leg] = summary(run, collection.judgements)
            return figures
    finally:
        await built.aclose()


async def load_passages(
    house: Instance, embedder: Embedder, collection: Collection, tell: Tell = silent
) -> dict[UUID, str]:
    """Puts the collection's documents in; returns their names by the corpus' ids."""
    items = [(name, text) for name, text in collection.documents.items() if text.strip()]
    names: dict[UUID, str] = {}
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        tell(f"loading {start + len(part)} of {len(items)}")
        vectors = [
            await embedder.embed([text for _, text in part[at : at + embedder.max_batch]])
            for at in range(0, len(part), embedder.max_batch)
        ]
        languages = await asyncio.to_thread(lambda part=part: [detect_language(text) for _, text in part])
        documents = [
            ReadyDocument(texts=[text], source_id=name, language=language)
            for (name, text), language in zip(part, languages, strict=True)
        ]
        async with house.db.tenant_session(house.mandate_id) as session:
            loaded = await load_documents(session, embedder.model, documents, np.concatenate(vectors))
        names.update(zip(loaded.document_ids, (name for name, _ in part), strict=True))
    if len(items) >= LARGE:
        tell("building the index")
        await house.settle(embedder.model)
    return names


async def answer_with(
    house: Instance, embedder: Embedder, text: str, method: Method, names: dict[UUID, str]
) -> list[str]:
    query = SearchQuery(q=text, limit=MAX_LIMIT, method=method)
    result = await answer(house.db, embedder, Member(house.mandate_id), query)
    return [names[source.document_id] for hit in result.hits for source in hit.sources]


# -- speed


async def bench_search(
    chunks: int = 100_000, *, measured: int = MEASURED, tell: Tell = silent
) -> dict[str, Any]:
    """Milliseconds, p50 and p99, per kind of query, beside bare queries of the same run."""
    synthetic = SyntheticText(seed=1)
    async with instance() as house:
        for start in range(0, chunks, SEGMENT):
            texts, vectors = await asyncio.to_thread(synthetic.passages, min(SEGMENT, chunks - start))
            documents = [
                ReadyDocument(texts=texts[at : at + 20], source_id=str(start + at))
                for at in range(0, len(texts), 20)
            ]
            async with house.db.tenant_session(house.mandate_id) as session:
                await load_documents(session, synthetic.model, documents, vectors)
            tell(f"loaded {start + len(texts)} of {chunks} chunks")
        if chunks >= LARGE:
            tell("building the index")
            await house.settle(synthetic.model)
        figures: dict[str, Any] = {"chunks": chunks}
        for kind in KINDS:
            tell(f"{kind} queries")
            warm_up = min(20, measured)
            queries = [synthetic.query(kind) for _ in range(warm_up + measured)]
            figures[kind] = await _measure(house, synthetic, queries, warm_up)
        return figures


async def _measure(
    house: Instance, embedder: Embedder, queries: Sequence[str], warm_up: int
) -> dict[str, Any]:
    """Each query in turn by `search`, and bare: so that whatever else the machine does meets all alike."""
    whole: list[float] = []
    bare: list[tuple[float, float]] = []
    shelves = Shelves()
    for number, q in enumerate(queries):
        if number % 2:  # now one first, now the other: the second meets warm pages
            bare.append(await _bare(house, embedder, shelves, q))
        began = time.perf_counter()
        await search(house.db, embedder, Member(house.mandate_id), SearchQuery(q=q))
        whole.append(time.perf_counter() - began)
        if not number % 2:
            bare.append(await _bare(house, embedder, shelves, q))
    return {
        "search": _percentiles(whole[warm_up:]),
        "bareIndex": _percentiles([index for index, _ in bare[warm_up:]]),
        "bareLegs": _percentiles([legs for _, legs in bare[warm_up:]]),
    }


async def _bare(house: Instance, embedder: Embedder, shelves: Shelves, q: str) -> tuple[float, float]:
    """Seconds for the index query alone, and for the statements and the scoring of both legs, one after the other."""
    depth = 50
    vector = (await embedder.embed([q]))[0]
    space = Space(embedder.model, embedder.dimensions, halfvec_literal(vector))
    groups = query_terms(q, ["en"])
    terms = sorted({term for group in groups for term in group})
    view = View(house.mandate_id, None, Filters())

    def timed(connection: Connection) -> tuple[float, float]:
        state = search_repository.read_state(connection, house.mandate_id, embedder.model)
        began = time.perf_counter()
        statement = search_repository.nearest_statement(
            house.mandate_id, space.model, space.dimensions, depth, "", indexed=state.share is not None
        )
        cursor = connection.execute(statement, {"query": space.query}, prepare=True, binary=True)
        cursor.fetchall()
        index = time.perf_counter() - began
        began = time.perf_counter()
        near = search_repository.nearest(connection, view, space, share=state.share, limit=depth)
        scores = shelves.read(connection, house.mandate_id, terms).score(groups, depth)
        search_repository.visible(connection, view, space, scores.best)
        search_repository.page(connection, view, [number for _, _, number in near[:10] if number])
        return index, time.perf_counter() - began

    return await house.db.read(house.mandate_id, timed, SETTINGS)


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    middle, last = np.percentile(np.array(seconds) * 1000, [50, 99])
    return {"p50": round(float(middle), 2), "p99": round(float(last), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure search on a throw-away instance.")
    commands = parser.add_subparsers(dest="command", required=True)
    retrieval = commands.add_parser("retrieval")
    retrieval.add_argument("collection", type=Path)
    retrieval.add_argument("--embedder")
    speed = commands.add_parser("search")
    speed.add_argument("--chunks", type=int, default=100_000)
    chosen = parser.parse_args()
    configure_logs(level="error")

    def tell(line: str) -> None:
        sys.stderr.write(line + "\n")

    if chosen.command == "retrieval":
        work = bench_retrieval(chosen.collection, embedder=chosen.embedder, tell=tell)
    else:
        work = bench_search(chosen.chunks, tell=tell)
    sys.stdout.write(orjson.dumps(asyncio.run(work), option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
