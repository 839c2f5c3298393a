"""Replacing spans of the kept text: units, lines and boxes stay right."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.pipeline.extracted import (
    PARAGRAPH,
    PART,
    SEPARATOR,
    Extracted,
    Move,
    OffsetMap,
    Run,
    SourceLines,
    Unit,
    newline_offsets,
)


class Letters:
    """A region over a known source: tells which source characters a part stands for."""

    def __init__(self, source: str, offsets: OffsetMap) -> None:
        self._source, self._offsets = source, offsets

    def locate(self, start: int, end: int) -> dict[str, str]:
        return {
            "source": "".join(self._source[low:high] for low, high in self._offsets.source_ranges(start, end))
        }

    def replaced(self, moves: list[Move]) -> "Letters":
        return Letters(self._source, self._offsets.replaced(moves))


@st.composite
def documents(draw: st.DrawFn) -> Extracted:
    texts = draw(st.lists(st.text(alphabet="abcde \n", min_size=1, max_size=12), min_size=1, max_size=5))
    touching = draw(st.booleans())
    separator = "" if touching else SEPARATOR
    units: list[Unit] = []
    position = 0
    for number, text in enumerate(texts):
        region = Letters(text, OffsetMap.plain(len(text), 0))
        level = PARAGRAPH if touching else PART
        units.append(
            Unit("block", position, position + len(text), {"number": number}, level=level, region=region)
        )
        position += len(text) + len(separator)
    return Extracted(separator.join(texts), units)


@st.composite
def replacements(draw: st.DrawFn, length: int) -> list[tuple[int, int, str]]:
    edges = sorted(draw(st.sets(st.integers(0, length), max_size=8)))
    return [
        (start, end, draw(st.text(alphabet="XYZ", max_size=5)))
        for start, end in zip(edges[0::2], edges[1::2], strict=False)
    ]


def spliced(text: str, spans: list[tuple[int, int, str]]) -> str:
    for start, end, replacement in reversed(spans):
        text = text[:start] + replacement + text[end:]
    return text


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_after_any_replacement_units_hold_what_they_held_and_know_where_it_came_from(data):
    before = data.draw(documents())
    spans = data.draw(replacements(len(before.text)))
    after = before.replace_spans(spans)

    assert after.text == spliced(before.text, spans)
    edges = [edge for unit in after.units for edge in (unit.text_start, unit.text_end)]
    assert edges == sorted(edges)
    assert all(unit.text_start < unit.text_end for unit in after.units)

    # Every kept character that was in a unit is still in the same one, and nothing else moved in but replacements.
    replaced = {position for start, end, _ in spans for position in range(start, end)}
    by_number = {unit.locator["number"]: unit for unit in after.units}
    for unit in before.units:
        kept = "".join(
            before.text[position]
            for position in range(unit.text_start, unit.text_end)
            if position not in replaced
        )
        now = by_number.get(unit.locator["number"])
        held = after.text[now.text_start : now.text_end] if now else ""
        assert "".join(character for character in held if character not in "XYZ") == kept

    # A replacement is in some unit if its span was, in part at least.
    covered = {position for unit in after.units for position in range(unit.text_start, unit.text_end)}
    shift = 0
    for start, end, replacement in spans:
        new = set(range(start + shift, start + shift + len(replacement)))
        shift += len(replacement) - (end - start)
        if any(unit.text_start < end and start < unit.text_end for unit in before.units):
            assert new <= covered

    # What was not touched still points at its own source; a replacement points at what it replaced.
    for unit in after.units:
        assert unit.region is not None
        for position in range(unit.text_start, unit.text_end):
            source = unit.region.locate(position - unit.text_start, position - unit.text_start + 1).get(
                "source"
            )
            if after.text[position] not in "XYZ":
                assert source == after.text[position]


def test_a_placeholder_points_at_the_whole_of_what_it_replaced():
    text = "write to anna@example.org today"
    unit = Unit("text", 0, len(text), {}, region=Letters(text, OffsetMap.plain(len(text), 0)))
    masked = Extracted(text, [unit]).replace_spans([(9, 25, "[mail-1]")])
    assert masked.text == "write to [mail-1] today"
    region = masked.units[0].region
    assert region is not None
    assert region.locate(9, 17) == {"source": "anna@example.org"}
    assert region.locate(10, 12) == {"source": "anna@example.org"}
    assert region.locate(17, 23) == {"source": " today"}


def test_a_placeholder_for_pieces_of_several_lines_points_at_each():
    offsets = OffsetMap([Run(0, 4, 100, 104), Run(5, 9, 40, 44)])
    masked = offsets.replaced([Move(2, 7, 2, 8)])
    assert masked.source_ranges(0, 10) == [(100, 104), (40, 44)]
    assert masked.source_ranges(2, 8) == [(102, 104), (40, 42)]
    assert masked.source_ranges(8, 10) == [(42, 44)]


def test_line_numbers_stay_those_of_the_source_when_lines_are_masked():
    text = "one\n-----BEGIN\nsecret\nEND-----\nfive\nsix\n"
    region = SourceLines(newline_offsets(text), OffsetMap.plain(len(text), 0))
    unit = Unit("code", 0, len(text), {}, region=region)
    masked = Extracted(text, [unit]).replace_spans([(4, 30, "[key]")])
    assert masked.text == "one\n[key]\nfive\nsix\n"
    after = masked.units[0].region
    assert after is not None
    assert after.locate(0, 3) == {"lineStart": 1, "lineEnd": 1}
    assert after.locate(4, 9) == {"lineStart": 2, "lineEnd": 4}
    assert after.locate(10, 18) == {"lineStart": 5, "lineEnd": 6}


@pytest.mark.parametrize("spans", [[(3, 2, "x")], [(2, 2, "x")], [(0, 3, ""), (2, 4, "")], [(0, 99, "x")]])
def test_spans_that_make_no_sense_are_refused(spans):
    with pytest.raises(ValueError, match="spans must be"):
        Extracted("some text", []).replace_spans(spans)
