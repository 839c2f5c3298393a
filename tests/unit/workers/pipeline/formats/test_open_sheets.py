"""Sheets of OpenDocument: what they show, and what belongs to their cells without being in them."""

import io
import zipfile

import pytest

from tests.fixtures.office_files import MANIFEST, ODS, open_document
from workers.pipeline.chunk import chunk
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_NUMBER = 'xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0"'
_CALC = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'
_TWO_PLACES = (
    '<number:number number:decimal-places="2" number:min-integer-digits="1" number:grouping="true"/>'
)
_STYLES = f"""<office:automatic-styles {_NUMBER}>
<number:percentage-style style:name="N1"><number:number number:decimal-places="1" number:min-integer-digits="1"/>
<number:text> %</number:text></number:percentage-style>
<number:currency-style style:name="N2P0">{_TWO_PLACES}<number:text> </number:text>
<number:currency-symbol>€</number:currency-symbol></number:currency-style>
<number:currency-style style:name="N2"><number:text>minus </number:text>{_TWO_PLACES}<number:text> </number:text>
<number:currency-symbol>€</number:currency-symbol>
<style:map style:condition="value()&gt;=0" style:apply-style-name="N2P0"/></number:currency-style>
<number:number-style style:name="N3"><number:number number:min-integer-digits="5"/></number:number-style>
<number:number-style style:name="N4"><number:number number:decimal-places="2" number:display-factor="1000"/></number:number-style>
<style:style style:name="share" style:family="table-cell" style:data-style-name="N1"/>
<style:style style:name="money" style:family="table-cell" style:data-style-name="N2"/>
<style:style style:name="code" style:family="table-cell" style:data-style-name="N3"/>
<style:style style:name="based" style:family="table-cell" style:parent-style-name="code"/>
<style:style style:name="thousands" style:family="table-cell" style:data-style-name="N4"/>
</office:automatic-styles>"""


def read(*rows: str, before: str = "", parts: dict[str, str] | None = None) -> Extracted:
    table = f'<table:table table:name="Sheet">{before}{"".join(rows)}</table:table>'
    content = f"{_STYLES}<office:body><office:spreadsheet {_CALC}>{table}</office:spreadsheet></office:body>"
    data = io.BytesIO(open_document(ODS, content, manifest=MANIFEST))
    with zipfile.ZipFile(data, "a") as archive:
        for name, part in (parts or {}).items():
            archive.writestr(name, part)
    return extract(Source(data.getvalue(), ODS), FORMATS["ods"])


def row(*cells: str, attributes: str = "") -> str:
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def words(text: str, attributes: str = "", more: str = "") -> str:
    return f'<table:table-cell office:value-type="string" {attributes}>{more}<text:p>{text}</text:p></table:table-cell>'


def number(value: float, style: str = "", kind: str = "float", attributes: str = "") -> str:
    said = f'table:style-name="{style}"' if style else ""
    return (
        f'<table:table-cell office:value-type="{kind}" office:value="{value}" {said} {attributes}>'
        "<text:p>as shown</text:p></table:table-cell>"
    )


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (number(0.125, "share", "percentage"), "12.5 %"),
        (number(1234.5, "money", "currency"), "1234.50 €"),
        (number(-3, "money", "currency"), "-3.00 €"),
        (number(1234, "code"), "01234"),
        (number(1234, "based"), "01234"),
        (number(1500, "thousands"), "1500"),
        (number(0.1, "nobody"), "0.1"),
    ],
)
def test_a_number_is_said_as_its_sheet_shows_it(cell: str, shown: str):
    assert read(row(words("value"), cell)).text == f"value | {shown}"


def test_formats_of_columns_and_rows_count_where_a_cell_says_none():
    columns = '<table:table-column/><table:table-column table:number-columns-repeated="2" table:default-cell-style-name="share"/>'
    assert (
        read(
            row(number(1), number(0.5, attributes='table:number-columns-repeated="2"')),
            row(
                number(7),
                number(7),
                attributes='table:default-cell-style-name="code" table:number-rows-repeated="2"',
            ),
            row(number(1), number(0.25)),
            before=columns,
        ).text
        == "1 | 50.0 % | 50.0 %\n00007 | 00007\n00007 | 00007\n1 | 25.0 %"
    )


def test_a_cell_over_several_rows_is_said_in_each():
    text = read(
        row(words("Region"), words("Year")),
        row(words("North", 'table:number-rows-spanned="2"'), words("one")),
        row("<table:covered-table-cell/>", words("two")),
    ).text
    assert text.split("\n")[1:] == ["Region: North | Year: one", "Region: North | Year: two"]


def test_comments_boxes_and_charts_are_read_after_the_sheet_and_know_their_cells():
    remark = "<office:annotation><dc:creator>Ann</dc:creator><text:p>Is it</text:p><text:p>so?</text:p></office:annotation>"
    box = "<draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame>"
    chart = '<draw:frame><draw:object xlink:href="./Object 1"/><svg:title>of rain</svg:title></draw:frame>'
    drawn = (
        '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:chart="urn:oasis:names:tc:opendocument:xmlns:chart:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
        "<chart:title><text:p>Rain in May</text:p></chart:title></office:document-content>"
    )
    extracted = read(
        row(words("a"), words("b")),
        row(words("c", more=remark), f"<table:table-cell>{chart}{box}</table:table-cell>"),
        parts={"Object 1/content.xml": drawn},
    )
    found = [
        (item.text, item.locator["cellRange"], item.locator.get("section"))
        for item in chunk(extracted, language="en")
    ]
    assert found == [
        ("a | b\na: c", "A1:B2", None),
        ("of rain\nRain in May\nboxed", "B2:B2", None),
        ("Is it so?", "A2:A2", "Comments"),
    ]


def test_a_formula_without_a_result_is_told():
    extracted = read(
        row(
            words("a"),
            '<table:table-cell table:formula="of:=1"/>',
            number(2, attributes='table:formula="of:=2"'),
        )
    )
    assert extracted.text == "a | 2"
    assert extracted.warnings == ["1 formulas have no stored result: their cells were left empty"]


def test_a_comment_on_rows_that_repeat_without_end_is_said_once():
    comment = (
        "<table:table-cell><office:annotation><text:p>said</text:p></office:annotation></table:table-cell>"
    )
    repeated = row(comment, number(1, "code"), attributes='table:number-rows-repeated="100"')
    extracted = read(row(words("a")), repeated)
    assert extracted.text == "a\n" + "\n".join(["00001"] * 100) + "\fsaid"
