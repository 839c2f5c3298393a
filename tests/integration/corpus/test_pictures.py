"""A citation opens on its page with its region marked."""

import base64
import io
from collections.abc import AsyncIterator

import httpx
import numpy as np
import pypdfium2 as pdfium
import pytest
from fastapi import FastAPI
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from sqlalchemy import text

from gateway.corpus import search_routes
from gateway.corpus.child import ChildPool
from gateway.corpus.loading import ReadyDocument
from gateway.corpus.pictures import LONGEST_SIDE, SCALE, PageUndrawable, draw_page, picture_pool
from gateway.db import Database
from gateway.errors import NotFound
from tests.fixtures.tenants import TestMandate
from tests.integration.corpus.searching import Library

WIDTH, HEIGHT = A4
MARKED = (255, 236, 120)  # the marker on white paper
BOX = [100.0, 600.0, 300.0, 640.0]  # left, bottom, right, top


def pdf(
    *, size: tuple[float, float] = A4, rotation: int = 0, crop: list[int] | None = None, pages: int = 2
) -> bytes:
    out = io.BytesIO()
    with pdfium.PdfDocument.new() as document:
        for _ in range(pages):
            page = document.new_page(*size)
            page.set_rotation(rotation)
            if crop:
                page.set_cropbox(*crop)
        document.save(out)
    return out.getvalue()


@pytest.fixture(scope="module")
async def pool() -> AsyncIterator[ChildPool]:
    async with picture_pool() as pool:
        yield pool


async def marked_area(
    pool: ChildPool, data: bytes, box: list[float], page: int = 1
) -> tuple[Image.Image, tuple]:
    image = Image.open(io.BytesIO(await draw_page(pool, data, page, [box]))).convert("RGB")
    rows, columns = np.nonzero((np.asarray(image) == MARKED).all(axis=2))
    area = (columns.min(), rows.min(), columns.max(), rows.max()) if len(rows) else ()
    return image, area


async def test_the_cited_box_is_marked_and_nothing_else(pool: ChildPool) -> None:
    image, area = await marked_area(pool, pdf(), BOX)
    assert image.size == (round(WIDTH * SCALE), round(HEIGHT * SCALE)) or max(image.size) == LONGEST_SIDE
    scale = image.size[1] / HEIGHT
    expected = (BOX[0] * scale, (HEIGHT - BOX[3]) * scale, BOX[2] * scale, (HEIGHT - BOX[1]) * scale)
    assert area == pytest.approx(expected, abs=4)


async def test_a_page_without_boxes_is_drawn_plain(pool: ChildPool) -> None:
    image = Image.open(io.BytesIO(await draw_page(pool, pdf(), 2, [])))
    assert image.convert("RGB").getcolors() == [(image.size[0] * image.size[1], (255, 255, 255))]


async def test_a_turned_page_is_marked_where_the_text_stands(pool: ChildPool) -> None:
    image, area = await marked_area(pool, pdf(rotation=90), BOX)
    assert image.size[0] > image.size[1]
    scale = image.size[0] / HEIGHT
    # turned clockwise: what was left of the page is on top, what was its bottom is on the left
    expected = (BOX[1] * scale, BOX[0] * scale, BOX[3] * scale, BOX[2] * scale)
    assert area == pytest.approx(expected, abs=4)


async def test_a_cropped_page_is_marked_relative_to_what_is_shown(pool: ChildPool) -> None:
    image, area = await marked_area(pool, pdf(crop=[50, 500, 350, 700]), BOX)
    scale = image.size[0] / 300
    expected = (50 * scale, 60 * scale, 250 * scale, 100 * scale)
    assert area == pytest.approx(expected, abs=4)


async def test_what_was_filled_into_a_form_is_drawn(pool: ChildPool) -> None:
    pages: list[bytes] = []
    for value in ("", "Ulm"):
        out = io.BytesIO()
        canvas = Canvas(out, pagesize=A4)
        canvas.acroForm.textfield(name="place", value=value, x=72, y=700)
        canvas.showPage()
        canvas.save()
        pages.append(await draw_page(pool, out.getvalue(), 1, []))
    assert pages[0] != pages[1]


async def test_a_huge_page_makes_a_bounded_picture(pool: ChildPool) -> None:
    image = Image.open(io.BytesIO(await draw_page(pool, pdf(size=(14_000, 2_000)), 1, [])))
    assert max(image.size) == LONGEST_SIDE


@pytest.mark.parametrize(
    "box",
    [[float("nan"), 0.0, 1.0, 1.0], [1.0, 2.0], [9e9, 9e9, 9.1e9, 9.1e9], [-500.0, -500.0, -400.0, -400.0]],
)
async def test_a_box_that_is_nowhere_marks_nothing(pool: ChildPool, box: list[float]) -> None:
    _, area = await marked_area(pool, pdf(), box)
    assert area == ()


async def test_text_under_the_marker_stays_dark(pool: ChildPool) -> None:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    canvas.setFont("Helvetica-Bold", 40)
    canvas.drawString(BOX[0], BOX[1] + 4, "MARKED")
    canvas.save()
    image = Image.open(io.BytesIO(await draw_page(pool, out.getvalue(), 1, [BOX]))).convert("L")
    assert image.getextrema()[0] < 30


async def test_a_page_that_is_not_there_is_not_found(pool: ChildPool) -> None:
    for page in (0, 3, -1, 10**30):
        with pytest.raises(NotFound):
            await draw_page(pool, pdf(pages=2), page, [])


@pytest.mark.parametrize("data", [b"%PDF-1.7 nonsense", b"plain text", b"\0" * 100])
async def test_a_file_that_is_no_pdf_is_refused(pool: ChildPool, data: bytes) -> None:
    with pytest.raises(PageUndrawable):
        await draw_page(pool, data, 1, [])


# -- over HTTP


@pytest.fixture
async def http(app: FastAPI, pool: ChildPool, client: httpx.AsyncClient) -> httpx.AsyncClient:
    if "/v1/search" not in {getattr(route, "path", "") for route in app.routes}:
        app.include_router(search_routes.router, prefix="/v1")
    app.state.picture_pool = pool
    return client


async def put_pdf(db: Database, mandate: TestMandate, **described: object) -> tuple[str, str]:
    library = Library(db, mandate.id, {})
    locator = {"kind": "pdf", "page": 1, "bbox": BOX, "boxes": [BOX]}
    document = ReadyDocument(
        texts=["a cited line"],
        source_id="file",
        original=pdf(),
        locators=[locator],
        described={"mime_type": "application/pdf", **described},
    )
    loaded = await library.put_documents([document])
    return str(loaded.document_ids[0]), str(loaded.chunk_ids[0])


async def test_the_picture_of_a_citation(http: httpx.AsyncClient, db: Database, mandate: TestMandate) -> None:
    document, chunk = await put_pdf(db, mandate)
    answer = await http.get(
        f"/v1/documents/{document}/pages/1.png?chunk={chunk}", headers=mandate.auth("member")
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    image = Image.open(io.BytesIO(answer.content)).convert("RGB")
    scale = image.size[1] / HEIGHT
    assert image.getpixel((int(200 * scale), int((HEIGHT - 620) * scale))) == MARKED
    other = await http.get(
        f"/v1/documents/{document}/pages/2.png?chunk={chunk}", headers=mandate.auth("member")
    )
    assert Image.open(io.BytesIO(other.content)).convert("RGB").getpixel((400, 400)) == (255, 255, 255)


async def test_who_may_not_see_the_document_may_not_see_its_pages(
    http: httpx.AsyncClient, db: Database, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    owner = mandate.users["owner"]
    document, chunk = await put_pdf(db, mandate, scope="personal", user_id=owner)
    address = f"/v1/documents/{document}/pages/1.png?chunk={chunk}"
    assert (await http.get(address, headers=mandate.auth("owner"))).status_code == 200
    assert (await http.get(address, headers=mandate.auth("member"))).status_code == 404
    assert (await http.get(address, headers=other_mandate.auth("owner"))).status_code == 404
    assert (await http.get(address)).status_code == 401


async def test_pages_of_a_masked_original_are_for_owner_and_admins(
    http: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    document, _ = await put_pdf(db, mandate, neutralize=True, user_id=mandate.users["owner"])
    address = f"/v1/documents/{document}/pages/1.png"
    assert (await http.get(address, headers=mandate.auth("admin"))).status_code == 200
    assert (await http.get(address, headers=mandate.auth("member"))).status_code == 404


async def test_a_citation_of_an_older_version_is_not_drawn_on_the_newer(
    http: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    document, chunk = await put_pdf(db, mandate)
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE document SET content_hash = '\\x00', revision = revision + 1"))
    answer = await http.get(f"/v1/documents/{document}/pages/1.png?chunk={chunk}", headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (409, "citation.outdated")


async def test_a_citation_opens_on_its_page_while_a_newer_version_waits_or_has_failed(
    http: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    document, chunk = await put_pdf(db, mandate)
    address = f"/v1/documents/{document}/pages/1.png?chunk={chunk}"
    before = (await http.get(address, headers=mandate.auth("member"))).content
    newer = {
        "sourceKind": "paste",
        "sourceId": "file",
        "title": "Newer",
        "mimeType": "application/pdf",
        "content": {"base64": base64.b64encode(b"%PDF-1.4 broken").decode()},
        "scope": "mandate",
    }
    handed = await http.post("/v1/ingestions", json=newer, headers=mandate.auth())
    assert (handed.status_code, handed.json()["documentId"]) == (202, str(document)), handed.text
    for status in ("pending", "failed"):
        async with db.tenant_session(mandate.id) as session:
            await session.execute(text("UPDATE document SET status = :status"), {"status": status})
        after = await http.get(address, headers=mandate.auth("member"))
        assert (after.status_code, after.content == before) == (200, True), after.text
    earlier = await http.get(f"/v1/documents/{document}/original?revision=1", headers=mandate.auth())
    assert earlier.content.startswith(b"%PDF")
    assert b"broken" not in earlier.content
    unknown = await http.get(f"/v1/documents/{document}/original?revision=7", headers=mandate.auth())
    assert unknown.status_code == 404


async def test_what_has_no_pages_says_so(http: httpx.AsyncClient, db: Database, mandate: TestMandate) -> None:
    document, _ = await put_pdf(db, mandate, mime_type="text/plain")
    answer = await http.get(f"/v1/documents/{document}/pages/1.png", headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (415, "page.undrawable")
    unknown = f"/v1/documents/{document}/pages/1.png?chunk={mandate.id}"
    assert (await http.get(unknown, headers=mandate.auth())).status_code == 404
