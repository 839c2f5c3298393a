"""Text that reads like text to a tokeniser and a chunker, the same for the same seed."""

import random

WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
    "have",
    "from",
    "or",
    "had",
    "an",
    "they",
    "which",
    "one",
    "you",
    "were",
    "all",
    "their",
    "there",
    "been",
    "would",
    "when",
    "if",
    "more",
    "no",
    "out",
    "so",
    "what",
    "up",
    "said",
    "who",
    "about",
    "than",
    "into",
    "them",
    "can",
    "only",
    "other",
    "new",
    "some",
    "could",
    "time",
    "these",
    "two",
    "may",
    "then",
    "do",
    "first",
    "any",
    "my",
    "now",
    "such",
    "like",
    "our",
    "over",
    "man",
    "me",
    "even",
    "most",
    "made",
    "after",
    "pressure",
    "boundary",
    "layer",
    "aircraft",
    "supersonic",
    "flow",
    "contract",
    "invoice",
    "delivery",
    "quarter",
    "revenue",
    "customer",
    "agreement",
    "temperature",
    "measurement",
    "laboratory",
    "engine",
    "schedule",
    "department",
    "responsible",
    "regulation",
    "insurance",
    "maintenance",
]


def sentence(rng: random.Random) -> str:
    words = rng.choices(WORDS, k=rng.randint(6, 22))
    if rng.random() < 0.2:
        words[rng.randrange(len(words))] = f"{rng.randint(1, 99999):,}"
    return " ".join(words).capitalize() + rng.choice(["."] * 8 + ["?", "!"])


def line(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(8, 14)))


def wrapped_paragraphs(rng: random.Random, size: int) -> list[str]:
    """Lines of hard-wrapped paragraphs with a blank line between two."""
    lines: list[str] = []
    while size > 0:
        count = rng.randint(2, 9)
        lines += [line(rng) for _ in range(count - 1)] + [line(rng) + ".", ""]
        size -= 65 * count
    return lines


def bare_lines(rng: random.Random, size: int) -> list[str]:
    """One line after the other, no blank one: an export, a log."""
    lines: list[str] = []
    while size > 0:
        lines.append(line(rng) + (rng.choice([".", ""])))
        size -= len(lines[-1]) + 1
    return lines


def long_paragraphs(rng: random.Random, size: int) -> list[str]:
    """A paragraph per line, as word processors write."""
    lines: list[str] = []
    while size > 0:
        lines += [" ".join(sentence(rng) for _ in range(rng.randint(2, 9))), ""]
        size -= len(lines[-2]) + 2
    return lines
