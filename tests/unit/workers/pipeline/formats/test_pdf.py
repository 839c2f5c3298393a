"""PDF: pages, boxes that hold the quoted words, reading order, and files that are not well."""

import re
from itertools import pairwise

import pypdfium2 as pdfium
import pytest

from gateway.corpus.child import TaskFailed
from gateway.corpus.secrets import find_secrets
from tests.unit.workers.pipeline.formats import pdf_files
from workers.pipeline.chunk import Chunk, chunk
from workers.pipeline.extract import Source, extract, format_of
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats.pdf_layout import Line, in_reading_order
from workers.pipeline.formats.pdf_region import PageRegion


def read(data: bytes) -> Extracted:
    return extract(Source(data, "application/pdf"), format_of("application/pdf", None))


def chunks_of(extracted: Extracted) -> list[Chunk]:
    return list(chunk(extracted, language="en"))


def words_in_boxes(data: bytes, page: int, boxes: list[list[float]]) -> list[str]:
    """What a reader who knows nothing of our map finds in these boxes."""
    textpage = pdfium.PdfDocument(data)[page - 1].get_textpage()
    found = " ".join(
        textpage.get_text_bounded(left - 0.1, bottom - 0.1, right + 0.1, top + 0.1)
        for left, bottom, right, top in boxes
    )
    return found.replace("\x02", "").replace("\ufffe", "").split()


def page_texts(extracted: Extracted) -> list[str]:
    return [extracted.text[unit.text_start : unit.text_end] for unit in extracted.units]


def test_every_page_is_a_unit_and_no_chunk_crosses_one():
    data = pdf_files.book(12)
    extracted = read(data)
    assert extracted.page_count == 12
    assert [unit.locator["page"] for unit in extracted.units] == list(range(1, 13))
    for before, after in pairwise(extracted.units):
        assert extracted.text[before.text_end : after.text_start] == "\f"
    chunks = chunks_of(extracted)
    assert len(chunks) >= 12
    for item in chunks:
        unit = extracted.units[item.locator["page"] - 1]
        assert unit.text_start <= item.locator["charStart"] < item.locator["charEnd"] <= unit.text_end


def test_the_boxes_of_a_chunk_hold_exactly_its_words():
    data = pdf_files.book(8)
    extracted = read(data)
    for item in chunks_of(extracted):
        locator = item.locator
        assert locator["kind"] == "pdf"
        assert words_in_boxes(data, locator["page"], locator["boxes"]) == item.text.split()
        left, bottom, right, top = locator["bbox"]
        assert left == min(box[0] for box in locator["boxes"])
        assert top == max(box[3] for box in locator["boxes"])
        assert 0 <= left < right <= pdf_files.WIDTH
        assert 0 <= bottom < top <= pdf_files.HEIGHT
        assert locator["pageBox"] == [0, 0, pdf_files.WIDTH, pdf_files.HEIGHT]
        assert locator["rotation"] == 0


def test_any_few_words_of_a_page_have_a_box_of_their_own():
    data = pdf_files.book(1)
    extracted = read(data)
    (unit,) = extracted.units
    assert isinstance(unit.region, PageRegion)
    text = extracted.text
    for found in re.finditer(r"\w+ \w+\n?\w*", text):
        boxes = [list(box) for box in unit.region.line_boxes(found.start(), found.end())]
        assert words_in_boxes(data, 1, boxes) == found.group().split()


def test_words_broken_at_a_line_end_are_whole_again_and_keep_both_boxes():
    data = pdf_files.pdf(pdf_files.lines(["A word that is hyphen-", "ated at the end and so", "it goes on."]))
    extracted = read(data)
    assert extracted.text == "A word that is hyphenated at the end and so\nit goes on."
    (unit,) = extracted.units
    assert isinstance(unit.region, PageRegion)
    start = extracted.text.index("hyphenated")
    boxes = unit.region.line_boxes(start, start + len("hyphenated"))
    assert len(boxes) == 2
    assert words_in_boxes(data, 1, [list(boxes[0])]) == ["hyphen"]
    assert words_in_boxes(data, 1, [list(boxes[1])]) == ["ated"]


@pytest.mark.parametrize(
    ("ends", "goes_on", "whole"),
    [
        ("the disease COVID-", "19 of that year", "COVID-19"),
        ("the part AB-", "1234 of it", "AB-1234"),
        ("send it by E-", "Mail to all", "E-Mail"),
        ("all of the Rhine-", "Main area", "Rhine-Main"),
        ("on the Nord-", "und Ostsee", "Nord- und Ostsee"),
        ("la casa pre-", "y la otra", "pre- y la"),
        ("er ist unter-", "undlich", "unterundlich"),
        ("IN THE FIRST PARA-", "GRAPH OF IT", "PARAGRAPH"),
        ("the USB-", "Stick there", "USB-Stick"),
        ("pages 12-", "15 of it", "12-\n15"),
    ],
)
def test_a_hyphen_at_a_line_end_that_belongs_to_its_word_stays(ends: str, goes_on: str, whole: str):
    data = pdf_files.pdf(pdf_files.lines([ends, goes_on, "and more."]))
    extracted = read(data)
    assert whole in extracted.text
    assert extracted.text.endswith(f"{goes_on.rsplit(maxsplit=1)[-1]}\nand more.")
    (unit,) = extracted.units
    assert isinstance(unit.region, PageRegion)
    for found in re.finditer(r"[\w-]+", extracted.text):
        boxes = [list(box) for box in unit.region.line_boxes(found.start(), found.end())]
        read_again = "".join(words_in_boxes(data, 1, boxes))
        assert read_again.replace("-", "") == found.group().replace("-", "")


@pytest.mark.parametrize("order", ["by column", "interleaved", "reversed"])
def test_columns_are_read_one_after_the_other(order):
    data, expected = pdf_files.two_columns(order)
    extracted = read(data)
    assert extracted.text.split("\n") == expected
    for item in chunks_of(extracted):  # the independent reading is in the order of the stream
        assert sorted(words_in_boxes(data, 1, item.locator["boxes"])) == sorted(item.text.split())


def test_a_title_above_columns_comes_first():
    _, body = pdf_files.two_columns("interleaved")

    def draw(canvas):
        for row in range(30):
            canvas.drawString(72, 700 - 14 * row, body[row])
            canvas.drawString(322, 700 - 14 * row, body[30 + row])
        canvas.setFont("Helvetica", 20)
        canvas.drawString(72, 760, "A title that runs across the whole width of it")

    title, *rest = read(pdf_files.pdf(draw)).text.split("\n")
    assert title.startswith("A title")
    assert rest == body


def column(name: str, left: float, width: int = 38, top: float = 720) -> list[tuple[float, float, str]]:
    words = f"{name} {'word ' * 20}"
    return [(left, top - 14 * row, f"{row:02}{words}"[:width].strip()) for row in range(20)]


HEADLINE = [(72.0, 780.0, "A headline over all of the page, however it was drawn")]
FOOT = [(72.0, 40.0, "page 7 of 9")]
LEFT, RIGHT, WHOLE = column("left", 72), column("right", 322), column("whole", 72, 80)


@pytest.mark.parametrize(
    ("drawn", "read_as"),
    [
        ([RIGHT, LEFT], [LEFT, RIGHT]),
        ([HEADLINE, RIGHT, LEFT], [HEADLINE, LEFT, RIGHT]),
        ([RIGHT, FOOT, LEFT], [LEFT, RIGHT, FOOT]),
        ([LEFT, RIGHT, HEADLINE], [HEADLINE, LEFT, RIGHT]),
        ([WHOLE, HEADLINE], [HEADLINE, WHOLE]),
        ([FOOT, HEADLINE, WHOLE], [HEADLINE, WHOLE, FOOT]),
        ([FOOT, LEFT, RIGHT], [LEFT, RIGHT, FOOT]),
        ([RIGHT, HEADLINE, LEFT], [HEADLINE, LEFT, RIGHT]),
        # in order as they are: a margin beside the text, a box further down on the left
        ([column("text", 222, 60), column("margin", 72, 20)], None),
        ([column("upper", 322), column("lower", 72, 38, 420)], None),
        ([LEFT, RIGHT, FOOT], None),
    ],
)
def test_a_block_that_was_drawn_too_late_is_read_where_it_stands(drawn, read_as):
    def draw(canvas):
        for block in drawn:
            for left, top, text in block:
                canvas.drawString(left, top, text)

    data = pdf_files.pdf(draw)
    extracted = read(data)
    assert extracted.text.split("\n") == [text for block in read_as or drawn for _, _, text in block]
    for item in chunks_of(extracted):
        assert sorted(words_in_boxes(data, 1, item.locator["boxes"])) == sorted(item.text.split())


def test_where_a_script_reads_from_the_right_the_right_column_stays_first():
    lines = [
        Line(number, number + 1, [(left, top, left + 200, top + 8)])
        for number, (left, top, _) in enumerate([*RIGHT, *LEFT])
    ]
    assert in_reading_order(lines, lambda start, end: [], left_first=False) == lines
    assert in_reading_order(lines, lambda start, end: []) == [*lines[20:], *lines[:20]]


def test_rows_of_a_table_stay_rows():
    def draw(canvas):
        for row in range(20):
            for column, left in enumerate((72, 200, 330, 460)):
                canvas.drawString(left, 760 - 16 * row, f"r{row}c{column}")

    rows = read(pdf_files.pdf(draw)).text.split("\n")
    cells = [cell for row in rows for cell in row.split()]
    assert cells == [f"r{row}c{column}" for row in range(20) for column in range(4)]


_LONG = "with a description that needs more than one line in its narrow cell"


@pytest.mark.parametrize("upright", ["TOP", "MIDDLE", "BOTTOM"])
@pytest.mark.parametrize(
    ("rows", "widths"),
    [
        ([("No", "Item", "Price"), *((f"{n}", f"Part {n} {_LONG}", f"{n}.50") for n in range(1, 5))], (40, 200, 80)),
        ([("No", "Item", "Price"), *((f"{n}", f"Part {n} {_LONG * 2}", f"{n}.50") for n in range(4))], (60, 300, 80)),
        ([(f"Question {n} {_LONG}", f"Answer {n} {_LONG * 2}") for n in range(4)], (170, 260)),
        ([(f"Task {n} {_LONG}", f"Step {n} {_LONG}", f"Until {n} {_LONG}") for n in range(4)], (120, 150, 130)),
        ([("Land", "2023", "2024"), ("Perú", "", "5"), ("", "6", "9"), ("Chad", "7", "8")], (90, 60, 60)),
    ],
)  # fmt: skip
def test_a_row_of_a_table_is_one_line_also_where_its_cells_have_several(rows, widths, upright: str):
    prose = "Words before and behind the table that fill a line of the page and a part of the next one. " * 2
    data = pdf_files.written(prose, pdf_files.table(rows, widths, upright), prose)
    extracted = read(data)
    lines = extracted.text.split("\n")
    assert lines[0].startswith("Words")
    assert lines[-1].endswith("next one.")
    at = next(number for number, line in enumerate(lines) if line.startswith(rows[0][0]))
    assert lines[at : at + len(rows)] == ["\t".join(row).rstrip() for row in rows]
    (unit,) = extracted.units
    assert isinstance(unit.region, PageRegion)
    for found in re.finditer(r"\S+", extracted.text):
        boxes = [list(box) for box in unit.region.line_boxes(found.start(), found.end())]
        assert words_in_boxes(data, 1, boxes) == [found.group()]
    for item in chunks_of(extracted):
        assert sorted(words_in_boxes(data, 1, item.locator["boxes"])) == sorted(item.text.split())


def test_names_of_fields_stay_with_their_values_and_addresses_whole():
    fields = [
        ("Name:", "Anna Muster"),
        ("Date of birth:", "1980-01-01"),
        ("Town:", "Ulm"),
        ("Remark:", "none"),
    ]

    def draw(canvas):
        for number, line in enumerate(("Sender Ltd", "1 High Street", "London")):
            canvas.drawString(72, 800 - 14 * number, line)
        for number, line in enumerate(("Receiver Inc", "2 Low Road", "Boston")):
            canvas.drawString(350, 800 - 14 * number, line)
        for number, pair in enumerate(fields):
            for column, words in enumerate(pair):
                canvas.drawString(72 + 150 * column, 700 - 16 * number, words)

    assert read(pdf_files.pdf(draw)).text.split("\n") == [
        "Sender Ltd", "1 High Street", "London", "Receiver Inc", "2 Low Road", "Boston",
        *("\t".join(pair) for pair in fields),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [("Server", "User", "Password"), ("VPN", "anna", "Kx9mmQ2z"), ("WLAN", "guest", "Kx9mmQ3z")],
        [("User", "anna"), ("Password", "Kx9mmQ2z"), ("Server", "vpn.example.org")],
    ],
)
def test_a_password_in_a_table_is_told_by_its_column_or_its_row(rows):
    def draw(canvas):
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                canvas.drawString(72 + 130 * column, 780 - 16 * number, cell)

    text = read(pdf_files.pdf(draw)).text
    secrets = [text[span.start : span.end] for span in find_secrets(text)]
    assert secrets == [cell for row in rows for cell in row if cell.startswith("Kx9")]


def test_stations_of_a_life_are_rows_also_where_letters_are_low():
    stations = [
        ("2020-2024", ("Muster AG, Zurich", "Leiterin Einkauf")),
        ("2015-2020", ("Exam", "Buyer", "a")),
    ]

    def draw(canvas):
        top = 780
        for years, lines in stations:
            canvas.drawString(72, top, years)
            for line in lines:
                canvas.drawString(170, top, line)
                top -= 15
            top -= 10

    text = read(pdf_files.pdf(draw)).text
    assert text.split("\n") == [f"{years}\t{' '.join(lines)}" for years, lines in stations]


def test_a_turned_page_keeps_its_boxes_and_says_so():
    def draw(canvas):
        canvas.setPageRotation(90)
        pdf_files.lines(["Read me sideways", "if you can"])(canvas)

    data = pdf_files.pdf(draw)
    extracted = read(data)
    (item,) = chunks_of(extracted)
    assert item.locator["rotation"] == 90
    assert sorted(words_in_boxes(data, 1, item.locator["boxes"])) == sorted(item.text.split())


def test_bookmarks_become_heading_paths():
    def chapter(title: str, level: int, text: str):
        def draw(canvas):
            canvas.bookmarkPage(title)
            canvas.addOutlineEntry(title, title, level)
            pdf_files.lines([text])(canvas)

        return draw

    data = pdf_files.pdf(
        pdf_files.lines(["before"]),
        chapter("One", 0, "first"),
        chapter("Part", 1, "second"),
        pdf_files.lines(["more"]),
    )
    assert [unit.heading_path for unit in read(data).units] == ["", "One", "One > Part", "One > Part"]


def test_empty_pages_cost_nothing_and_keep_the_numbering():
    data = pdf_files.pdf(pdf_files.lines(["one"]), lambda canvas: None, pdf_files.lines(["three"]))
    extracted = read(data)
    assert extracted.page_count == 3
    assert [unit.locator["page"] for unit in extracted.units] == [1, 3]
    assert page_texts(extracted) == ["one", "three"]


def test_a_page_that_cannot_be_read_costs_that_page():
    data = pdf_files.pdf(*(pdf_files.lines([f"page {number}"]) for number in (1, 2, 3)), pageCompression=0)
    second = [found.start() for found in re.finditer(rb"/Type /Page\b(?!s)", data)][1]
    broken = data[:second] + b"/Type /Pxge" + data[second + len(b"/Type /Page") :]
    extracted = read(broken)
    assert page_texts(extracted) == ["page 1", "page 3"]
    assert extracted.warnings == ["page 2 could not be read (PdfiumError)"]


WELL = pdf_files.book(3)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf_files.encrypted(), "encrypted"),
        (b"%PDF-1.7 and nothing more", "damaged"),
        (WELL[: len(WELL) // 2], "damaged"),
        (WELL[: -len(WELL) // 20], "damaged"),
        (b"\x00" * 1000, "damaged"),
        (pdf_files.pdf(lambda canvas: canvas.rect(10, 10, 100, 100)), "no_text"),
    ],
    ids=["encrypted", "corrupt", "cut in half", "cut at the end", "zeros", "no text"],
)
def test_files_that_are_not_well_say_why(data, reason):
    with pytest.raises(TaskFailed) as caught:
        read(data)
    assert caught.value.reason == reason


def test_masked_words_keep_their_place_on_the_page():
    data = pdf_files.pdf(pdf_files.lines(["Write to anna at example", "or call her any time."]))
    extracted = read(data)
    start = extracted.text.index("anna")
    masked = extracted.replace_spans([(start, start + len("anna at example"), "[person-1]")])
    assert masked.text == "Write to [person-1]\nor call her any time."
    (unit,) = masked.units
    assert isinstance(unit.region, PageRegion)

    def words(part: str) -> list[str]:
        at = masked.text.index(part)
        return words_in_boxes(data, 1, [list(box) for box in unit.region.line_boxes(at, at + len(part))])

    assert words("[person-1]") == ["anna", "at", "example"]
    assert words("Write to") == ["Write", "to"]
    assert words("call her") == ["call", "her"]
    (item,) = chunks_of(masked)
    assert item.locator["boxes"] == chunks_of(extracted)[0].locator["boxes"]


def test_one_edited_line_changes_the_chunks_beside_it_only():
    before = {item.text_hash for item in chunks_of(read(pdf_files.book(60)))}
    assert len(before) >= 100
    for number in (30, 1500, 2970):
        edited = read(pdf_files.book(60, {number: "An entirely different line of words"}))
        after = {item.text_hash for item in chunks_of(edited)}
        assert 1 <= len(after - before) <= 4


def test_a_form_says_what_was_filled_in_and_a_comment_what_it_remarks_and_both_know_where():
    extracted = read(pdf_files.form())
    assert page_texts(extracted) == [
        "Travel expenses of the month",
        "Full name: Zoë Example\nThe receipt is missing.\nBy train: Yes",
        "place: Ulm",
    ]
    assert [unit.locator["page"] for unit in extracted.units] == [1, 1, 2]
    notes = chunks_of(extracted)[1]
    assert notes.locator["boxes"] == [[72, 700, 372, 720], [400, 650, 420, 670], [72, 600, 92, 620]]
    masked = extracted.replace_spans([(29 + 11, 29 + 22, "[person:0123abcd]")])
    name = masked.units[1].region
    assert name is not None
    assert name.locate(11, 28)["boxes"] == [[72, 700, 372, 720]]


@pytest.mark.parametrize("order", ["interleaved", "reversed"])
@pytest.mark.parametrize("angle", [90, 180, 270])
def test_columns_on_a_page_that_is_turned_are_read_in_their_order(angle: int, order: str):
    data, lines = pdf_files.two_columns(order, angle=angle)
    extracted = read(data)
    assert extracted.text.split("\n") == lines
    for item in chunks_of(extracted):
        assert words_in_boxes(data, 1, item.locator["boxes"]) == item.text.split()


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_a_table_on_its_side_keeps_its_lines_in_order(angle: int):
    rows = [f"row {number} of the table" for number in range(8)]
    assert read(pdf_files.pdf(pdf_files.lines(rows, angle=angle))).text.split("\n") == rows
