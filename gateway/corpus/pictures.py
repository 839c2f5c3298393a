"""Pictures of PDF pages with the cited region marked, drawn where files from strangers are opened: in a limited child.

`handle` runs in the child; `draw_page` asks for it. Boxes are as citations carry them: PDF points, left bottom right top,
origin at the bottom left, before the page's rotation; pdfium itself turns them into pixels, so crop and rotation hold.
"""

import ctypes
import io
import math
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.corpus.child import ChildFailed, ChildPool, Limits, PoolUnavailable, TaskFailed
from gateway.corpus.child.limits import MIB
from gateway.errors import NotFound, StoreUnavailable, UnsupportedContent

# pdfium and Pillow are imported in the child alone: the gateway never opens a document.
# ruff: noqa: PLC0415

LONGEST_SIDE = 1600  # pixels; sharp on a screen, and bounded for a page the size of a house
SCALE = 2.0  # 144 dots per inch
_MARKER = (255, 236, 120)  # multiplied over the page, like a pen: dark text stays dark
_EDGE = (214, 158, 0)
_MOST_BOXES = 200
MOST_PAGES = 10_000_000  # more than pdfium counts
_PASSWORD = 4

Box = Sequence[float]


class PageUndrawable(UnsupportedContent):
    """The page cannot be shown as a picture."""

    code = "page.undrawable"


def picture_pool(size: int = 1) -> ChildPool:
    limits = Limits(cpu_seconds=15, wall_seconds=20.0, output_bytes=32 * MIB)
    return ChildPool(
        __name__,
        preload=("pypdfium2", "PIL.ImageChops", "PIL.ImageDraw", "PIL.PngImagePlugin"),
        size=size,
        limits=limits,
    )


async def draw_page(pool: ChildPool, pdf: bytes, page: int, boxes: Sequence[Box]) -> bytes:
    """A PNG of the page, counted from 1."""
    if not 1 <= page <= MOST_PAGES:
        raise NotFound(f"The document has no page {page}.")
    task: dict[str, Any] = {
        "page": page,
        "boxes": [[float(edge) for edge in box] for box in boxes[:_MOST_BOXES]],
    }
    try:
        records = await pool.run(task, pdf, isolated=True)
    except ChildFailed as failure:
        raise PageUndrawable(
            f"The page cannot be drawn: the file is {failure.reason.replace('_', ' ')}."
        ) from failure
    except PoolUnavailable as failure:
        raise StoreUnavailable("No picture can be drawn right now; try again in a few seconds.") from failure
    if not records or not isinstance(records[0].get("png"), bytes):
        raise NotFound(f"The document has no page {page}.")
    return records[0]["png"]


# -- in the child


def handle(task: dict[str, Any], payload: bytes | mmap.mmap) -> Iterator[dict[str, Any]]:
    import pypdfium2 as pdfium

    mapped = isinstance(payload, mmap.mmap)  # then pdfium reads it where it is
    buffer = (ctypes.c_char * len(payload)).from_buffer(payload) if mapped else payload
    try:
        document = pdfium.PdfDocument(buffer)
        document.init_forms()  # what was filled in is drawn too
        if not 1 <= task["page"] <= len(document):
            yield {"pages": len(document)}
            return
        page = document[task["page"] - 1]
    except pdfium.PdfiumError as error:
        reason = "encrypted" if getattr(error, "err_code", None) == _PASSWORD else "damaged"
        raise TaskFailed(reason, "pdfium cannot open it") from error
    yield {"png": _draw(page, task["boxes"])}


def _draw(page: Any, boxes: Sequence[Box]) -> bytes:
    from PIL import ImageChops, ImageDraw
    from PIL.Image import new

    longest = max(page.get_size())
    if not (math.isfinite(longest) and longest > 0):
        raise TaskFailed("damaged", "a page without a size")
    image = page.render(scale=min(SCALE, LONGEST_SIDE / longest)).to_pil().convert("RGB")
    for box in boxes:
        corners = _pixels(page, image.size, box)
        if corners is None:
            continue
        part = image.crop(corners)
        image.paste(ImageChops.multiply(part, new("RGB", part.size, _MARKER)), corners)
        ImageDraw.Draw(image).rectangle(
            (corners[0], corners[1], corners[2] - 1, corners[3] - 1), outline=_EDGE
        )
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _pixels(page: Any, size: tuple[int, int], box: Box) -> tuple[int, int, int, int] | None:
    """The box in pixels, with a little air around it; None when nothing of it is on the page."""
    import pypdfium2.raw as pdfium_c

    if len(box) != 4 or not all(map(math.isfinite, box)):
        return None
    x, y = ctypes.c_int(), ctypes.c_int()
    points: list[tuple[int, int]] = []
    for across, up in ((box[0], box[1]), (box[2], box[3])):
        pdfium_c.FPDF_PageToDevice(page.raw, 0, 0, *size, 0, across, up, x, y)
        points.append((x.value, y.value))
    left, right = sorted(point[0] for point in points)
    top, bottom = sorted(point[1] for point in points)
    left, top = max(left - 2, 0), max(top - 2, 0)
    right, bottom = min(right + 2, size[0]), min(bottom + 2, size[1])
    return (left, top, right, bottom) if left < right and top < bottom else None
