"""Word files as people really make them: forms, lists of several levels, styles that hide."""

import io

import docx
import pytest
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml

from workers.pipeline.chunk import chunk
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_W = f'xmlns:w="{_NAMESPACE}"'
_CELL = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def read(document: "docx.document.Document") -> Extracted:
    saved = io.BytesIO()
    document.save(saved)
    return extract(Source(saved.getvalue(), _DOCX), FORMATS["docx"])


def seen(document: "docx.document.Document") -> str:
    return read(document).text


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


def test_a_list_by_styles_has_the_numbers_that_word_shows():
    document = docx.Document()
    for words, style in (("a", ""), ("b", ""), ("c", " 2"), ("d", " 2"), ("e", ""), ("f", " 2")):
        document.add_paragraph(words, style=f"List Number{style}")
    # the two styles are two lists, and Word lets the inner one go on
    assert seen(document) == "1. a\n2. b\n  1. c\n  2. d\n3. e\n  3. f"
    for style in document.styles.element.findall(f".//{{{_NAMESPACE}}}numPr"):
        style.getparent().remove(style)  # by name alone
    assert seen(document) == "1. a\n2. b\n  1. c\n  2. d\n3. e\n  1. f"


def level(number: int, form: str, text: str, more: str = "") -> str:
    return f'<w:lvl w:ilvl="{number}">{more}<w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'


def lists(*kinds: str, numbers: str) -> "docx.document.Document":
    """A document with lists of these kinds, 90 and on, and numbers that are instances of them."""
    document = docx.Document()
    part = document.part.numbering_part.element
    for key, levels in enumerate(kinds, start=90):
        part.insert(0, parse_xml(f'<w:abstractNum {_W} w:abstractNumId="{key}">{levels}</w:abstractNum>'))
    for number in parse_xml(f"<w:x {_W}>{numbers}</w:x>"):
        part.append(number)
    return document


def number(key: int, kind: int, more: str = "") -> str:
    return f'<w:num w:numId="{key}"><w:abstractNumId w:val="{kind}"/>{more}</w:num>'


def add(
    document: "docx.document.Document", words: str, key: int, depth: int = 0, style: str | None = None
) -> None:
    properties = document.add_paragraph(words, style=style)._p.get_or_add_pPr()
    properties.append(parse_xml(f'<w:numPr {_W}><w:ilvl w:val="{depth}"/><w:numId w:val="{key}"/></w:numPr>'))


_CLAUSES = (
    level(0, "decimal", "§ %1", '<w:start w:val="5"/>')
    + level(1, "lowerLetter", "(%2)")
    + level(2, "decimal", "%1.%2.%3", "<w:isLgl/>")
)


def test_numbers_of_a_list_have_its_start_its_formats_and_the_text_around_them():
    document = lists(_CLAUSES, numbers=number(91, 90))
    for words, depth in (("a", 0), ("b", 1), ("c", 1), ("d", 2), ("e", 2), ("f", 0), ("g", 1), ("h", 2)):
        add(document, words, 91, depth)
    assert [line.strip() for line in seen(document).split("\n")] == [
        "§ 5 a",
        "(a) b",
        "(b) c",
        "5.2.1 d",
        "5.2.2 e",
        "§ 6 f",
        "(a) g",
        "6.1.1 h",
    ]


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("upperRoman", "IV."),
        ("lowerRoman", "iv."),
        ("upperLetter", "D."),
        ("decimalZero", "04."),
        ("ideographDigital", "4."),
        ("bullet", "-"),
    ],
)
def test_numbers_in_the_formats_of_word(form: str, shown: str):
    document = lists(level(0, form, "%1.", '<w:start w:val="4"/>'), numbers=number(91, 90))
    add(document, "words", 91)
    assert seen(document) == f"{shown} words"


def test_letters_go_on_after_the_last_one():
    document = lists(level(0, "lowerLetter", "%1)", '<w:start w:val="26"/>'), numbers=number(91, 90))
    for words in ("a", "b"):
        add(document, words, 91)
    assert seen(document) == "z) a\naa) b"


def test_lists_of_one_kind_count_together_until_one_starts_anew():
    anew = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    document = lists(
        level(0, "decimal", "%1."),
        level(0, "decimal", "%1)"),
        numbers=number(91, 90) + number(92, 90) + number(93, 90, anew) + number(94, 91),
    )
    for words, key in (("a", 91), ("b", 92), ("c", 93), ("d", 93), ("e", 94)):
        add(document, words, key)
    assert seen(document) == "1. a\n2. b\n1. c\n2. d\n1) e"


def test_a_level_that_never_restarts_goes_on():
    kind = level(0, "decimal", "%1.") + level(1, "decimal", "Table %2", '<w:lvlRestart w:val="0"/>')
    document = lists(kind, numbers=number(91, 90))
    for words, depth in (("a", 0), ("b", 1), ("c", 0), ("d", 1)):
        add(document, words, 91, depth)
    assert seen(document) == "1. a\n  Table 1 b\n2. c\n  Table 2 d"


def test_headings_and_clauses_that_a_style_numbers_say_their_number():
    kind = level(0, "upperRoman", "Part %1", '<w:pStyle w:val="Heading1"/>') + level(
        1, "decimal", "%1.%2", '<w:pStyle w:val="Clause"/>'
    )
    document = lists(kind, numbers=number(91, 90))
    clause = document.styles.add_style("Clause", 1)
    document.styles.add_style("Narrow Clause", 1).base_style = clause
    for style in (document.styles["Heading 1"], clause):
        style.element.get_or_add_pPr().append(parse_xml(f'<w:numPr {_W}><w:numId w:val="91"/></w:numPr>'))
    for words, style in (
        ("Scope", "Heading 1"),
        ("first", "Clause"),
        ("second", "Clause"),
        ("End", "Heading 1"),
        ("third", "Narrow Clause"),
    ):
        document.add_paragraph(words, style=style)
    add(document, "unnumbered", 0, style="Clause")
    found = read(document)
    assert found.text == "Part I Scope\n  I.1 first\n  I.2 second\n\nPart II End\n  II.1 third\n\nunnumbered"
    assert found.units[-1].heading_path == "Part II End"


def test_an_empty_item_counts_and_a_number_in_a_cell_is_said():
    document = lists(level(0, "decimal", "%1."), numbers=number(91, 90))
    add(document, "a", 91)
    add(document, "", 91)
    listed = f'<w:pPr><w:numPr {_W}><w:ilvl w:val="0"/><w:numId w:val="91"/></w:numPr></w:pPr>'
    rows = row("Nr", "Part") + row("", "bolt").replace("<w:p>", f"<w:p>{listed}", 1)
    document.element.body.insert(len(document.element.body) - 1, parse_xml(f"<w:tbl {_W}>{rows}</w:tbl>"))
    add(document, "b", 91)
    assert seen(document) == "1. a\n\nNr | Part\nNr: 3. | Part: bolt\n\n4. b"


def test_rows_that_word_repeats_on_every_page_are_the_head():
    head = "<w:trPr><w:tblHeader/></w:trPr>"
    years = table(row("Region", "2024", properties=head), row("North", "1"))
    assert seen(years) == "Region | 2024\nRegion: North | 2024: 1"


def test_a_passage_that_goes_on_under_other_headings_says_until_which():
    document = docx.Document()
    document.add_paragraph("Before all.")
    for title in ("Bridges", "Tunnels"):
        document.add_heading(title, 1)
        document.add_paragraph(f"About {title}.")
    (item,) = chunk(read(document), language="en")
    assert (item.locator.get("section"), item.locator["sectionEnd"]) == (None, "Tunnels")
    one = docx.Document()
    one.add_heading("Bridges", 1)
    one.add_paragraph("About bridges.")
    (item,) = chunk(read(one), language="en")
    assert item.locator["section"] == "Bridges"
    assert "sectionEnd" not in item.locator


_PAGE = "<html><body><h2>Imported</h2><p>Grüße</p></body></html>"
_MHT = (
    "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=B\r\n\r\n--B\r\nContent-Type: text/html; charset=utf-8\r\n"
    f"Content-Location: page.html\r\n\r\n{_PAGE}\r\n--B--\r\n"
)


@pytest.mark.parametrize(
    ("kind", "data", "read_as"),
    [
        ("text/html", f"<meta charset=utf-8>{_PAGE}", "Before.\n\nImported\nGrüße\n\nBehind."),
        ("message/rfc822", _MHT, "Before.\n\nImported\nGrüße\n\nBehind."),
        ("application/unknown", "words", "Before.\n\nBehind."),
    ],
)
def test_a_page_that_word_takes_in_when_it_opens_the_file_is_read(kind: str, data: str, read_as: str):
    document = docx.Document()
    before, behind = document.add_paragraph("Before."), document.add_paragraph("Behind.")
    part = Part(PackURI("/word/imported.dat"), kind, data.encode(), document.part.package)
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relation = document.part.relate_to(part, f"{relations}/aFChunk")
    before._p.addnext(parse_xml(f'<w:altChunk {_W} xmlns:r="{relations}" r:id="{relation}"/>'))
    behind._p.addnext(parse_xml(f'<w:altChunk {_W} xmlns:r="{relations}" r:id="rId99"/>'))
    assert seen(document) == read_as


_MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def lines(*paragraphs: str) -> str:
    document = docx.Document()
    for inner in paragraphs:
        paragraph = document.add_paragraph()
        for element in parse_xml(f"<w:p {_W} {_MATH}>{inner}</w:p>"):
            paragraph._p.append(element)
    return seen(document)


def run(inner: str) -> str:
    return f"<w:r>{inner}</w:r>"


def field(kind: str, inner: str = "") -> str:
    return run(f'<w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar>')


@pytest.mark.parametrize(
    ("font", "place", "shown"),
    [
        ("Wingdings", "F0FE", "☑"),
        ("Wingdings", "F0E0", "→"),
        ("Wingdings 2", "F0A3", "☐"),
        ("Symbol", "F061", "α"),
        ("Symbol", "F0B3", "≥"),
        ("Segoe UI Symbol", "2610", "☐"),
        ("Webdings", "F061", ""),
        ("Symbol", "not a number", ""),
    ],
)
def test_a_sign_of_a_symbol_font_is_the_sign_it_shows(font: str, place: str, shown: str):
    sign = run(f'<w:sym w:font="{font}" w:char="{place}"/><w:t>x</w:t>')
    assert lines(sign) == f"{shown}x"


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('<w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox>', "☒ paid"),
        ('<w:checkBox><w:default w:val="1"/><w:checked w:val="0"/></w:checkBox>', "☐ paid"),
        ('<w:checkBox><w:default w:val="1"/></w:checkBox>', "☒ paid"),
        ('<w:ddList><w:result w:val="1"/><w:listEntry w:val="not"/><w:listEntry w:val="fully"/></w:ddList>', "fully paid"),
        ('<w:ddList><w:listEntry w:val="not"/><w:listEntry w:val="fully"/></w:ddList>', "not paid"),
        ('<w:ddList><w:result w:val="9"/></w:ddList>', " paid"),
    ],
)  # fmt: skip
def test_a_form_says_what_was_ticked_and_chosen(stored: str, shown: str):
    filled = field("begin", f"<w:ffData>{stored}</w:ffData>") + run("<w:instrText> FORM </w:instrText>")
    assert lines(f'{filled}{field("end")}<w:r><w:t xml:space="preserve"> paid</w:t></w:r>') == shown


def test_of_fields_in_fields_the_answer_is_read_that_shows():
    inner = f"{field('begin')}{run('<w:instrText>REF x</w:instrText>')}{field('separate')}{run('<w:t>unseen</w:t>')}{field('end')}"
    outer = f"{field('begin')}{run('<w:instrText>IF </w:instrText>')}{inner}{field('separate')}{run('<w:t>seen</w:t>')}{field('end')}"
    within = f"{field('begin')}{field('separate')}{run('<w:t>see </w:t>')}{inner}{field('end')}"
    assert lines(outer + run("<w:t>.</w:t>")) == "seen."
    assert lines(within) == "see unseen"


def test_a_tab_to_a_margin_parts_and_a_reading_aid_over_signs_is_none():
    ruby = "<w:ruby><w:rt><w:r><w:t>かん</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby>"
    assert lines(run("<w:t>left</w:t><w:ptab/><w:t>right</w:t>"), run(ruby)) == "left\tright\n\n漢"


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("<m:f><m:num>{a}<m:r><m:t>+1</m:t></m:r></m:num><m:den>{b}</m:den></m:f>", "(a+1)/b"),
        ("<m:sSup><m:e>{a}</m:e><m:sup>{b}</m:sup></m:sSup>", "a^b"),
        ("<m:sSubSup><m:e>{a}</m:e><m:sub>{b}</m:sub><m:sup>{a}{b}</m:sup></m:sSubSup>", "a_b^ab"),
        ("<m:rad><m:deg/><m:e>{a}</m:e></m:rad>", "√a"),
        ("<m:r><m:t>f</m:t></m:r><m:d><m:e>{a}</m:e><m:e>{b}</m:e></m:d>", "f(a|b)"),
        ('<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr><m:e>{a}</m:e></m:d>', "[a]"),
        ('<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{a}</m:sub><m:sup>{b}</m:sup><m:e>{a}</m:e></m:nary>', "∑_a^b a"),
    ],
)  # fmt: skip
def test_a_formula_says_what_stands_over_and_under(formula: str, shown: str):
    written = formula.format(a="<m:r><m:t>a</m:t></m:r>", b="<m:r><m:t>b</m:t></m:r>")
    assert lines(f"<m:oMath>{written}</m:oMath>") == shown
