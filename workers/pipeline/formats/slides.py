"""Slides by python-pptx: one unit per slide, its title as heading, then its speaker notes and readers' comments.

Groups are opened, tables become rows, charts say their title, series and categories, SmartArt its words, pictures
what is said about them for those who cannot see them.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - a compiled module without stubs
from pptx import Presentation
from pptx.exc import PythonPptxError

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.drawings import alternative_text, drawn_words
from workers.pipeline.formats.hardened import parse_xml
from workers.pipeline.formats.slide_text import paragraphs_of
from workers.pipeline.formats.strict import as_usual
from workers.pipeline.formats.tables import lines_of
from workers.pipeline.zip_guard import check_zip

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_DEEPEST_GROUP = 20
_MOST_SLIDES = 10_000


def read(source: Source) -> Extracted:
    check_zip(source.data)
    try:
        presentation = Presentation(as_usual(source))
        slides = list(presentation.slides)
    except (PythonPptxError, etree.XMLSyntaxError, KeyError, ValueError, AttributeError) as error:
        raise TaskFailed("damaged", f"not a slide deck ({type(error).__name__})") from error
    if len(slides) > _MOST_SLIDES:
        raise TaskFailed("too_large", f"{len(slides)} slides")
    draft = Draft({"kind": "office"})
    for number, slide in enumerate(slides, start=1):
        _unwrap(slide.shapes.element)
        title = slide.shapes.title
        heading = title.text_frame.text if title is not None and title.has_text_frame else ""
        draft.part(heading)
        blocks = [block for shape in slide.shapes for block in _shape(shape, slide, 0)]
        draft.block("\n\n".join(block for block in blocks if block.strip()), unit="page", slide=number)
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and notes.text.strip():
            draft.part(heading)
            draft.block(notes.text, unit="page", slide=number, section="Notes")
        if comments := list(_comments(slide)):
            draft.part(heading)
            draft.lines(comments, slide=number, section="Comments")
    return draft.finish(len(slides))


def _unwrap(tree: Any) -> None:
    """Shapes with something new in them, a formula say, are stored a second time for older programs; the new one stays."""
    for versions in list(tree.iter(f"{_MC}AlternateContent")):
        newest = versions.find(f"{_MC}Choice")
        if versions.getparent().tag in {f"{_P}spTree", f"{_P}grpSp"} and newest is not None:
            for shape in list(newest):
                versions.addprevious(shape)
            versions.getparent().remove(versions)


def _shape(shape: Any, slide: Any, depth: int) -> Iterator[str]:
    if hasattr(shape, "shapes"):
        if depth < _DEEPEST_GROUP:
            for inner in shape.shapes:
                yield from _shape(inner, slide, depth + 1)
    elif getattr(shape, "has_table", False) and shape.has_table:
        yield "\n".join(line for line in lines_of(_rows(shape.table)) if line)
    elif shape.has_text_frame:
        yield "\n".join(paragraphs_of(shape.text_frame._txBody))  # noqa: SLF001
    elif shape._element.tag == f"{_P}pic":  # noqa: SLF001
        yield alternative_text(shape._element.find(f"{_P}nvPicPr/{_P}cNvPr"))  # noqa: SLF001
    else:
        yield from drawn_words(shape._element, partial(_part, slide))  # noqa: SLF001


def _rows(table: Any) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in table._tbl.tr_lst:  # noqa: SLF001 - python-pptx makes an object per cell and looks each up again
        cells: list[str] = []
        for cell in row.tc_lst:
            if cell.get("vMerge") in {"1", "true"} and rows and len(cells) < len(rows[-1]):
                cells.append(rows[-1][len(cells)])
            elif cell.get("hMerge") in {"1", "true"}:
                cells.append("")
            else:
                body = cell.txBody
                cells.append("; ".join(paragraphs_of(body)) if body is not None else "")
        rows.append(cells)
    return rows


def _comments(slide: Any) -> Iterator[str]:
    """Of both kinds there are, with their answers. A part that is broken costs itself."""
    for relation in slide.part.rels.values():
        if relation.is_external or relation.reltype.rpartition("/")[2] != "comments":
            continue
        try:
            root = parse_xml(relation.target_part.blob)
        except TaskFailed:
            continue
        for comment in root.iter("{*}cm", "{*}reply"):
            for said in comment.iterchildren("{*}text", "{*}txBody"):
                paragraphs = list(said.iter(f"{_A}p")) or [said]
                yield " ".join(" ".join("".join(paragraph.itertext()) for paragraph in paragraphs).split())


def _part(slide: Any, relation: str) -> bytes | None:
    return slide.part.rels[relation].target_part.blob if relation in slide.part.rels else None
