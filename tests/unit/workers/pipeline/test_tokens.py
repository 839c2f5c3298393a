"""The quick count against the tokeniser's own."""

import random
from pathlib import Path

import pytest

from tests.unit.workers.pipeline import prose
from workers.pipeline import tokens


def measured(text: str) -> int:
    return sum(tokens.measure(line) for line in text.split("\n"))


GERMAN = (
    "Die Bundesregierung hat am Dienstag den Entwurf eines Gesetzes über die Zuständigkeit beschlossen.\n"
    * 20
)
RUSSIAN = (
    "Искусственный интеллект представляет собой область информатики, которая занимается системами.\n" * 20
)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(prose.wrapped_paragraphs(random.Random(1), 40_000)),
        "\n".join(prose.long_paragraphs(random.Random(2), 40_000)),
        Path(tokens.__file__).read_text(),
        GERMAN,
        RUSSIAN,
    ],
    ids=["wrapped", "long", "code", "german", "russian"],
)
def test_the_measure_is_close_to_the_exact_count(text):
    assert 0.97 <= measured(text) / tokens.exact(text) <= 1.06


def test_the_measure_never_falls_far_below_the_exact_count():
    rng = random.Random(4)
    samples = [
        " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(300)),
        "".join(rng.choices("ABCDEFGHabcdefgh0123456789+/", k=3000)),
        "".join(rng.choices("人工智能是计算机科学的一个分支", k=3000)),
        "".join(rng.choices("😀🎉🚀👍", k=2500)),
        " ".join(f"{rng.randrange(10**9)}" for _ in range(300)),
        "\t".join("x" for _ in range(500)),
        "a" + " " * 5000 + "b",
    ]
    for sample in samples:
        assert tokens.measure(sample) >= 0.9 * tokens.exact(sample) - 2, sample[:40]


def test_the_measure_of_a_text_is_the_sum_over_its_lines():
    lines = prose.wrapped_paragraphs(random.Random(5), 5_000)
    together = tokens.measure("\n".join(line for line in lines if line))
    apart = sum(tokens.measure(line) for line in lines if line.strip()) or 1
    assert together == apart
