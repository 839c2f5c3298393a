"""Search as a whole, measured on two public collections: through the database, not beside it.

The collections lie beside the repository (`../shared/data`) or where CATCHMENT_COLLECTIONS says. Without them the
tests fail: a quality figure nobody measured is not one.
"""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import bm25s
import pytest
import Stemmer

from gateway.corpus import benchmarks
from gateway.corpus.benchmarks import METHODS, Instance, answer_with, bench_retrieval, load_passages
from gateway.corpus.evaluation import Collection, load_collection, ndcg, summary
from gateway.corpus.lexical.bm25 import K1, B
from gateway.db import Database
from tests.fixtures.stores import DatabaseUrls
from tests.fixtures.tenants import make_mandate
from tests.integration.corpus.searching import wordllama

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
REPOSITORY = Path(__file__).parents[3]
COLLECTIONS = Path(os.environ.get("CATCHMENT_COLLECTIONS", REPOSITORY.parent / "shared" / "data"))


def collection_of(name: str) -> Collection:
    whole = load_collection(COLLECTIONS / name)
    if FULL:
        return whole
    # Every third question; the whole set in full acceptance.
    some = dict(list(whole.queries.items())[::3])
    return replace(
        whole, queries=some, judgements={q: whole.judgements[q] for q in some if q in whole.judgements}
    )


def reference(collection: Collection) -> float:
    """The library we are measured against, on the same text with the same stemmer."""
    stemmer = Stemmer.Stemmer("english")
    names, texts = list(collection.documents), list(collection.documents.values())
    index = bm25s.BM25(k1=K1, b=B)
    index.index(
        bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False
    )
    asked = bm25s.tokenize(
        list(collection.queries.values()), stopwords="en", stemmer=stemmer, show_progress=False
    )
    found, _ = index.retrieve(asked, k=100, show_progress=False)
    run = {q: [names[n] for n in row] for q, row in zip(collection.queries, found.tolist(), strict=True)}
    return ndcg(run, collection.judgements)


@pytest.mark.parametrize("name", ["cranfield", "cisi"])
async def test_words_alone_match_bm25s_and_both_legs_together_are_best(
    db: Database, database_urls: DatabaseUrls, name: str
) -> None:
    collection = collection_of(name)
    house = Instance(db, database_urls.owner_url, (await make_mandate(db)).id)
    names = await load_passages(house, wordllama(), collection)
    figures: dict[str, float] = {}
    for leg, method in METHODS.items():
        run = {
            query: await answer_with(house, wordllama(), asked, method, names)
            for query, asked in collection.queries.items()
        }
        figures[leg] = summary(run, collection.judgements)["ndcg@10"]
    theirs = await asyncio.to_thread(reference, collection)
    print(f"{name}: nDCG@10 {figures}, bm25s {theirs:.4f}")
    assert figures["bm25"] == pytest.approx(theirs, abs=0.01)
    assert figures["hybrid"] >= max(figures["dense"], figures["bm25"])


async def test_bench_retrieval_measures_a_collection_on_an_instance_of_its_own(tmp_path: Path) -> None:
    documents = {"d1": "Heat transfer in slabs.", "d2": "Wings in a slipstream.", "d3": ""}
    (tmp_path / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": name, "title": "", "text": text}) + "\n" for name, text in documents.items()
        )
    )
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "heat in slabs " * 100}) + "\n")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
    perfect = {"ndcg@10": 1.0, "recall@100": 1.0, "mrr": 1.0}
    told: list[str] = []
    figures = await bench_retrieval(tmp_path, embedder="wordllama", tell=told.append)
    assert figures == {"dense": perfect, "bm25": perfect, "hybrid": perfect}
    assert told


async def test_bench_search_times_every_kind_of_query_beside_the_bare_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(benchmarks, "LARGE", 200)  # so that an index is built
    figures = await benchmarks.bench_search(300, measured=3)
    assert figures.pop("chunks") == 300
    assert set(figures) == {"rare", "middling", "frequent", "mixed"}
    for kind in figures.values():
        assert set(kind) == {"search", "bareIndex", "bareLegs"}
        assert all(0 < times["p50"] <= times["p99"] for times in kind.values())
        assert kind["bareIndex"]["p50"] <= kind["bareLegs"]["p50"]
