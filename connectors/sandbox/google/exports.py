"""Google's own documents as files of other formats. The same text always gives the same bytes."""

import csv
import io
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

APPS = "application/vnd.google-apps"
FOLDER, SHORTCUT = f"{APPS}.folder", f"{APPS}.shortcut"
DOCUMENT, SPREADSHEET, PRESENTATION = f"{APPS}.document", f"{APPS}.spreadsheet", f"{APPS}.presentation"
OFFICE = "application/vnd.openxmlformats-officedocument"
DOCX = f"{OFFICE}.wordprocessingml.document"
XLSX = f"{OFFICE}.spreadsheetml.sheet"
PPTX = f"{OFFICE}.presentationml.presentation"
LIMIT = 10 * 1024 * 1024

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def _packed(data: bytes) -> bytes:
    """The same archive with one date for all: what the libraries write carries the time of writing."""
    kept = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as read,
        zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as written,
    ):
        for entry in read.infolist():
            written.writestr(zipfile.ZipInfo(entry.filename, (2026, 1, 1, 0, 0, 0)), read.read(entry))
    return kept.getvalue()


def _document(text: str) -> bytes:
    import docx  # noqa: PLC0415 - a demo that starts does not wait for libraries nobody asked for yet

    document = docx.Document()
    document.core_properties.created = document.core_properties.modified = _EPOCH
    for line in text.splitlines():
        if line.startswith("# "):
            document.add_heading(line[2:], level=1)
        elif line.strip():
            document.add_paragraph(line)
    kept = io.BytesIO()
    document.save(kept)
    return _packed(kept.getvalue())


def _spreadsheet(text: str) -> bytes:
    import openpyxl  # noqa: PLC0415

    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = "Sheet1"
    for row in csv.reader(io.StringIO(text)):
        sheet.append(row)
    book.properties.created = book.properties.modified = _EPOCH.replace(tzinfo=None)
    kept = io.BytesIO()
    book.save(kept)
    # The writer stamps the time of saving over what was set.
    return _packed(_restamped(kept.getvalue()))


def _restamped(data: bytes) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as read, zipfile.ZipFile(kept, "w") as written:
        for entry in read.infolist():
            body = read.read(entry)
            if entry.filename == "docProps/core.xml":
                body = b'<?xml version="1.0"?><cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"/>'
            written.writestr(entry, body)
    return kept.getvalue()


def _presentation(text: str) -> bytes:
    import pptx  # noqa: PLC0415

    deck = pptx.Presentation()
    deck.core_properties.created = deck.core_properties.modified = _EPOCH
    for page in text.split("\n\n"):
        title, _, body = page.partition("\n")
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        shapes = slide.shapes
        if shapes.title is not None:
            shapes.title.text = title.removeprefix("# ")
        cast("Any", slide.placeholders[1]).text = body
    kept = io.BytesIO()
    deck.save(kept)
    return _packed(kept.getvalue())


def _plain(text: str) -> bytes:
    return text.encode()


Writer = Callable[[str], bytes]
FORMATS: dict[str, dict[str, Writer]] = {
    DOCUMENT: {DOCX: _document, "text/plain": _plain, "text/markdown": _plain},
    SPREADSHEET: {XLSX: _spreadsheet, "text/csv": _plain},
    PRESENTATION: {PPTX: _presentation, "text/plain": _plain},
}
# Pictures and layout weigh only where a format keeps them.
WEIGHED = (DOCX, XLSX, PPTX)
