"""Notebooks (ipynb): every cell is a part of its own – prose as Markdown, code as code with lines counted in its cell."""

import json
import re
from typing import Any, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import SEPARATOR, Extracted, OffsetMap, SourceLines, newline_offsets
from workers.pipeline.formats import json_values, markdown, web
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import Draft

_MOST_CELLS = 10_000
_LONGEST_OUTPUT = 20_000  # characters; more is data, not words
_OBJECT = re.compile(r"<[\w.]+ (?:object|at 0x)[^>]*>")
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")  # colours, titles


def read(source: Source) -> Extracted:
    try:
        content: Any = json_values.parsed(plain.decode(source))
    except json.JSONDecodeError:
        return json_values.read(source)  # kept as the text it is
    cells = _cells(content)
    if cells is None:
        extracted = json_values.read(source)
        extracted.warnings.append("no cells of a notebook: read as JSON")
        return extracted
    if len(cells) > _MOST_CELLS:
        raise TaskFailed("too_large", f"{len(cells)} cells")
    language = _language(content)
    draft = Draft({"kind": "text"})
    for number, cell in enumerate(cells, start=1):
        if isinstance(cell, dict):
            _cell(draft, cast("dict[str, Any]", cell), number, language, source)
    return draft.finish()


def _cells(content: Any) -> list[Any] | None:
    """Of all sheets, as the third version of the format had them, or of the notebook itself."""
    if not isinstance(content, dict):
        return None
    notebook = cast("dict[str, Any]", content)
    if isinstance(notebook.get("cells"), list):
        return notebook["cells"]
    sheets = notebook.get("worksheets")
    if not isinstance(sheets, list):
        return None
    found = [
        cast("dict[str, Any]", sheet).get("cells")
        for sheet in cast("list[Any]", sheets)
        if isinstance(sheet, dict)
    ]
    return [cell for cells in found if isinstance(cells, list) for cell in cast("list[Any]", cells)]


def _language(notebook: dict[str, Any]) -> str:
    """Not every notebook says it in both places."""
    for way in (("metadata", "kernelspec", "language"), ("metadata", "language_info", "name")):
        said: Any = notebook
        for name in way:
            said = cast("dict[str, Any]", said).get(name) if isinstance(said, dict) else None
        if isinstance(said, str) and said:
            return said.lower()
    return "python"


def _cell(draft: Draft, cell: dict[str, Any], number: int, language: str, source: Source) -> None:
    text = plain.clean(_joined(cell.get("source", cell.get("input")))).strip("\n")
    if cell.get("cell_type") == "heading":  # as the third version of the format had them
        level = str(cell.get("level"))
        text = f"{'#' * (int(level) if level in set('123456') else 1)} {text}"
    if cell.get("cell_type") == "code":
        region = SourceLines(newline_offsets(text), OffsetMap.plain(len(text), 0))
        draft.code(text, language, region, path=source.file_name, cell=number)
        said: Any = cell.get("outputs")
        outputs = (
            [_output(output) for output in said if isinstance(output, dict)] if isinstance(said, list) else []
        )
        draft.part()
        said = _TERMINAL.sub("", "\n".join(filter(None, outputs)))
        draft.block(said[:_LONGEST_OUTPUT], cell=number)
        if len(said) > _LONGEST_OUTPUT:
            draft.warnings.append(f"the output of cell {number} was cut after {_LONGEST_OUTPUT} characters")
    elif text.strip():
        units = markdown.units(text, source)
        for unit in units:
            unit.region = None
        draft.part()
        draft.take(text, units, cell=number)


def _output(output: dict[str, Any]) -> str:
    data: Any = output.get("data")
    if isinstance(data, dict):
        return _shown(cast("dict[str, Any]", data))
    if output.get("output_type") in {"error", "pyerr"}:
        return f"{output.get('ename')}: {output.get('evalue')}"
    return _joined(output.get("text"))


def _shown(data: dict[str, Any]) -> str:
    """Of the versions of one output its words; where the plain one only names an object, those of another."""
    words = _joined(data.get("text/plain"))
    if words and not _OBJECT.fullmatch(words):
        return words
    if markdown_ := _joined(data.get("text/markdown")):
        return markdown_
    page = Draft({})
    try:
        web.write(page, _joined(data.get("text/html")), paths=False)
    except TaskFailed:
        return words  # a page nobody can read costs itself
    return page.finish().text.replace(SEPARATOR, "\n") or words


def _joined(source: Any) -> str:
    if isinstance(source, list):
        return "".join(str(line) for line in cast("list[Any]", source))
    return source if isinstance(source, str) else ""
