"""What was put onto a PDF page without becoming part of its text: fields of a form that were filled in, and comments.

pdfium's text of a page leaves both out. A field is told with its label, for "42" alone says nothing.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from workers.pipeline.formats import text as plain
from workers.pipeline.formats.pdf_region import Box

_MOST = 2_000  # of a page
_LONGEST = 1 << 20  # bytes of one of them
_COMMENTS = {
    pdfium_c.FPDF_ANNOT_TEXT, pdfium_c.FPDF_ANNOT_FREETEXT, pdfium_c.FPDF_ANNOT_HIGHLIGHT, pdfium_c.FPDF_ANNOT_UNDERLINE,
    pdfium_c.FPDF_ANNOT_SQUIGGLY, pdfium_c.FPDF_ANNOT_STRIKEOUT, pdfium_c.FPDF_ANNOT_STAMP, pdfium_c.FPDF_ANNOT_CARET,
    pdfium_c.FPDF_ANNOT_INK, pdfium_c.FPDF_ANNOT_SQUARE, pdfium_c.FPDF_ANNOT_CIRCLE, pdfium_c.FPDF_ANNOT_LINE,
}  # fmt: skip
_UNSEEN = pdfium_c.FPDF_ANNOT_FLAG_HIDDEN | pdfium_c.FPDF_ANNOT_FLAG_NOVIEW
_TICKED = {pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON}
_FILLED = {
    pdfium_c.FPDF_FORMFIELD_TEXTFIELD,
    pdfium_c.FPDF_FORMFIELD_COMBOBOX,
    pdfium_c.FPDF_FORMFIELD_LISTBOX,
}
_PASSWORD = 1 << 13  # flag of a field


def notes_of(document: pdfium.PdfDocument, page: Any) -> list[tuple[str, Box]]:
    """The words of each, on one line, and its box; from top to bottom."""
    found: list[tuple[str, Box]] = []
    for number in range(min(pdfium_c.FPDFPage_GetAnnotCount(page), _MOST)):
        with closing(_Annotation(page, number)) as annotation:
            words = " ".join(plain.clean(_words(document.formenv, annotation)).split())
            if words:
                found.append((words, annotation.box()))
    return sorted(found, key=lambda note: (-note[1][3], note[1][0]))


class _Annotation:
    def __init__(self, page: Any, number: int) -> None:
        self.raw = pdfium_c.FPDFPage_GetAnnot(page, number)

    def close(self) -> None:
        pdfium_c.FPDFPage_CloseAnnot(self.raw)

    def box(self) -> Box:
        rect = pdfium_c.FS_RECTF()
        pdfium_c.FPDFAnnot_GetRect(self.raw, rect)
        return rect.left, rect.bottom, rect.right, rect.top


def _words(form: Any, annotation: _Annotation) -> str:
    if not annotation.raw or pdfium_c.FPDFAnnot_GetFlags(annotation.raw) & _UNSEEN:
        return ""
    kind = pdfium_c.FPDFAnnot_GetSubtype(annotation.raw)
    if kind in _COMMENTS:
        return _string(lambda *into: pdfium_c.FPDFAnnot_GetStringValue(annotation.raw, b"Contents", *into))
    return ": ".join(_field(form, annotation)) if kind == pdfium_c.FPDF_ANNOT_WIDGET and form else ""


def _field(form: Any, annotation: _Annotation) -> Iterator[str]:
    """Label and value of a field that was filled in or ticked."""
    of_field = (form, annotation.raw)
    kind = pdfium_c.FPDFAnnot_GetFormFieldType(*of_field)
    ticked = kind in _TICKED and pdfium_c.FPDFAnnot_IsChecked(*of_field)
    if not ticked and (kind not in _FILLED or pdfium_c.FPDFAnnot_GetFormFieldFlags(*of_field) & _PASSWORD):
        return
    value = _string(lambda *into: pdfium_c.FPDFAnnot_GetFormFieldValue(*of_field, *into))
    if not value.strip():
        return
    label = _string(lambda *into: pdfium_c.FPDFAnnot_GetFormFieldAlternateName(*of_field, *into))
    name = _string(lambda *into: pdfium_c.FPDFAnnot_GetFormFieldName(*of_field, *into))
    if label := label.strip() or name.rpartition(".")[2].strip():
        yield label
    yield value


def _string(ask: Callable[[Any, int], int]) -> str:
    """Pdfium says first how many bytes of UTF-16 it will write."""
    size = min(ask(None, 0), _LONGEST)
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    ask(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\x00")
