"""PDF files for tests, made with reportlab."""

import io
import random
from collections.abc import Callable, Sequence

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

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


def turn(canvas: Canvas, angle: int) -> None:
    """What is drawn from here on stands turned counter-clockwise, and still on the page."""
    away = {90: (WIDTH, 0), 180: (WIDTH, HEIGHT), 270: (0, HEIGHT)}
    canvas.translate(*away.get(angle, (0, 0)))
    canvas.rotate(angle)


def lines(
    texts: Sequence[str], left: float = 72, top: float = 780, step: float = 14, angle: int = 0
) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        turn(canvas, angle)
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


def two_columns(order: str, count: int = 30, angle: int = 0) -> tuple[bytes, list[str]]:
    """A page of two columns, its text drawn in one of three orders; also the lines as one reads them. A page that is turned
    shows them upright.
    """
    rng = random.Random(order)
    sides = [[prose.line(rng)[:38].strip() for _ in range(count)] for _ in range(2)]
    top = 560 if angle in {90, 270} else 760
    spots = [(72 + 250 * side, top - 14 * row, sides[side][row]) for side in range(2) for row in range(count)]
    if order == "interleaved":
        spots.sort(key=lambda spot: -spot[1])
    elif order == "reversed":
        spots.reverse()

    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(angle)
        turn(canvas, angle)
        for left, top, text in spots:
            canvas.drawString(left, top, text)

    return pdf(draw), [*sides[0], *sides[1]]


def form() -> bytes:
    """A form that was filled in, with a comment of a reader beside it."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 780, "Travel expenses of the month")
        fields = canvas.acroForm
        fields.textfield(
            name="t.name", tooltip="Full name", value="Zoë Example", x=72, y=700, width=300, height=20
        )
        fields.textfield(name="t.iban", value="", x=72, y=670, width=300, height=20)
        fields.textfield(
            name="t.pin", value="topsecret", fieldFlags="password", x=72, y=640, width=300, height=20
        )
        fields.checkbox(name="by_train", tooltip="By train", checked=True, x=72, y=600)
        fields.checkbox(name="by_air", tooltip="By air", checked=False, x=72, y=570)
        canvas.textAnnotation("The receipt is missing.", Rect=(400, 650, 420, 670))

    return pdf(draw, lambda canvas: canvas.acroForm.textfield(name="place", value="Ulm", x=72, y=700))


def written(*parts: str | Table) -> bytes:
    """Paragraphs and tables, as a program lays them out."""
    buffer = io.BytesIO()
    style = getSampleStyleSheet()["Normal"]
    SimpleDocTemplate(buffer).build(
        [Paragraph(part, style) if isinstance(part, str) else part for part in parts]
    )
    return buffer.getvalue()


def table(rows: Sequence[Sequence[str]], widths: Sequence[int], upright: str = "TOP") -> Table:
    """Its cells wrap; `upright` is where those with fewer lines stand in their row."""
    style = getSampleStyleSheet()["Normal"]
    made = Table([[Paragraph(cell, style) for cell in row] for row in rows], colWidths=widths)
    made.setStyle(TableStyle([("VALIGN", (0, 0), (-1, -1), upright)]))
    return made
