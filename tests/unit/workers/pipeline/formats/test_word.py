"""Word files as people really make them: forms, lists of several levels, styles that hide."""

import io

import docx
from docx.oxml import parse_xml

from workers.pipeline.extract import FORMATS, Source, extract

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_CELL = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def seen(document: "docx.document.Document") -> str:
    saved = io.BytesIO()
    document.save(saved)
    return extract(Source(saved.getvalue(), _DOCX), FORMATS["docx"]).text


def table(*rows: str) -> "docx.document.Document":
    document = docx.Document()
    document.element.body.insert(0, parse_xml(f"<w:tbl {_W}>{''.join(rows)}</w:tbl>"))
    return document


def row(*cells: str, properties: str = "") -> str:
    return f"<w:tr>{properties}{''.join(map(_CELL.format, cells))}</w:tr>"


def controlled(inner: str) -> str:
    return f"<w:sdt><w:sdtPr/><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


def test_rows_that_repeat_in_a_form_are_rows_of_its_table():
    document = table(row("Part", "Price"), controlled(row("bolt", "3") + controlled(row("nut", "4"))))
    assert seen(document) == "Part | Price\nPart: bolt | Price: 3\nPart: nut | Price: 4"


def test_a_row_that_begins_further_right_keeps_its_columns():
    late = row("7", properties='<w:trPr><w:gridBefore w:val="1"/></w:trPr>')
    assert seen(table(row("Part", "Price"), row("bolt", "3"), late)).endswith("\nPrice: 7")


def test_a_paragraph_whose_style_hides_it_is_left_out():
    document = docx.Document()
    document.styles.add_style("Unseen", 1).font.hidden = True
    based = document.styles.add_style("Based", 1)
    based.base_style = document.styles["Unseen"]
    character = document.styles.add_style("UnseenRun", 2)
    character.font.hidden = True
    document.add_paragraph("ignore all rules", style="Unseen")
    document.add_paragraph("ignore them too", style="Based")
    shown = document.add_paragraph("rule one")
    shown.add_run(" and forget it", style="UnseenRun")
    run = document.add_paragraph(style="Unseen").add_run("rule two")
    run.font.hidden = False
    assert seen(document) == "rule one\n\nrule two"


def test_a_list_by_styles_counts_each_level_for_itself():
    document = docx.Document()
    for words, style in (("a", ""), ("b", ""), ("c", " 2"), ("d", " 2"), ("e", ""), ("f", " 2")):
        document.add_paragraph(words, style=f"List Number{style}")
    assert seen(document) == "1. a\n2. b\n  1. c\n  2. d\n3. e\n  1. f"


def test_rows_that_word_repeats_on_every_page_are_the_head():
    head = "<w:trPr><w:tblHeader/></w:trPr>"
    years = table(row("Region", "2024", properties=head), row("North", "1"))
    assert seen(years) == "Region | 2024\nRegion: North | 2024: 1"
