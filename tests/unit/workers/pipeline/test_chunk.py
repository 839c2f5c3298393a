"""Chunks: offsets, coverage, hashes, determinism, and what an edit costs – for any text."""

import random
import tracemalloc
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.workers.pipeline import prose
from workers.pipeline import tokens
from workers.pipeline.chunk import Chunk, chunk, text_hash
from workers.pipeline.cuts import LARGEST
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted, Unit
from workers.pipeline.formats import code, markdown
from workers.pipeline.formats import text as plain

HARD_MAXIMUM = 512


def chunks_of(text: str, reader=plain, file_name: str | None = None) -> tuple[str, list[Chunk]]:
    kept = plain.clean(text)
    mime = {plain: "text/plain", markdown: "text/markdown", code: "text/x-python"}[reader]
    units = reader.units(kept, Source(b"", mime, file_name))
    return kept, list(chunk(Extracted(kept, units), language="en"))


def assert_sound(text: str, chunks: list[Chunk]) -> None:
    reached = 0
    for number, item in enumerate(chunks):
        start, end = item.locator["charStart"], item.locator["charEnd"]
        assert item.ordinal == number
        assert text[start:end] == item.text
        assert item.text.strip()
        assert item.text_hash == text_hash(item.text)
        assert tokens.exact(item.text) <= HARD_MAXIMUM
        assert reached <= start < end
        assert not text[reached:start].strip()
        reached = end
    assert not text[reached:].strip()


ODD = st.sampled_from(
    [
        "\n", "\n\n", "\r\n", " ", "\t", "\f", "\x00", "\u2028", "\x85", "a", "word ", "# Title\n", "## Sub\n", "| a | b |\n|---|---|\n",
        "```\ncode\n\n\nmore\n```\n", "- item\n", "> quote\n", "---\n", "[ref]: http://x\n", "e\u0301", "👩\u200d👩\u200d👧", "🇨🇭", "\ud800", "字。",
        "def f(x):\n    return x\n", "class A:\n    def m(self):\n        pass\n", "    ", "}", "x" * 700, "。" * 50, "é" * 300, " " * 400,
        "!@#$%^&*()" * 60, "ab " * 300, "\u0300" * 600, "\n" * 300,
    ]
)  # fmt: skip
ANY_TEXT = st.lists(st.one_of(ODD, st.text(max_size=40)), max_size=30).map("".join)


@pytest.mark.parametrize("reader", [plain, markdown, code])
@given(text=ANY_TEXT)
@example(text="")
@example(text="a" * 5000 + " " * 3000 + "b" * 5000)
@example(text="word " * 4000)
@example(text="人工智能是计算机科学的一个分支。它企图了解智能的实质" * 100)
@example(text="\U0001f600" * 3000)
@settings(max_examples=150, deadline=None)
def test_any_text_gives_chunks_that_reproduce_it_and_cover_it_once(reader, text):
    kept, chunks = chunks_of(text, reader)
    assert_sound(kept, chunks)
    assert chunks_of(text, reader)[1] == chunks


@given(st.randoms(use_true_random=False), st.integers(0, 20_000))
@settings(max_examples=20, deadline=None)
def test_longer_prose_keeps_to_the_budget(rng, size):
    for make in (prose.wrapped_paragraphs, prose.bare_lines, prose.long_paragraphs):
        kept, chunks = chunks_of("\n".join(make(rng, size)))
        assert_sound(kept, chunks)
        assert all(item.token_count <= LARGEST for item in chunks)


def test_a_list_of_single_words_keeps_to_the_budget():
    """Without the space before it such a word is several tokens."""
    words = ("bureaucracy", "Buddhism", "Auschwitz", "maintenance", "aircraft")
    for line in ("{}", "{} the the"):
        kept, chunks = chunks_of("\n".join(line.format(words[n % len(words)]) for n in range(3000)))
        assert_sound(kept, chunks)


def test_the_usual_chunk_is_a_few_paragraphs():
    for make in (prose.wrapped_paragraphs, prose.bare_lines, prose.long_paragraphs):
        _, chunks = chunks_of("\n".join(make(random.Random(3), 400_000)))
        sizes = sorted(item.token_count for item in chunks)
        assert 190 <= sum(sizes) / len(sizes) <= 350
        assert sizes[len(sizes) // 20] >= 100


def test_a_file_of_numbers_in_one_line_takes_a_hundred_bytes_for_each():
    numbers, rng = 100_000, random.Random(1)
    text = " ".join(str(rng.randint(1, 999)) for _ in range(numbers))
    extracted = Extracted(text, [Unit("text", 0, len(text), {"kind": "text"})])
    tokens.measure(text)  # what it remembers of words is not this text's
    tracemalloc.start()
    for _ in chunk(extracted, language="en"):
        pass
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 100 * numbers


@pytest.mark.parametrize("text", ["word " * 200_000, "base64" * 170_000, "é" * 200_000, "x" * 1_000_000])
def test_a_megabyte_without_a_line_end_is_cut_safely(text):
    kept, chunks = chunks_of(text)
    assert_sound(kept, chunks)
    assert len(chunks) > 300


def test_no_cut_splits_a_letter_from_its_marks():
    letters = ["e\u0301", "👩\u200d👩\u200d👧", "👍\U0001f3fd", "🇨🇭", "ก\u0e33", "x"]
    _, chunks = chunks_of("".join(random.Random(1).choices(letters, k=8000)))
    assert len(chunks) > 20
    for item in chunks:
        assert not unicodedata.combining(item.text[0])
        assert item.text[0] not in "\u200d\U0001f3fd"
        assert not item.text.endswith("\u200d")


def test_the_hash_is_of_the_normalised_text_alone():
    assert text_hash("Zu\u0308rich") == text_hash("Zürich")
    assert text_hash("Zürich") != text_hash("zürich")
    paragraph = "\n".join(prose.wrapped_paragraphs(random.Random(8), 1200))
    alone = {item.text_hash for item in chunks_of(paragraph)[1]}
    under_a_heading = chunks_of(
        f"# Somewhere else\n\n{'Filler. ' * 400}\n\n## Here\n\n{paragraph}", markdown
    )[1]
    assert alone & {item.text_hash for item in under_a_heading} or len(alone) == 1


def test_units_marked_as_parts_never_share_a_chunk():
    text = "one\ftwo\fthree"
    units = [Unit("page", 0, 3, {"kind": "pdf", "page": 1}), Unit("page", 4, 7, {"kind": "pdf", "page": 2})]
    units.append(Unit("page", 8, 13, {"kind": "pdf", "page": 3}))
    chunks = list(chunk(Extracted(text, units), language="en"))
    assert [(c.text, c.locator["page"]) for c in chunks] == [("one", 1), ("two", 2), ("three", 3)]


def edited(rng: random.Random, lines: list[str], new_line: str) -> list[str]:
    position = rng.randrange(len(lines))
    change = rng.choice(["replace", "insert", "delete"])
    if change == "replace":
        return [*lines[:position], new_line, *lines[position + 1 :]]
    if change == "insert":
        return [*lines[:position], new_line, *lines[position:]]
    return lines[:position] + lines[position + 1 :]


SHAPES = [prose.wrapped_paragraphs, prose.bare_lines, prose.long_paragraphs]


@pytest.mark.parametrize("make", SHAPES)
@pytest.mark.parametrize(("size", "edits"), [(1_300_000, 10), (40_000, 300)])
def test_an_edited_line_changes_two_chunks_on_average_and_never_more_than_four(make, size, edits, capsys):
    rng = random.Random(f"{make.__name__}{size}")
    lines = make(rng, size)
    before = {item.text_hash for item in chunks_of("\n".join(lines))[1]}
    changed: list[int] = []
    for _ in range(edits):
        new_line = prose.sentence(rng) if make is prose.long_paragraphs else prose.line(rng)
        after = {item.text_hash for item in chunks_of("\n".join(edited(rng, lines, new_line)))[1]}
        changed.append(len(after - before))
    with capsys.disabled():
        mean, most = sum(changed) / edits, max(changed)
        print(
            f"\n{make.__name__} of {size:,}: {edits} edits of {len(before)} chunks, mean {mean:.2f}, most {most}"
        )
    assert sum(changed) / edits <= 2
    assert max(changed) <= 4


def test_an_edit_in_a_long_line_moves_only_the_cuts_beside_it():
    rng = random.Random(12)
    words = rng.choices(prose.WORDS, k=30_000)
    letters = "".join(rng.choices("ACGT", k=120_000))
    words_before = {item.text_hash for item in chunks_of(" ".join(words))[1]}
    letters_before = {item.text_hash for item in chunks_of(letters)[1]}
    for _ in range(5):
        position = rng.randrange(len(words))
        changed = {c.text_hash for c in chunks_of(" ".join([*words[:position], "new", *words[position:]]))[1]}
        assert len(changed - words_before) <= 4
        position = rng.randrange(len(letters))
        changed = {c.text_hash for c in chunks_of(letters[:position] + "N" + letters[position:])[1]}
        assert len(changed - letters_before) <= 4


def test_a_text_that_repeats_itself_is_cut_evenly_and_stays_alike():
    lines = ["the same line again and again"] * 20_000
    before = {item.text_hash for item in chunks_of("\n".join(lines))[1]}
    assert len(before) <= 4
    lines.insert(9_000, "something else")
    kept, chunks = chunks_of("\n".join(lines))
    assert_sound(kept, chunks)
    assert len({item.text_hash for item in chunks} - before) <= 4
