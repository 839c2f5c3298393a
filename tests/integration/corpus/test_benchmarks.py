"""The benchmarks measure what they say, on an instance of their own; figures that count are in tests/acceptance."""

import json
from pathlib import Path

from gateway.corpus.benchmarks import bench_retrieval


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
