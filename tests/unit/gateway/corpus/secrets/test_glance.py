"""The glance decides which looks a text gets; whatever it leaves out must be what no look would have found."""

import importlib
import random
import tracemalloc

import pytest

from gateway.corpus import secrets
from gateway.corpus.lexical.terms import _TOKEN, _analyser, count_terms  # pyright: ignore[reportPrivateUsage]
from gateway.corpus.secrets import key_blocks
from gateway.corpus.secrets.glance import EVERYTHING, KEY_BLOCKS, PIN_NAMES, SHAPES, glance, standing
from gateway.corpus.secrets.labels import ANCHORS, PINS
from gateway.corpus.secrets.structures import COOKIE, STRUCTURES

_shapes = importlib.import_module("gateway.corpus.secrets.shapes")


@pytest.mark.parametrize(
    "anchor",
    [*ANCHORS, COOKIE, *dict.fromkeys(anchor for structure in STRUCTURES for anchor in structure.anchors)],
)
def test_every_label_and_structure_is_looked_at(anchor: str):
    assert anchor in standing(glance(f"before\n{anchor.swapcase() if 'ß' not in anchor else anchor} after"))


def test_names_of_codes_and_key_blocks_are_looked_at():
    assert all(glance(f"before {name} after") & PIN_NAMES for name in PINS)
    assert all(glance(f"before\n{anchor} after") & KEY_BLOCKS for anchor in key_blocks.ANCHORS)


def test_every_shape_is_looked_at():
    for shape in _shapes.shapes():
        for anchor in shape.anchors:
            assert glance(f"see ({'a1' * 20}/{anchor}{'b2' * 20}), please") & SHAPES


def test_ordinary_words_need_no_look():
    assert not glance("The committee met on 12 May and agreed on the minutes of the last meeting.")


def test_a_large_text_is_looked_at_in_parts_that_end_between_words():
    many = "word " * 300_000
    text = f"{many}{_shapes.shapes()[0].anchors[0]}{'a1' * 20} {many}"
    tracemalloc.start()
    try:
        assert glance(text) & SHAPES
        assert tracemalloc.get_traced_memory()[1] < 10 << 20, "all words at once would take 34 MiB"
    finally:
        tracemalloc.stop()
    long_word = "x" * 300_000 + "password" + "x" * 300_000
    assert "pass" in standing(glance(f"a {long_word} b"))


def test_what_is_left_out_would_have_found_nothing(monkeypatch: pytest.MonkeyPatch):
    pieces = [
        "the minutes", "password: hunter2-XyZ9", "AKIA" + "ABCDEFGH2345JKLM", "https://me:s3cr3t-pw@host/x", "PIN: 4711",
        "Bearer " + "x9" * 20, "docker login -u me -p Tr0ub4dor", "\n", "\t", "-" * 20, "a" * 40, "seed phrase", "İstanbul",
    ]  # fmt: skip
    rng = random.Random(7)
    texts = [" ".join(rng.choices(pieces, k=rng.randrange(1, 8))) for _ in range(400)]
    found = [secrets.find_secrets(text) for text in texts]
    monkeypatch.setattr(secrets, "glance", lambda _text: EVERYTHING)
    assert found == [secrets.find_secrets(text) for text in texts]
    assert any(found)


def test_words_give_the_terms_that_tokenising_the_whole_gives():
    text = "don't e-mail ACME-4711-X, C++ or C# (snake_case, camelCase)! l'homme\u00a0a.b@c.de... x-\ty #tag naïve 3.14"
    analyser = _analyser("en")
    whole = [term for token in _TOKEN.findall(text) for term in analyser[token]]
    assert sum(count_terms(text, "en").values()) == len(whole)
    assert list(count_terms(text, "en")) == list(dict.fromkeys(whole))
