"""The embedder for benchmarks: deterministic, spread out, and it keeps count."""

import asyncio
import hashlib
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.embedders.lookup import LookupEmbedder

WRITER = """
import asyncio, sys
from pathlib import Path
from gateway.corpus.embedders.lookup import LookupEmbedder

embedder = LookupEmbedder(8, journal=Path(sys.argv[1]), max_batch=7)
asyncio.run(embedder.embed([f"{sys.argv[2]}-{n}" for n in range(700)]))
"""


@given(st.lists(st.text(max_size=20), max_size=8))
def test_any_texts_get_unit_vectors_that_depend_on_the_text_alone(texts: list[str]):
    embedder = LookupEmbedder(32, max_batch=3)
    vectors = asyncio.run(embedder.embed(texts))
    assert vectors.shape == (len(texts), 32)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    for text, vector in zip(texts, vectors, strict=True):
        assert (embedder._look_up([text])[0] == vector).all()


async def test_different_texts_get_different_vectors():
    vectors = await LookupEmbedder(16).embed([str(n) for n in range(20_000)])
    assert len(np.unique(vectors.round(5), axis=0)) == 20_000


async def test_the_journal_counts_what_several_processes_embed(tmp_path: Path):
    journal = tmp_path / "journal"
    writers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(journal), name)
        for name in "abc"
    ]
    assert [await writer.wait() for writer in writers] == [0, 0, 0]
    expected = [hashlib.sha256(f"{name}-{n}".encode()).hexdigest() for name in "abc" for n in range(700)]
    assert sorted(journal.read_text().splitlines()) == sorted(expected)


async def test_a_delay_is_spent_once_per_batch():
    loop = asyncio.get_running_loop()
    start = loop.time()
    await LookupEmbedder(8, delay=0.05, max_batch=2).embed(["a", "b", "c"])
    assert loop.time() - start >= 0.1


async def test_tokens_are_estimated():
    assert LookupEmbedder(8).count_tokens(["", "four letters"]) == 1 + 4
