"""Notebooks (ipynb): every cell is a part of its own – prose as Markdown, code as code with lines counted in its cell."""

import json
from typing import Any, cast

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted, OffsetMap, SourceLines, newline_offsets
from workers.pipeline.formats import markdown
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import Draft

_MOST_CELLS = 10_000
_LONGEST_OUTPUT = 20_000  # characters; more is data, not words


def read(source: Source) -> Extracted:
    try:
        content: Any = json.loads(plain.decode(source))
    except ValueError as error:
        raise TaskFailed("damaged", "not JSON") from error
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise TaskFailed("damaged", "not a notebook")
    notebook = cast("dict[str, Any]", content)
    if len(notebook["cells"]) > _MOST_CELLS:
        raise TaskFailed("too_large", f"{len(notebook['cells'])} cells")
    language = _language(notebook)
    draft = Draft({"kind": "text"})
    for number, cell in enumerate(cast("list[Any]", notebook["cells"]), start=1):
        if isinstance(cell, dict):
            _cell(draft, cast("dict[str, Any]", cell), number, language, source)
    return draft.finish()


def _language(notebook: dict[str, Any]) -> str:
    said: Any = notebook
    for name in ("metadata", "kernelspec", "language"):
        said = cast("dict[str, Any]", said).get(name) if isinstance(said, dict) else None
    return said.lower() if isinstance(said, str) and said else "python"


def _cell(draft: Draft, cell: dict[str, Any], number: int, language: str, source: Source) -> None:
    text = plain.clean(_joined(cell.get("source"))).strip("\n")
    if cell.get("cell_type") == "code":
        region = SourceLines(newline_offsets(text), OffsetMap.plain(len(text), 0))
        draft.code(text, language, region, path=source.file_name, cell=number)
        said: Any = cell.get("outputs")
        outputs = (
            [_output(output) for output in said if isinstance(output, dict)] if isinstance(said, list) else []
        )
        draft.part()
        draft.block("\n".join(filter(None, outputs))[:_LONGEST_OUTPUT], cell=number)
    elif text.strip():
        units = markdown.units(text, source)
        for unit in units:
            unit.region = None
        draft.part()
        draft.take(text, units, cell=number)


def _output(output: dict[str, Any]) -> str:
    data: Any = output.get("data")
    if isinstance(data, dict):
        return _joined(cast("dict[str, Any]", data).get("text/plain"))
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    return _joined(output.get("text"))


def _joined(source: Any) -> str:
    if isinstance(source, list):
        return "".join(str(line) for line in cast("list[Any]", source))
    return source if isinstance(source, str) else ""
