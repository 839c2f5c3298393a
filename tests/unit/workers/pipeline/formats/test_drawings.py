"""Charts and diagrams: words that a document only refers to."""

import datetime as dt
import io

import docx
import openpyxl
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from openpyxl.chart import BarChart, PieChart, Reference
from pptx import Presentation
from pptx.chart.data import CategoryChartData, ChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE

from workers.pipeline.chunk import chunk
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"


def read(document, format_name: str) -> Extracted:
    saved = io.BytesIO()
    document.save(saved)
    return extract(Source(saved.getvalue(), ""), FORMATS[format_name])


def charted(data: ChartData | XyChartData, kind: XL_CHART_TYPE = XL_CHART_TYPE.COLUMN_CLUSTERED) -> str:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide.shapes.add_chart(kind, 0, 0, 9, 9, data)
    return read(deck, "pptx").text


def series(categories: list[object], *values: float | None, code: str = "General") -> CategoryChartData:
    data = CategoryChartData(number_format=code)
    data.categories = categories
    data.add_series("Sales", values)
    return data


def test_a_value_of_a_chart_stays_with_its_category_where_others_have_none():
    assert charted(series(["Q1", "Q2", "Q3"], None, 2, 3)) == "Sales | Q2: 2 | Q3: 3"


def test_days_and_shares_of_a_chart_are_said_as_it_shows_them():
    days: list[object] = [dt.date(2026, 1, 1), dt.date(2026, 2, 1)]
    assert charted(series(days, 0.5, 0.125, code="0%")) == "Sales | 2026-01-01: 50% | 2026-02-01: 12.5%"


def test_categories_in_two_levels_say_both():
    data = CategoryChartData()
    for country, towns in (("Peru", ("Lima", "Cusco")), ("Chad", ("Abéché",))):
        outer = data.add_category(country)
        for town in towns:
            outer.add_sub_category(town)
    data.add_series("", (1, 2, 3))
    assert charted(data) == "Peru Lima: 1 | Peru Cusco: 2 | Chad Abéché: 3"


def test_points_of_a_chart_without_categories_say_both_values():
    data = XyChartData()
    points = data.add_series("Path")
    points.add_data_point(1, 2.5)
    points.add_data_point(3, 4)
    assert charted(data, XL_CHART_TYPE.XY_SCATTER) == "Path | 1: 2.5 | 3: 4"


def test_charts_and_diagrams_of_a_word_file_are_read_where_they_stand():
    chart = (
        f'<c:chartSpace xmlns:c="{_C}" xmlns:a="{_A}"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Rain </a:t></a:r><a:r><a:t>'
        "in May</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:cat><c:strRef><c:strCache>"
        '<c:pt idx="0"><c:v>Ulm</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>7'
        "</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart><c:valAx><c:title><c:tx><c:rich><a:p><a:r><a:t>mm"
        "</a:t></a:r></a:p></c:rich></c:tx></c:title></c:valAx></c:plotArea></c:chart></c:chartSpace>"
    )
    words = "".join(f"<a:p><a:r><a:t>{step}</a:t></a:r></a:p>" for step in ("Ask", "Answer"))
    diagram = f'<d:dataModel xmlns:d="{_DIAGRAM}" xmlns:a="{_A}">{words}</d:dataModel>'
    document = docx.Document()
    for number, (kind, content) in enumerate(
        (("chart", chart), ("diagramData", diagram), ("chart", "<broken"))
    ):
        name = PackURI(f"/word/drawn/{number}.xml")
        part = Part(name, "application/xml", content.encode(), document.part.package)
        relation = document.part.relate_to(part, f"{_R}/{kind}")
        drawn = f'<c:chart r:id="{relation}"/>' if kind == "chart" else f'<d:relIds r:dm="{relation}"/>'
        paragraph = document.add_paragraph(f"Before {number}.")
        names = f'xmlns:r="{_R}" xmlns:c="{_C}" xmlns:d="{_DIAGRAM}"'
        word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        drawing = f'<w:r xmlns:w="{word}" {names}><w:drawing>{drawn}</w:drawing></w:r>'
        paragraph._p.append(parse_xml(drawing))
    assert read(document, "docx").text.split("\n\n") == [
        "Before 0.",
        "Rain in May\nmm\nUlm: 7",
        "Before 1.",
        "- Ask\n- Answer",
        "Before 2.",
    ]


def test_charts_over_a_sheet_and_sheets_that_are_one_are_read():
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append([1, 2])
    values = Reference(sheet, min_col=1, min_row=1)
    pie, bars = PieChart(), BarChart()
    for chart, title in ((pie, "Regions"), (bars, "Sales by quarter")):
        chart.title = title
        chart.add_data(values)
    sheet.add_chart(pie, "E5")
    book.create_chartsheet("Chart").add_chart(bars)
    extracted = read(book, "xlsx")
    assert extracted.text.split("\f") == ["1 | 2", "Regions", "Sales by quarter"]
    places = [
        {key: item.locator.get(key) for key in ("sheet", "cellRange")}
        for item in chunk(extracted, language="en")
    ]
    assert places[1:] == [{"sheet": "Sheet", "cellRange": "E5:E5"}, {"sheet": "Chart", "cellRange": None}]
