"""Words in drawings of office files: what is said about a picture for those who cannot see it, charts, diagrams.

A chart says its title, its axes and each series with its values by category; a diagram (SmartArt) its words. Both are parts of
their own, which the drawing only refers to.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from gateway.corpus.child import TaskFailed
from workers.pipeline.formats.hardened import parse_xml
from workers.pipeline.formats.number_formats import format_of

_FILE_NAME = re.compile(r".*\.(?:png|jpe?g|gif|bmp|tiff?|svg|emf|wmf|webp)", re.IGNORECASE)
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_IS_DATE = re.compile(r'^(?=[^0#]*[ymd])(?:"[^"]*"|\[[^\]]*\]|[^0#"])*$', re.IGNORECASE)
_FIRST_DAY = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - days of a sheet have no zone
_LAST_DAY = 2_958_465


def alternative_text(properties: Any) -> str:
    """On one line; without the name of the file, which programs put there when nobody wrote a word."""
    words = " ".join(str(properties.get("descr") or "").split())
    return "" if _FILE_NAME.fullmatch(words) else words


def drawn_words(drawing: Any, part: Callable[[str], bytes | None]) -> Iterator[str]:
    """Of each chart and diagram in it; `part` gives what a relation's name stands for. What is broken costs itself."""
    for element in drawing.iter(f"{_C}chart", _DIAGRAM):
        is_chart = element.tag != _DIAGRAM
        data = part(str(element.get(f"{_R}id" if is_chart else f"{_R}dm")))
        try:
            root = None if data is None else parse_xml(data)
        except TaskFailed:
            continue
        if root is not None:
            yield "\n".join(filter(str.strip, _chart(root) if is_chart else _diagram(root)))


def _diagram(root: Any) -> Iterator[str]:
    for paragraph in root.iter(f"{_A}p"):
        if words := "".join(text.text or "" for text in paragraph.iter(f"{_A}t")).strip():
            yield f"- {words}"


def _chart(space: Any) -> Iterator[str]:
    titles = chain(space.iterfind(f"{_C}chart/{_C}title"), space.iterfind(f".//{_C}plotArea/*/{_C}title"))
    for title in titles:
        written = "".join(text.text or "" for text in title.iter(f"{_A}t"))
        yield " ".join((written or " ".join(value.text or "" for value in title.iter(f"{_C}v"))).split())
    for series in space.iter(f"{_C}ser"):
        name = " ".join(value.text or "" for value in series.iterfind(f"{_C}tx//{_C}v"))
        labels = _points(series, "cat") or _points(series, "xVal")
        values = _points(series, "val") or _points(series, "yVal")
        pairs = (f"{labels[at]}: {value}" if at in labels else value for at, value in values.items())
        yield " | ".join(filter(None, [name, *pairs]))


def _points(series: Any, name: str) -> dict[str, str]:
    """By their number: points without a value are left out of the file. Of categories in several levels the outer ones hold on
    until the next.
    """
    levels = series.findall(f"{_C}{name}//{_C}lvl")
    if not levels:
        code = series.findtext(f"{_C}{name}//{_C}formatCode") or ""
        return {at: _shown(value, code) for at, value in _values(series.iterfind(f"{_C}{name}//{_C}pt"))}
    points = dict(_values(levels[0].iterfind(f"{_C}pt")))
    for level in levels[1:]:
        outer = dict(_values(level.iterfind(f"{_C}pt")))
        above = ""
        for at, words in points.items():
            above = outer.get(at, above)
            points[at] = f"{above} {words}".strip()
    return points


def _values(points: Any) -> Iterator[tuple[str, str]]:
    for point in points:
        if value := (point.findtext(f"{_C}v") or "").strip():
            yield str(point.get("idx")), value


def _shown(value: str, code: str) -> str:
    """A number as its chart shows it, a day as a day."""
    try:
        number = float(value)
    except ValueError:
        return value
    if _IS_DATE.match(code) and 1 <= number <= _LAST_DAY and code.casefold() != "general":
        day = _FIRST_DAY + dt.timedelta(days=number)
        return day.date().isoformat() if number == int(number) else day.isoformat(" ", "minutes")
    form = format_of(code)
    return (form.text(number) if form else "") or value
