"""Word, Excel and PowerPoint files for the demo tenants, the same bytes every time. The libraries come with the first file."""

import io
import re
import zipfile
from collections.abc import Sequence
from typing import Any, cast

_EPOCH = (2026, 1, 1, 0, 0, 0)
_STAMP = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*(</dcterms)")
MIME = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}


def word(title: str, paragraphs: Sequence[str], table: Sequence[Sequence[str]] = ()) -> bytes:
    import docx  # noqa: PLC0415

    document = docx.Document()
    document.add_heading(title, level=1)
    for text in paragraphs:
        document.add_paragraph(text)
    if table:
        grid = document.add_table(rows=0, cols=len(table[0]))
        for row in table:
            for cell, text in zip(grid.add_row().cells, row, strict=True):
                cell.text = text
    out = io.BytesIO()
    document.save(out)
    return _timeless(out.getvalue())


def sheet(tables: dict[str, Sequence[Sequence[object]]]) -> bytes:
    import openpyxl  # noqa: PLC0415

    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in tables.items():
        page = book.create_sheet(name)
        for row in rows:
            page.append(list(row))
    out = io.BytesIO()
    book.save(out)
    return _timeless(out.getvalue())


def slides(pages: Sequence[tuple[str, str, str]]) -> bytes:
    """Each with title, text and notes."""
    import pptx  # noqa: PLC0415

    show = pptx.Presentation()
    for title, text, notes in pages:
        slide = show.slides.add_slide(show.slide_layouts[1])
        for shape, words in zip(slide.placeholders, (title, text), strict=True):
            cast("Any", shape).text_frame.text = words
        frame = slide.notes_slide.notes_text_frame
        if frame is not None:
            frame.text = notes
    out = io.BytesIO()
    show.save(out)
    return _timeless(out.getvalue())


def _timeless(package: bytes) -> bytes:
    """The same parts without the moment they were packed, and without the one openpyxl writes on saving."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(package)) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            data = source.read(name)
            if name == "docProps/core.xml":
                data = _STAMP.sub(rb"\g<1>2026-01-01T00:00:00Z\g<2>", data)
            target.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
