"""The offline default."""

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import wordllama
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.embedders.wordllama import WordLlamaEmbedder
from gateway.errors import ConfigurationError

EMBEDDER = WordLlamaEmbedder()
ODD = ["", " ", "\n\n", "\x00", "\ud800", "🙂🏽", "<s>", "\u202e", "a" * 100_000, "é́́́"]


def test_vectors_are_those_of_the_package_itself():
    reference = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = ["lift and drag", "Die Verträge\n\nund  mehr", "x = foo_bar(1)  # 東京", "<s> hello", "🙂", "a"]
    ours = asyncio.run(EMBEDDER.embed(texts))
    assert np.allclose(ours, reference.embed(texts, norm=True), atol=1e-5)


async def test_odd_texts_get_valid_and_repeatable_vectors():
    once, again = await EMBEDDER.embed(ODD), await EMBEDDER.embed(ODD)
    assert once.shape == (len(ODD), 256)
    assert once.dtype == np.float32
    assert np.isfinite(once).all()
    assert np.allclose(np.linalg.norm(once, axis=1), 1)
    assert (once == again).all()
    assert once[0].tolist() == [1.0] + [0.0] * 255  # no token, no direction: the first axis


async def test_no_texts_give_no_vectors():
    assert (await EMBEDDER.embed([])).shape == (0, 256)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_a_vector_does_not_depend_on_the_rest_of_the_batch(texts: list[str]):
    together = EMBEDDER._embed(texts)
    assert np.allclose(np.linalg.norm(together, axis=1), 1)
    for text, vector in zip(texts, together, strict=True):
        assert (EMBEDDER._embed([text])[0] == vector).all()


async def test_related_texts_are_nearer_than_unrelated_ones():
    vectors = await EMBEDDER.embed(
        ["the cat sat on the mat", "a kitten lay on a rug", "quarterly revenue fell"]
    )
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


async def test_the_event_loop_goes_on_while_texts_are_embedded():
    work = asyncio.ensure_future(EMBEDDER.embed(["some words to be embedded, " * 40] * 500))
    turns = 0
    while not work.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 5


def test_loading_it_leaves_the_root_logger_alone():
    check = (
        "import logging, sys; from gateway.corpus.embedders import build_embedder; build_embedder('wordllama');"
        "assert 'wordllama' not in sys.modules; assert not logging.getLogger().handlers"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_other_weights_under_the_same_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "wordllama"
    (package / "weights").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "weights" / "l2_supercat_256.safetensors").write_bytes(b"other")
    monkeypatch.delitem(sys.modules, "wordllama")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match="not the file"):
        WordLlamaEmbedder()


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ConfigurationError, match="pip install wordllama"):
        WordLlamaEmbedder()
