"""RTF: tables, headings, lists, and what stands beside the text."""

import pytest

from workers.pipeline.chunk import chunk
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_TROWD = r"\trowd\cellx1000\cellx2000 "


def read(inner: str, head: str = "") -> Extracted:
    return extract(Source(rf"{{\rtf1\ansi\ansicpg1252{head} {inner}}}".encode("cp1252"), ""), FORMATS["rtf"])


@pytest.mark.parametrize(
    "rows",
    [
        _TROWD + r"\intbl Name\cell Town\cell\row " + _TROWD + r"Ann\par and Bob\cell Ulm | Köln\cell\row",
        _TROWD + r"\pard\intbl Name\cell Town\cell " + _TROWD + r"\row Ann\par and Bob\cell Ulm | Köln\cell\row",
        r"\intbl Name\cell Town\cell " + _TROWD + r"\row\intbl Ann\par and Bob\cell Ulm | Köln\cell " + _TROWD + r"\row",
    ],
)  # fmt: skip
def test_cells_of_several_paragraphs_stay_in_their_row(rows: str):
    text = read(rf"\pard Before\par {rows}\pard After\par the table\par").text
    assert text.split("\n\n") == [
        "Before",
        "Name | Town\nName: Ann; and Bob | Town: Ulm | Köln",
        "After\nthe table",
    ]


def test_two_tables_with_words_between_are_two():
    tables = [_TROWD + rf"{a}\cell {b}\cell\row " + _TROWD + r"1\cell 2\cell\row " for a, b in ("ab", "cd")]
    text = read(rf"{tables[0]}\pard between\par {tables[1]}").text
    assert text == "a | b\na: 1 | b: 2\n\nbetween\n\nc | d\nc: 1 | d: 2"


def test_headings_are_told_by_their_style_or_say_it_themselves():
    styles = r"{\stylesheet{\s0 Normal;}{\s1\sb240{\*\x}\outlinelevel0 Chapter;}{\s2 heading 2;}{\*\cs3 heading 1;}}"
    body = (
        r"\pard\s1 Bridges\par\pard\s0 Words.\par\pard\plain\s2\b Arches\par\pard More words.\par"
        r"\pard\outlinelevel0 Tunnels\par\pard Last words.\par"
    )
    extracted = read(body, styles)
    assert [
        (unit.heading_path, extracted.text[unit.text_start : unit.text_end]) for unit in extracted.units
    ] == [
        ("Bridges", "Bridges"),
        ("Bridges", "Words."),
        ("Bridges > Arches", "Arches"),
        ("Bridges > Arches", "More words."),
        ("Tunnels", "Tunnels"),
        ("Tunnels", "Last words."),
    ]
    assert len(list(chunk(extracted, language="en"))) == 1


def test_numbers_of_a_list_that_are_stored_for_older_programs_are_read():
    assert (
        read(r"{\pntext\f0 1.\tab}{\*\pn\pnlvlbody{\pntxta.}}one\par{\listtext 2.\tab}two\par").text
        == "1.\tone\n2.\ttwo"
    )


def test_boxes_and_comments_are_read_after_the_text():
    box = r"{\shp{\*\shpinst{\sp{\sn shapeType}{\sv 202}}{\shptxt\pard In the box\par}}{\shprslt other}}"
    comment = r"{\*\atnid A}{\*\atnauthor Ann}\chatn{\*\annotation{\*\atndate 1}\pard Is it so?\par}"
    extracted = read(rf"\pard Words{box}{comment} go on.\par")
    assert extracted.text == "Words go on.\fIn the box\fIs it so?"
    assert [unit.heading_path for unit in extracted.units] == ["", "Text boxes", "Comments"]


def test_signs_of_our_own_in_a_file_are_none():
    assert (
        extract(Source("{\\rtf1\\ansi\\ansicpg65001 a\ue000b\ue001}".encode(), ""), FORMATS["rtf"]).text
        == "a\ufffdb\ufffd"
    )
