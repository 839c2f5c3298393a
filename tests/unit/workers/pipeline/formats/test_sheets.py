"""Workbooks: what a sheet shows beside and instead of the values in its cells."""

import io
import zipfile

import openpyxl
import pytest
from openpyxl.comments import Comment

from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats.number_formats import format_of
from workers.pipeline.formats.workbook_parts import WorkbookParts

_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_DRAWING = (
    '<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
    "<xdr:twoCellAnchor><xdr:from><xdr:col>2</xdr:col><xdr:row>8</xdr:row></xdr:from>"
    "<xdr:sp><xdr:txBody><a:p><a:r><a:t>Prices </a:t></a:r><a:r><a:t>rise.</a:t></a:r></a:p><a:p><a:r><a:t>Soon.</a:t></a:r></a:p>"
    "</xdr:txBody></xdr:sp></xdr:twoCellAnchor>"
    "<xdr:oneCellAnchor><xdr:from><xdr:col>0</xdr:col><xdr:row>3</xdr:row></xdr:from>"
    '<xdr:pic><xdr:nvPicPr><xdr:cNvPr id="1" name="P" descr="Curve of the prices"/></xdr:nvPicPr></xdr:pic></xdr:oneCellAnchor>'
    "</xdr:wsDr>"
)


def book(*rows: tuple[object, ...]) -> "openpyxl.Workbook":
    made = openpyxl.Workbook()
    sheet = made.active
    assert sheet is not None
    sheet.title = "Prices"
    for row in rows:
        sheet.append(row)
    return made


def saved(made: "openpyxl.Workbook", **more: str) -> bytes:
    """With more parts than openpyxl writes, by their names in the archive."""
    buffer = io.BytesIO()
    made.save(buffer)
    with zipfile.ZipFile(buffer, "a") as archive:
        for name, content in more.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def relations(**kinds: str) -> str:
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(
            f'<Relationship Id="r{kind}" Type="http://example.org/relationships/{kind}" Target="{target}"/>'
            for kind, target in kinds.items()
        )
        + "</Relationships>"
    )


def read(data: bytes) -> Extracted:
    return extract(Source(data, _XLSX), FORMATS["xlsx"])


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.256, "0.0%", "25.6%"),
        (0.07, "0%", "7%"),
        (0.07, "0.00 %", "7.00 %"),
        (0.2564, "0%", "25.64%"),  # no more is lost than nobody misses
        (1 / 3, "0.0%", "33.33%"),
        (123, "00000", "00123"),
        (-7, "000", "-007"),
        (123456789, "000\\-00\\-0000", "123-45-6789"),
        (12345678901, "000-00-0000", "12345-67-8901"),
        (41, '"A-"000', "A-041"),
        (1234.5, '"CHF" #,##0.00', "CHF 1234.50"),
        (1234.567, "#,##0.00 [$€-407]", "1234.567 €"),
        (-5, '"$"#,##0;[Red]("$"#,##0)', "$-5"),
        (12, 'General" kg"', "12 kg"),
        (19.9, "0.00", "19.90"),
        (0.1 + 0.2, "0.00", "0.30"),
    ],
)
def test_a_number_is_said_as_its_sheet_shows_it(value: float, code: str, shown: str):
    form = format_of(code)
    assert form is not None
    assert form.text(value) == shown


@pytest.mark.parametrize(
    "code",
    [
        "",
        "General",
        "0",
        "#,##0",
        "#,##0;(#,##0)",
        "0.0,",
        '0.0,,"M"',
        '[>=1000]0"k";0',
        "# ?/?",
        "0.00E+00",
        "@",
        "yyyy-mm-dd",
        "[h]:mm",
        ";;;",
        '"only words"',
    ],
)
def test_a_format_that_says_no_more_or_is_beyond_us_leaves_the_value(code: str):
    assert format_of(code) is None


def test_values_that_a_format_does_not_fit_stay_as_they_are():
    code, share = format_of("00000"), format_of("0%")
    assert code is not None
    assert share is not None
    assert [code.text(1.5), share.text(1e27), share.text(float("inf")), share.text(float("nan"))] == [""] * 4


def test_cells_with_formats_of_their_own_keep_their_place():
    made = book((), (None, "Part", "Code", "Share"), (None, "bolt", 123, 0.256), (None, "nut", 7, "none"))
    for row in ("3", "4"):
        made["Prices"][f"C{row}"].number_format = "00000"
        made["Prices"][f"D{row}"].number_format = "0.0%"
    assert read(saved(made)).text.split("\n") == [
        "Part | Code | Share",
        "Part: bolt | Code: 00123 | Share: 25.6%",
        "Part: nut | Code: 00007 | Share: none",
    ]


def test_comments_on_cells_are_read_after_their_sheet_and_know_their_cells():
    made = book(("Part", "Price"), ("bolt", 3))
    made["Prices"]["B2"].comment = Comment("Anna:\nverify this", "Anna")
    made["Prices"]["A1"].comment = Comment("As ordered", "Bo")
    made.create_sheet("Next")["A1"] = "more"
    found = read(saved(made))
    assert found.text == "Part | Price\nPart: bolt | Price: 3\fAs ordered\nAnna: verify this\fmore"
    comments = found.units[1]
    assert comments.locator == {"kind": "office", "sheet": "Prices", "section": "Comments"}
    assert comments.region is not None
    assert comments.region.locate(0, 5) == {"cellRange": "A1:A1"}
    assert comments.region.locate(12, 16) == {"cellRange": "B2:B2"}


def test_a_talk_at_a_cell_is_read_instead_of_what_older_programs_are_told():
    part = '<{0}s xmlns="http://example.org"><{0} ref="A1"><text>{1}</text></{0}>{2}</{0}s>'
    talk = part.format(
        "threadedComment", "Why?", '<threadedComment ref="A1"><text>So.</text></threadedComment>'
    )
    older = part.format("comment", "[Threaded comment] Why?", "")
    found = read(
        saved(
            book(("words",)),
            **{
                "xl/worksheets/_rels/sheet1.xml.rels": relations(
                    comments="../c.xml", threadedComment="/xl/t.xml"
                ),
                "xl/c.xml": older,
                "xl/t.xml": talk,
            },
        )
    )
    assert found.text == "words\fWhy?\nSo."


def test_boxes_and_pictures_over_a_sheet_are_read_after_it():
    drawing = {"xl/worksheets/_rels/sheet1.xml.rels": relations(drawing="../d.xml"), "xl/d.xml": _DRAWING}
    found = read(saved(book(("words",)), **drawing))
    assert found.text == "words\fCurve of the prices\nPrices rise.\nSoon."
    assert found.units[1].region is not None
    assert found.units[1].region.locate(21, 30) == {"cellRange": "C9:C9"}


def test_a_formula_without_a_result_is_told():
    found = read(saved(book(("Part", "Price"), ("bolt", 3), ("sum", "=SUM(B2:B2)"))))
    assert found.text.endswith("\nPart: sum")
    assert found.warnings == ["1 formulas have no stored result: their cells were left empty"]


@pytest.mark.parametrize(
    ("cell", "empty"),
    [
        ('<c r="A2"><f>1+1</f></c>', True),
        ('<c r="A2" s="1"><f t="shared" si="0"/><v/></c>', True),
        ('<c r="A2"><f>1+1</f><v></v></c>', True),
        ('<c r="A2"><f>1+1</f><v>2</v></c>', False),
        ('<c r="A2" t="str"><f>""</f><v></v></c>', False),
        ('<c r="A2"/>', False),
    ],
)
def test_only_what_has_no_result_counts_as_a_formula_without_one(cell: str, empty: bool):
    sheet = f'<worksheet><sheetData><row r="2">{cell}</row></sheetData></worksheet>'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
    with zipfile.ZipFile(buffer) as archive:
        assert WorkbookParts(archive).without_value == empty


def test_a_part_that_is_broken_costs_itself():
    broken = {
        "xl/worksheets/_rels/sheet1.xml.rels": relations(comments="../c.xml", drawing="../gone.xml"),
        "xl/c.xml": "<comments",
    }
    found = read(saved(book(("words",)), **broken))
    assert found.text == "words"
    assert found.warnings == ["comments, drawings or formats of cells could not be read"]
