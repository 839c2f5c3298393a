"""PDF by pdfium: one unit per page, and for any part of it the boxes on the page.

pdfium gives each page as UTF-16 with CR LF line ends and U+FFFE where a hyphen broke a word at a line's end; the kept
text has line feeds and whole words, and the hyphens that belong to their words. The page's region remembers which of pdfium's characters each kept one is.
Coordinates are PDF points, origin at the bottom left, before the page's rotation, as pdfium and the file count them.
pdfium is not safe in threads and aborts when memory ends: this runs in a child process only.
"""

import ctypes
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from math import pi
from operator import itemgetter
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import SEPARATOR, Extracted, OffsetMap, Run, Unit
from workers.pipeline.formats import picture
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.pdf_layout import in_reading_order
from workers.pipeline.formats.pdf_notes import notes_of
from workers.pipeline.formats.pdf_region import (
    Box,
    Document,
    KeptLine,
    PageRegion,
    joined,
    rectangles,
    turned,
)
from workers.pipeline.formats.pdf_rows import Line

_MOST_PAGES = 20_000
_MOST_BOOKMARKS = 5_000
_MOST_SCANS = 50
_SCAN_SCALE = 200 / 72  # dots per inch that OCR likes
_LINE = re.compile(r"[^\r\n]+")
_LINES_ASKED = 20
_WORD_BREAKS = re.compile("[\ufffe\x02]")
# What follows the hyphen of a word that is said in full only later: Nord- und Ostsee.
_AND = re.compile(r"(?:und|oder|bzw|sowie|and|or|et|ou|y|o|e)\b")
_LEFTWARD = re.compile("[\u0590-\u08ff]")  # Hebrew, Arabic and their like
_LETTERS_BEFORE = re.compile(r"[^\W\d_]*$")
_LETTERS = re.compile(r"[^\W\d_]*")
_LONGEST_WORD = 60
_PASSWORD = 4

Indices = range | list[int]


# One page that says one word.
_SMALLEST = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 31>>stream
BT /F 9 Tf 9 9 Td (Water) Tj ET
endstream endobj 5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj trailer<</Root 1 0 R>>
"""


def prepare() -> None:
    """Each file has a child of its own: what the library does once is done before they are forked."""
    read(Source(_SMALLEST, "application/pdf"))


def read(source: Source) -> Extracted:
    document = _open(source)
    count = len(document.pdf)
    if count > _MOST_PAGES:
        raise TaskFailed("too_large", f"{count} pages")
    headings = _headings(document.pdf)
    pieces: list[str] = []
    units: list[Unit] = []
    warnings: list[str] = []
    length, heading, scans = 0, "", 0
    for index in range(count):
        heading = headings.get(index, heading)
        try:
            text, region, box, rotation = _page(document, index)
            notes = _notes(document, index)
        except (pdfium.PdfiumError, OSError) as error:
            warnings.append(f"page {index + 1} could not be read ({type(error).__name__})")
            continue
        if not text and _is_scan(document, index):
            scans += 1
            text, region = _recognised(document, index, scans), None
        locator = {"kind": "pdf", "page": index + 1, "pageBox": box, "rotation": rotation}
        for words, place in filter(itemgetter(0), ((text, region), notes)):
            pieces.append(SEPARATOR if pieces else "")
            length += len(pieces[-1])
            units.append(Unit("page", length, length + len(words), locator, heading, region=place))
            pieces.append(words)
            length += len(words)
    if not units and len(warnings) == count:
        raise TaskFailed("damaged", "no page could be read")
    if scans and not units:
        raise TaskFailed("needs_ocr", f"{scans} scanned pages and no OCR engine")
    if scans and picture.engine() is None:
        warnings.append(f"{scans} scanned pages were left out: no OCR engine is installed")
    return Extracted("".join(pieces), units, count, warnings)


def _open(source: Source) -> Document:
    try:
        buffer = (ctypes.c_char * len(source.data)).from_buffer(source.data)
    except TypeError:  # not writable: bytes rather than the child's private mapping
        buffer = bytes(source.data)
    try:
        opened = pdfium.PdfDocument(buffer)
        opened.init_forms()  # else fields say nothing; does nothing where there are none
        return Document(opened)
    except pdfium.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code == _PASSWORD:
            raise TaskFailed("encrypted", "a password is needed") from error
        raise TaskFailed("damaged", f"pdfium error {code}") from error


def _is_scan(document: Document, index: int) -> bool:
    page, _ = document.open(index)
    return next(iter(page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=3)), None) is not None


def _recognised(document: Document, index: int, scans: int) -> str:
    """The words of a scanned page, where there is an engine for it and the file does not ask for a night's work."""
    if picture.engine() is None or scans > _MOST_SCANS:
        return ""
    page, _ = document.open(index)
    image = io.BytesIO()
    page.render(scale=_SCAN_SCALE).to_pil().save(image, "PNG")
    return plain.clean(picture.recognise(image.getvalue()))


def _page(document: Document, index: int) -> tuple[str, PageRegion, list[float], int]:
    page, textpage = document.open(index)
    raw = _raw_text(textpage)
    characters = _character_indices(textpage, raw)
    box = [round(edge, 2) for edge in page.get_cropbox()]
    rotation = int(page.get_rotation())
    spans = list(_line_spans(raw))
    angle = _angle(textpage, characters, spans)
    lines = [
        Line(start, end, turned(rectangles(textpage, characters[start], characters[end - 1] + 1), angle))
        for start, end in spans
    ]
    lines = in_reading_order(
        lines,
        lambda start, end: _edges(textpage, characters, start, end, angle),
        left_first=not _LEFTWARD.search(raw),
    )
    text, runs, kept_lines = _keep(raw, characters, lines, angle)
    region = PageRegion(document, index, OffsetMap(runs), kept_lines)
    return text, region, box, rotation


def _notes(document: Document, index: int) -> tuple[str, PageRegion]:
    """Filled-in fields and comments, a line each."""
    page, _ = document.open(index)
    lines: list[KeptLine] = []
    pieces: list[str] = []
    length = 0
    for words, box in notes_of(document.pdf, page):
        lines.append((length, length + len(words), [box]))
        pieces.append(words)
        length += len(words) + 1
    return "\n".join(pieces), PageRegion(document, index, OffsetMap([]), lines)


def _raw_text(textpage: Any) -> str:
    """The page's text in one call; the helper of the same purpose recurses once per character it skips."""
    count = pdfium_c.FPDFText_CountChars(textpage)
    if count <= 0:
        return ""
    buffer = (ctypes.c_ushort * (count + 1))()
    written = pdfium_c.FPDFText_GetText(textpage, 0, count, buffer)
    return bytes(memoryview(buffer)[: max(0, written - 1)]).decode("utf-16-le", "replace")


def _character_indices(textpage: Any, raw: str) -> Indices:
    """Pdfium's index of each character of `raw`: nearly always the same number, not for skipped or astral ones."""
    if len(raw) == pdfium_c.FPDFText_CountChars(textpage):
        return range(len(raw))
    indices: list[int] = []
    unit = 0
    for character in raw:
        index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage, unit)
        indices.append(index if index >= 0 else (indices[-1] if indices else 0))
        unit += 2 if ord(character) > 0xFFFF else 1
    return indices


def _line_spans(raw: str) -> Iterator[tuple[int, int]]:
    for found in _LINE.finditer(raw):
        line = found.group()
        start = found.start() + len(line) - len(line.lstrip())
        end = found.start() + len(line.rstrip())
        if start < end:
            yield start, end


def _angle(textpage: Any, characters: Indices, spans: Sequence[tuple[int, int]]) -> int:
    """By how much most lines are turned clockwise on the page, whatever the page itself is turned by: 0, 90, 180 or 270."""
    asked = spans[:: 1 + len(spans) // _LINES_ASKED]
    angles = Counter(
        round(pdfium_c.FPDFText_GetCharAngle(textpage, characters[start]) / (pi / 2)) % 4 * 90
        for start, _ in asked
    )
    return angles.most_common(1)[0][0] if angles else 0


def _edges(textpage: Any, characters: Indices, start: int, end: int, angle: int) -> list[tuple[float, float]]:
    """Where every character of a line begins and ends along it; only asked for lines that may span columns."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    boxes: list[Box] = []
    for position in range(start, end):
        pdfium_c.FPDFText_GetCharBox(textpage, characters[position], left, right, bottom, top)
        boxes.append((left.value, bottom.value, right.value, top.value))
    return [(box[0], box[2]) for box in turned(boxes, angle)]


def _keep(
    raw: str, characters: Indices, lines: Sequence[Line], angle: int
) -> tuple[str, list[Run], list[KeptLine]]:
    """The kept text, which of pdfium's characters it is made of, and where each line with its boxes ended up."""
    pieces: list[str] = []
    runs: list[Run] = []
    kept_lines: list[KeptLine] = []
    length = 0
    for line in lines:
        if pieces:
            pieces.append(line.before)
            length += len(line.before)
        began, position = length, line.start
        line_end = line.start + len(raw[line.start : line.end].rstrip())
        for broken in [*_WORD_BREAKS.finditer(raw, line.start, line_end), None]:
            end = broken.start() if broken else line_end
            hyphen = _hyphen(raw, end) if broken else ""
            for low, high in _linear(characters, position, end + len(hyphen[:1])):
                kept = length + low - position
                runs.append(Run(kept, kept + high - low, characters[low], characters[low] + high - low))
            pieces.append(plain.clean(raw[position:end]) + hyphen)
            length += end - position + len(hyphen)
            position = broken.end() if broken else end
        kept_lines.append((began, length, turned(joined(line.boxes), -angle)))
    return "".join(pieces), runs, kept_lines


def _hyphen(raw: str, at: int) -> str:
    """What of the hyphen at a line's end belongs to the word: nothing where it only broke it. COVID-19, E-Mail and
    Nord- und Ostsee keep theirs; a word all in capitals goes on in capitals and may be a broken one.
    """
    rest = raw[at + 1 : at + 1 + _LONGEST_WORD]
    if _AND.match(rest):
        return "- "
    before = _LETTERS_BEFORE.search(raw[max(0, at - _LONGEST_WORD) : at])
    after = _LETTERS.match(rest)
    words = [found[0] if found else "" for found in (before, after)]
    if all(len(word) > 1 and word.isupper() for word in words):
        return ""
    return "-" if rest[:1].isdigit() or rest[:1].isupper() or raw[at - 1].isdigit() else ""


def _linear(characters: Indices, start: int, end: int) -> Iterator[tuple[int, int]]:
    """[start, end) in stretches over which pdfium's indices rise one by one."""
    if isinstance(characters, range):
        if start < end:
            yield start, end
        return
    while start < end:
        stop = start + 1
        while stop < end and characters[stop] == characters[stop - 1] + 1:
            stop += 1
        yield start, stop
        start = stop


def _headings(document: pdfium.PdfDocument) -> dict[int, str]:
    """Page → path of the last bookmark that points at it."""
    found: dict[int, str] = {}
    titles: list[str] = []
    for bookmark in islice(document.get_toc(), _MOST_BOOKMARKS):
        destination = bookmark.get_dest()
        page = destination.get_index() if destination else None
        title = plain.clean(" ".join((bookmark.get_title() or "").split()))[:200]
        titles = [*titles[: bookmark.level], title]
        if page is not None:
            found[page] = " > ".join(part for part in titles if part)
    return found
