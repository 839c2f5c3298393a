"""The measures are right on cases that can be worked out by hand."""

import json
import math
from pathlib import Path

import pytest

from gateway.corpus.evaluation import load_collection, mrr, ndcg, recall, summary

JUDGED = {"q": {"a": 2, "b": 1, "c": 0}}


def test_ndcg_discounts_by_rank_and_compares_with_the_best_order():
    ideal = 2 + 1 / math.log2(3)
    assert ndcg({"q": ["a", "b"]}, JUDGED) == pytest.approx(1)
    assert ndcg({"q": ["x", "b", "a"]}, JUDGED) == pytest.approx((1 / math.log2(3) + 2 / 2) / ideal)
    assert ndcg({"q": ["x", "a"]}, JUDGED, depth=1) == 0


def test_recall_is_the_share_of_relevant_documents_found():
    assert recall({"q": ["c", "b"]}, JUDGED) == 0.5
    assert recall({"q": ["c", "b", "a"]}, JUDGED, depth=2) == 0.5


def test_mrr_looks_at_the_first_relevant_document():
    assert mrr({"q": ["c", "x", "b", "a"]}, JUDGED) == pytest.approx(1 / 3)
    assert mrr({"q": ["c"]}, JUDGED) == 0


def test_a_query_without_an_answer_counts_zero():
    both = {**JUDGED, "r": {"a": 1}}
    assert summary({"q": ["a", "b"]}, both) == {"ndcg@10": 0.5, "recall@100": 0.5, "mrr": 0.5}


def test_a_document_returned_twice_is_not_rewarded_twice():
    assert ndcg({"q": ["b", "b", "b"]}, JUDGED) == ndcg({"q": ["b"]}, JUDGED)


def test_a_query_without_a_relevant_document_is_left_out():
    assert ndcg({"q": ["a", "b"]}, {**JUDGED, "r": {"a": 0}}) == pytest.approx(1)
    with pytest.raises(ValueError, match="nothing to measure"):
        ndcg({}, {"r": {"a": 0}})


@pytest.mark.parametrize("qrels", ["qrels.tsv", "qrels/test.tsv"])
def test_a_collection_in_beir_layout_is_read(tmp_path: Path, qrels: str):
    documents = [{"_id": "1", "title": "Wings", "text": "lift"}, {"_id": "2", "text": "drag"}]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "what lifts?"}))
    (tmp_path / "qrels").mkdir()
    (tmp_path / qrels).write_text("query-id\tcorpus-id\tscore\nq\t1\t2\nq\t2\t0\n")
    collection = load_collection(tmp_path)
    assert collection.documents == {"1": "Wings\nlift", "2": "drag"}
    assert collection.queries == {"q": "what lifts?"}
    assert collection.judgements == {"q": {"1": 2, "2": 0}}


@pytest.mark.parametrize(
    ("name", "qrels"),
    [
        ("qrels.tsv", "\ufeffquery-id\tcorpus-id\tscore\nq 1\td 1\t1.0\n\n"),
        ("qrels.tsv", "q 1\td 1\t1\r\n"),
        ("qrels/dev.tsv", "q 1\t0\td 1\t1\n"),
    ],
    ids=["mark-and-fractions", "no-heading", "trec"],
)
def test_judgements_are_read_however_they_are_written(tmp_path: Path, name: str, qrels: str):
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d 1", "text": "drag"}))
    queries = [{"_id": "q 1", "text": "what?"}, {"_id": "2", "text": "only trained with"}]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (tmp_path / "qrels").mkdir()
    (tmp_path / name).write_text(qrels, newline="")
    collection = load_collection(tmp_path)
    assert collection.judgements == {"q 1": {"d 1": 1}}
    assert collection.queries == {"q 1": "what?"}
