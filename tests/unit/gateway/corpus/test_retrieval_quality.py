"""The lexical leg and the fusion, measured on two public collections.

The collections lie beside the repository (`../shared/data`) or where CATCHMENT_COLLECTIONS says. Without them the
tests fail: a quality figure nobody measured is not one.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
import pytest
import Stemmer

from gateway.corpus.embedders import build_embedder
from gateway.corpus.evaluation import Collection, load_collection, ndcg
from gateway.corpus.fusion import fuse
from gateway.corpus.lexical.bm25 import K1, B, Shelf, score
from gateway.corpus.lexical.postings import Directory, build_segment
from gateway.corpus.lexical.terms import UNCOUNTED, count_terms, query_terms

REPOSITORY = Path(__file__).parents[4]
COLLECTIONS = Path(os.environ.get("CATCHMENT_COLLECTIONS", REPOSITORY.parent / "shared" / "data"))


@dataclass
class Lexical:
    """A collection indexed as the store does it, in several segments."""

    collection: Collection
    ids: list[str]
    counts: list[dict[str, int]]
    rows: dict[str, list[tuple[int, bytes]]]
    shelf: Shelf

    def search(self, query: str, languages: list[str], including: Sequence[str] = ()) -> dict[str, float]:
        asked = [self.ids.index(document) for document in including]
        found = score(query_terms(query, languages), self.rows, self.shelf, including=asked)
        numbers: list[int] = found.chunk_numbers.tolist()
        return dict(zip((self.ids[n] for n in numbers), found.scores.tolist(), strict=True))


@pytest.fixture(scope="module", params=["cranfield", "cisi"])
def lexical(request: pytest.FixtureRequest) -> Lexical:
    collection = load_collection(COLLECTIONS / request.param)
    counts = [count_terms(text, "en") for text in collection.documents.values()]
    rows: dict[str, list[tuple[int, bytes]]] = {}
    directories: dict[int, Directory] = {}
    for start in range(0, len(counts), 400):
        segment = build_segment(list(enumerate(counts))[start : start + 400])
        directories[start] = Directory(segment.directory)
        for term, row in segment.rows:
            rows.setdefault(term, []).append((start, row))
    return Lexical(collection, list(collection.documents), counts, rows, Shelf(directories))


def test_scores_equal_those_of_bm25s_on_the_same_terms(lexical: Lexical):
    def words(counts: dict[str, int]) -> list[str]:
        return [term for term, n in counts.items() if not term.startswith(UNCOUNTED) for _ in range(n)]

    reference = bm25s.BM25(k1=K1, b=B)
    reference.index([words(counts) for counts in lexical.counts], show_progress=False)
    for query in lexical.collection.queries.values():
        groups = [group for group in query_terms(query, ["en"]) if not group[0].startswith(UNCOUNTED)]
        ours = score(groups, lexical.rows, lexical.shelf, limit=len(lexical.ids))
        dense = np.zeros(len(lexical.ids))
        dense[ours.chunk_numbers] = ours.scores
        # another way to write a code, which a group may have besides, stands in none of these texts
        theirs = reference.get_scores([group[0] for group in groups])
        assert np.allclose(dense, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("languages", [["en"], ["en", "de", "fr", "es"]])
def test_the_lexical_leg_is_as_good_as_bm25s(lexical: Lexical, languages: list[str]):
    stemmer = Stemmer.Stemmer("english")
    collection = lexical.collection
    reference = bm25s.BM25(k1=K1, b=B)
    texts = list(collection.documents.values())
    reference.index(
        bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False
    )
    queries = bm25s.tokenize(
        list(collection.queries.values()), stopwords="en", stemmer=stemmer, show_progress=False
    )
    found, _ = reference.retrieve(queries, k=100, show_progress=False)
    theirs = {
        q: [lexical.ids[n] for n in row] for q, row in zip(collection.queries, found.tolist(), strict=True)
    }
    ours = {q: list(lexical.search(text, languages)) for q, text in collection.queries.items()}
    figures = ndcg(ours, collection.judgements), ndcg(theirs, collection.judgements)
    print("nDCG@10 ours {:.4f}, bm25s {:.4f}".format(*figures))
    assert figures[0] == pytest.approx(figures[1], abs=0.01)


async def test_hybrid_is_at_least_as_good_as_both_its_legs(lexical: Lexical):
    collection = lexical.collection
    embedder = build_embedder("wordllama")
    documents = await embedder.embed(list(collection.documents.values()))
    queries = await embedder.embed(list(collection.queries.values()))
    dense_run: dict[str, list[str]] = {}
    lexical_run: dict[str, list[str]] = {}
    hybrid_run: dict[str, list[str]] = {}
    for (query, text), vector in zip(collection.queries.items(), queries, strict=True):
        cosines = dict(zip(lexical.ids, (documents @ vector).tolist(), strict=True))
        dense_run[query] = sorted(cosines, key=lambda document: -cosines[document])[:100]
        lexical_run[query] = list(lexical.search(text, ["en"]))
        candidates = lexical.search(text, ["en"], including=dense_run[query])
        fused = fuse([(document, cosines[document]) for document in candidates], list(candidates.items()))
        hybrid_run[query] = [document for document, _ in fused]
    dense, bm25, hybrid = (ndcg(run, collection.judgements) for run in (dense_run, lexical_run, hybrid_run))
    print(f"nDCG@10 dense {dense:.4f}, bm25 {bm25:.4f}, hybrid {hybrid:.4f}")
    assert hybrid >= max(dense, bm25)
