"""Markdown: blocks, heading paths, lines; and structure that an edit does not turn inside out."""

import random

from tests.unit.workers.pipeline import prose
from workers.pipeline.chunk import chunk
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted, Unit
from workers.pipeline.formats import markdown

TEXT = """---
title: not a heading
---

# Guide

Opening words.

## Install

```sh
# not a heading either
make
```

Details
-------

| option | meaning |
|--------|---------|
| -v     | verbose |

### Deep
Right under it.

## Use

[ref]: https://example.org
"""


def units_of(text: str) -> list[Unit]:
    return markdown.units(text, Source(b"", "text/markdown"))


def chunks_of(text: str):
    return list(chunk(Extracted(text, units_of(text)), language="en"))


def test_each_block_knows_its_headings_and_its_lines():
    found = {
        TEXT[unit.text_start : unit.text_end].split("\n", maxsplit=1)[0]: (
            unit.heading_path,
            unit.region.locate(0, 1)["lineStart"],
        )
        for unit in units_of(TEXT)
        if unit.region
    }
    assert found == {
        "---": ("", 1),
        "# Guide": ("Guide", 5),
        "Opening words.": ("Guide", 7),
        "## Install": ("Guide > Install", 9),
        "```sh": ("Guide > Install", 11),
        "Details": ("Guide > Details", 16),
        "| option | meaning |": ("Guide > Details", 19),
        "### Deep": ("Guide > Details > Deep", 23),
        "## Use": ("Guide > Use", 26),
        "[ref]: https://example.org": ("Guide > Use", 28),
    }


def test_a_chunk_carries_heading_path_and_the_lines_it_spans():
    (only,) = chunks_of(TEXT)
    assert only.locator == {
        "kind": "text", "lineStart": 1, "lineEnd": 28, "charStart": 0, "charEnd": len(TEXT) - 1
    }  # fmt: skip
    rng = random.Random(2)
    sections = [
        f"## Section {n}\n\n" + "\n".join(prose.wrapped_paragraphs(rng, 900)).strip() for n in range(6)
    ]
    text = "# Book\n\n" + "\n\n".join(sections) + "\n"
    for item in chunks_of(text):
        lines = text.split("\n")[item.locator["lineStart"] - 1 : item.locator["lineEnd"]]
        assert "\n".join(lines).strip() == item.text.strip()
        assert item.heading_path.startswith("Book")


def test_sections_of_some_size_are_not_mixed():
    rng = random.Random(6)
    sections = [
        f"## Section {n}\n\n" + "\n".join(prose.wrapped_paragraphs(rng, 1500)).strip() for n in range(20)
    ]
    for item in chunks_of("\n\n".join(sections)):
        assert item.text.count("## Section") <= 1
        if "## Section" in item.text:
            assert item.text.startswith("## Section")


def test_a_table_that_fits_is_kept_whole():
    rng = random.Random(9)
    for rows in (3, 10, 20):
        table = "| name | value |\n|---|---|\n" + "\n".join(
            f"| {prose.line(rng)[:20]} | {rng.randrange(10_000)} |" for _ in range(rows)
        )
        for lead in (60, 400, 900, 1600):
            before = "\n".join(prose.wrapped_paragraphs(rng, lead)).strip()
            after = "\n".join(prose.wrapped_paragraphs(rng, 3000)).strip()
            assert any(table in item.text for item in chunks_of(f"{before}\n\n{table}\n\n{after}\n"))


def test_deleting_a_fence_changes_the_chunks_beside_it_only():
    rng = random.Random(5)
    blocks: list[str] = []
    for _ in range(60):
        blocks += [*prose.wrapped_paragraphs(rng, 600), "```", *prose.wrapped_paragraphs(rng, 300), "```", ""]
        blocks += [f"## {prose.line(rng)[:30]}", ""]
    before = {item.text_hash for item in chunks_of("\n".join(blocks))}
    fences = [index for index, line in enumerate(blocks) if line == "```"]
    for index in rng.sample(fences, 10):
        after = {item.text_hash for item in chunks_of("\n".join(blocks[:index] + blocks[index + 1 :]))}
        assert len(after - before) <= 4


def test_hostile_markdown_is_read_in_no_time():
    for hostile in ("[" * 300_000, "> " * 100_000 + "x", "*a **a " * 100_000, "#" * 500_000, " " * 500_000):
        assert len(units_of(hostile)) <= 1


def test_pictures_written_out_in_letters_are_not_read_and_move_no_line():
    picture = "data:image/png;base64,"
    text = f"# Plan\n\nSee ![map][image1] and `{picture}abc`.\n\n[image1]: <{picture}{'iVBORw0KGgo+/' * 4000}=>\n\nLast words.\n"
    found = markdown.read(Source(text.encode(), "text/markdown"))
    assert found.text == (
        f"# Plan\n\nSee ![map][image1] and `{picture}abc`.\n\n[image1]: <{picture}…>\n\nLast words.\n"
    )
    last = found.units[-1]
    assert found.text[last.text_start : last.text_end].strip() == "Last words."
    assert last.region is not None
    assert last.region.locate(0, 5) == {"lineStart": 7, "lineEnd": 7}
