"""How passages, places and numbers are shown to people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from gateway.corpus.highlights import matches, wanted_terms

SHOWN_CHARACTERS = 700
CONTEXT_CHARACTERS = 1500  # shown before and after a cited region
CONTEXT_LINES = 6


@dataclass(frozen=True)
class Excerpt:
    """Kept text around a cited region."""

    before: str
    cited: str
    after: str
    cut_before: bool
    cut_after: bool


def around(text: str, offset: int, start: int, end: int, whole: int) -> Excerpt:
    """`text` begins at `offset` of a kept text that is `whole` characters long."""
    low, high = max(start - offset, 0), max(end - offset, 0)
    return Excerpt(text[:low], text[low:high], text[high:], offset > 0, offset + len(text) < whole)


def numbered_lines(text: str, first: int, cited: range) -> list[tuple[int, str, bool]]:
    return [(number, line, number in cited) for number, line in enumerate(text.split("\n"), first)]


def highlighted(text: str, query: str, most: int = SHOWN_CHARACTERS) -> Markup:
    """The passage around the first word that was looked for, such words marked."""
    spans = matches(text, wanted_terms(query))
    start = max(0, spans[0][0] - 120) if spans and spans[0][0] > most - 120 else 0
    end = min(len(text), start + most)
    shown: list[Markup] = [Markup("…")] if start else []
    position = start
    for low, high in _inside(spans, start, end):
        shown += [escape(text[position:low]), Markup("<mark>{}</mark>").format(text[low:high])]
        position = high
    shown.append(escape(text[position:end]))
    if end < len(text):
        shown.append(Markup("…"))
    return Markup("").join(shown)


def _inside(spans: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    return [(low, high) for low, high in spans if low >= start and high <= end]


def grouped(value: float | None) -> str:
    """Thousands apart by a narrow space, which both languages understand."""
    if value is None:
        return "–"
    return f"{value:,.0f}".replace(",", "\u202f") if float(value).is_integer() else f"{value:g}"


def readable_size(value: float | None) -> str:
    size = float(value or 0)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")


def duration(seconds: Any) -> str:
    if seconds is None:
        return "–"
    left = round(float(seconds))
    if left < 60:
        return f"{left} s"
    return f"{left // 60} min" if left < 3600 else f"{left // 3600} h {left % 3600 // 60} min"
