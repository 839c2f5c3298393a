"""The offline default: static token vectors, averaged. No network, no accelerator, thousands of texts a second.

Reads the two files inside the `wordllama` wheel itself instead of importing the package: importing it configures the
root logger, and its own `embed` pads every batch to its longest text, which is slower and takes memory without bound.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from tokenizers import Tokenizer

from gateway.corpus.embedders.protocol import (
    FREE,
    STATIC_SHARE,
    Vectors,
    estimated_tokens,
    unit_vectors,
    well_formed,
)
from gateway.errors import ConfigurationError

MODEL = "wordllama-256@1"
DIMENSIONS = 256

# The version in MODEL means these files. Other weights under the same name would mix vectors that do not compare.
_WEIGHTS = (
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
_TOKENIZER = (
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)


class WordLlamaEmbedder:
    model = MODEL
    dimensions = DIMENSIONS
    max_batch = 256
    price_per_million_tokens = FREE
    dense_share = STATIC_SHARE

    def __init__(self) -> None:
        self._weights, self._tokenizer = _load(_folder())

    async def embed(self, texts: Sequence[str]) -> Vectors:
        # Tokenising is most of the time and runs outside the interpreter lock: with one tokeniser thread each, two calls
        # do 1.6 times the work of one. The event loop was held up 4 ms at most on an idle machine, 38 ms on a busy one.
        return await asyncio.to_thread(self._embed, list(texts))

    def count_tokens(self, texts: Sequence[str]) -> int:
        return estimated_tokens(texts)

    async def aclose(self) -> None:
        return None

    def _embed(self, texts: list[str]) -> Vectors:
        sums = np.zeros((len(texts), DIMENSIONS), np.float32)
        for start in range(0, len(texts), 64):
            batch = [well_formed(text) for text in texts[start : start + 64]]
            for row, encoding in enumerate(
                self._tokenizer.encode_batch_fast(batch, add_special_tokens=False), start
            ):
                # by distinct token, so that memory is bounded by the vocabulary, not by the text
                tokens, counts = np.unique(np.asarray(encoding.ids, np.int64), return_counts=True)
                sums[row] = (self._weights[tokens] * counts[:, None].astype(np.float32)).sum(axis=0)
        return unit_vectors(sums)


def _folder() -> Path:
    package = find_spec("wordllama")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError(
            "the embedder `wordllama` needs the package wordllama 0.4: pip install wordllama"
        )
    return Path(package.submodule_search_locations[0])


@cache
def _load(folder: Path) -> tuple[NDArray[np.float32], Tokenizer]:
    """Once per process, however many embedders it makes: nobody writes to either."""
    weights: NDArray[np.float32] = load_tensors(_read(folder, *_WEIGHTS))["embedding.weight"].astype(
        np.float32
    )
    return weights, Tokenizer.from_str(_read(folder, *_TOKENIZER).decode("utf-8"))


def _read(folder: Path, name: str, sha256: str) -> bytes:
    data = (folder / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ConfigurationError(f"wordllama's {Path(name).name} is not the file that {MODEL} stands for")
    return data
