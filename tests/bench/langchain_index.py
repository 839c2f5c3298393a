"""LangChain's side of `beside_langchain.py`, run by an interpreter that has LangChain and not Catchment.

    python langchain_index.py DATABASE_URL DOCUMENTS.json WIDTH

DOCUMENTS.json is a list of documents; each is a text, which LangChain's own splitter cuts, or a list of texts already
cut. They go through `index()` with PGVector, SQLRecordManager and `scoped_full` clean-up, twice. Prints one line of JSON.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

import numpy as np
from langchain_classic.indexes import SQLRecordManager, index
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_postgres import PGVector
from langchain_text_splitters import RecursiveCharacterTextSplitter


class Lookup(Embeddings):
    """As cheap as Catchment's: four rows of a fixed table, chosen by the text's hash, summed and made one long."""

    def __init__(self, width: int) -> None:
        self._table = np.random.default_rng(0).standard_normal((1024, width), np.float32)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        digests = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
        picks = np.frombuffer(digests, "<u2").reshape(len(texts), -1)[:, :4] % 1024
        summed = self._table[picks].sum(axis=1)
        return (summed / np.linalg.norm(summed, axis=1, keepdims=True)).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def cut(documents: list[str | list[str]]) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=0)
    return [
        Document(text, metadata={"source": f"d{number}", "at": at})
        for number, document in enumerate(documents)
        for at, text in enumerate(splitter.split_text(document) if isinstance(document, str) else document)
    ]


def main() -> None:
    url, file, width = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    url = f"postgresql+psycopg://{url.partition('://')[2]}"
    documents = json.loads(file.read_text())
    store = PGVector(
        Lookup(width), connection=url, embedding_length=width, collection_name="bench", create_extension=False
    )
    records = SQLRecordManager("bench", db_url=url)
    records.create_schema()
    seconds = []
    for _ in range(2):
        began = time.monotonic()
        chunks = cut(documents)
        done = index(chunks, records, store, cleanup="scoped_full", source_id_key="source")
        seconds.append(time.monotonic() - began)
        print(done, file=sys.stderr)
    print(json.dumps({"chunks": len(chunks), "seconds": seconds[0], "unchangedSeconds": seconds[1]}))


if __name__ == "__main__":
    main()
