"""PDF files for tests, made with reportlab."""

import io
import random
from collections.abc import Callable, Sequence

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.unit.workers.pipeline import prose

WIDTH, HEIGHT = 595, 842


def pdf(*pages: Callable[[Canvas], None], **options: object) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(WIDTH, HEIGHT), **options)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def lines(
    texts: Sequence[str], left: float = 72, top: float = 780, step: float = 14
) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        for number, text in enumerate(texts):
            canvas.drawString(left, top - step * number, text)

    return draw


def book(pages: int, changed: dict[int, str] | None = None) -> bytes:
    """Fifty lines a page; `changed` puts another text on the line of that number, counted through."""
    rng = random.Random(pages)
    texts = [prose.line(rng)[:80] for _ in range(50 * pages)]
    for number, text in (changed or {}).items():
        texts[number] = text
    return pdf(*(lines(texts[50 * page : 50 * page + 50]) for page in range(pages)))


def encrypted() -> bytes:
    return pdf(lines(["secret"]), encrypt=StandardEncryption("user", "owner", strength=128))


def two_columns(order: str, count: int = 30) -> tuple[bytes, list[str]]:
    """A page of two columns, its text drawn in one of three orders; also the lines as one reads them."""
    rng = random.Random(order)
    sides = [[prose.line(rng)[:38].strip() for _ in range(count)] for _ in range(2)]
    spots = [(72 + 250 * side, 760 - 14 * row, sides[side][row]) for side in range(2) for row in range(count)]
    if order == "interleaved":
        spots.sort(key=lambda spot: -spot[1])
    elif order == "reversed":
        spots.reverse()

    def draw(canvas: Canvas) -> None:
        for left, top, text in spots:
            canvas.drawString(left, top, text)

    return pdf(draw), [*sides[0], *sides[1]]
