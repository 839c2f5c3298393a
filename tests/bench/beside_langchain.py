"""How fast the whole path is beside LangChain's `index()`, on one machine, in one run, turn by turn.

Once, with any index of packages that is configured (versions as in the guide: langchain 1.4.7, langchain-postgres 0.0.19):

    python3 -m venv /tmp/langchain
    /tmp/langchain/bin/pip install langchain langchain-classic langchain-postgres langchain-text-splitters "psycopg[binary]"

then

    .venv/bin/python -m tests.bench.beside_langchain /tmp/langchain/bin/python --rounds 3

Both index the same documents into a fresh embedded Postgres with the same settings and the same lookup vectors. LangChain
gets them once cut by Catchment's own chunker, so that both write the very same chunks – and its time then has no cutting in
it – and once whole, for its own splitter. Catchment's time is from the façade to the last document indexed, lexical index and
all; LangChain keeps none.
"""

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from gateway.embedded.stores import running_stores
from gateway.ingestion.benchmark import bench_ingest, make_text
from gateway.logs import configure_logs
from workers.pipeline import parsing

WIDTH, KILOBYTES = 384, 18


def cut(text: str) -> list[str]:
    """As a parser child cuts it."""
    task = {
        "mimeType": "text/plain", "fileName": None, "contentForm": "text", "language": None, "policy": {},
        "uri": None, "withAttachments": False,
    }  # fmt: skip
    header, *batches = parsing.handle(task, text.encode())  # type: ignore[arg-type]
    places = [row[0] for batch in batches for row in batch["chunks"]]
    return [header["text"][place["charStart"] : place["charEnd"]] for place in places]


def langchain(python: str, documents: list[Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as folder:
        file = Path(folder) / "documents.json"
        file.write_text(json.dumps(documents))
        with running_stores(Path(folder) / "data") as stores:
            program = Path(__file__).with_name("langchain_index.py")
            done = subprocess.run(
                [python, str(program), stores.postgres.owner_url, str(file), str(WIDTH)],
                capture_output=True, check=True, text=True,
            )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        "chunksPerSecond": found["chunks"] / found["seconds"],
        "documentsPerSecond": len(documents) / found["seconds"],
        "unchangedDocumentsPerSecond": len(documents) / found["unchangedSeconds"],
    }


def catchment(documents: int) -> dict[str, float]:
    figures = asyncio.run(bench_ingest(documents, KILOBYTES, f"lookup:{WIDTH}"))
    return {
        "chunksPerSecond": figures.chunks_per_second,
        "documentsPerSecond": figures.documents / figures.seconds,
        "unchangedDocumentsPerSecond": figures.documents / figures.unchanged_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("langchain", help="a Python interpreter that has LangChain")
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    configure_logs(log_format="json", level="error", data_dir=None)
    whole = [make_text(number, KILOBYTES) for number in range(wanted.documents)]
    same = [cut(text) for text in whole]
    rounds: list[dict[str, dict[str, float]]] = []
    for _ in range(wanted.rounds):
        one = {
            "catchment": catchment(wanted.documents),
            "langchain, same chunks": langchain(wanted.langchain, same),
            "langchain, own splitter": langchain(wanted.langchain, whole),
        }
        rounds.append(one)
        shown = {who: {name: round(rate) for name, rate in rates.items()} for who, rates in one.items()}
        print(f"load {os.getloadavg()[0]:.1f}", json.dumps(shown), flush=True)
    times = [
        one["catchment"]["chunksPerSecond"] / one["langchain, same chunks"]["chunksPerSecond"]
        for one in rounds
    ]
    print(f"times LangChain, same chunks: median {median(times):.2f} of {[round(each, 2) for each in times]}")


if __name__ == "__main__":
    main()
