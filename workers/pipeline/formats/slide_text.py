"""The paragraphs of a shape on a slide, with the marks of their lists: PowerPoint stores how they are numbered, not the numbers."""

from collections.abc import Iterator
from typing import Any

from workers.pipeline.formats.formulas import FORMULA, formula_text
from workers.pipeline.formats.numerals import LARGEST_ROMAN, in_letters, in_roman

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_DEEPEST = 8
_AROUND = {"Period": "{}.", "ParenR": "{})", "ParenBoth": "({})", "Plain": "{}"}


def paragraphs_of(body: Any) -> Iterator[str]:
    counts: dict[int, tuple[str, int]] = {}  # by level: how it is numbered, and the number reached
    for paragraph in body.iterchildren(f"{_A}p"):
        if not (text := "".join(_pieces(paragraph)).strip()):
            continue
        properties = paragraph.find(f"{_A}pPr")
        level = "0" if properties is None else properties.get("lvl", "0")
        depth = min(int(level), _DEEPEST) if level.isdecimal() else 0
        for deeper in [each for each in counts if each > depth]:
            del counts[deeper]
        mark = _mark(properties, depth, counts)
        yield f"{'  ' * depth}{mark}{' ' if mark else ''}{text}"


def _pieces(paragraph: Any) -> Iterator[str]:
    for element in paragraph.iter(f"{_A}t", f"{_A}br", FORMULA):
        if element.tag == FORMULA:
            yield formula_text(element)
        elif element.tag == f"{_A}br":
            yield "\n"
        elif element.getparent().get("type") != "slidenum":  # the locator says it
            yield element.text or ""


def _mark(properties: Any, depth: int, counts: dict[int, tuple[str, int]]) -> str:
    numbered = None if properties is None else properties.find(f"{_A}buAutoNum")
    if numbered is None:
        counts.pop(depth, None)
        said = None if properties is None else properties.find(f"{_A}buChar")
        unmarked = properties is not None and properties.find(f"{_A}buNone") is not None
        return "-" if said is not None or (depth and not unmarked) else ""
    form = str(numbered.get("type"))
    start = str(numbered.get("startAt", "1"))[:5]
    known, reached = counts.get(depth, ("", 0))
    number = reached + 1 if known == form else int(start) if start.isdecimal() else 1
    counts[depth] = form, number
    return _written(number, form)


def _written(number: int, form: str) -> str:
    around = next((around for name, around in _AROUND.items() if form.endswith(name)), "{}.")
    shown = str(number)
    if form.startswith("alpha"):
        shown = in_letters(number)
    elif form.startswith("roman") and 0 < number <= LARGEST_ROMAN:
        shown = in_roman(number)
    return around.format(shown.upper() if "Uc" in form else shown)
