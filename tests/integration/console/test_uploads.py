"""Files from a browser: in through the one door, and what became of each is said on its page."""

import html
import re
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from gateway.console.words import Words
from gateway.corpus.loading import ReadyDocument, load_documents
from gateway.db import Database
from tests.fixtures.tenants import SignIn, TestMandate


def _token(page: httpx.Response) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
    assert found
    return found.group(1)


async def _upload(browser: httpx.AsyncClient, *names: str, **fields: str) -> httpx.Response:
    files = [("file", (name, f"What {name} says.".encode())) for name in names]
    token = _token(await browser.get("/knowledge"))
    return await browser.post("/knowledge/upload", data={"csrf_token": token} | fields, files=files)


async def test_a_file_is_uploaded_and_its_page_looks_again_until_it_has_been_read(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["member"])
    sent = await _upload(browser, "rules.txt", scope="mandate", neutralize="true")
    assert sent.status_code == 303, sent.text
    document = UUID(sent.headers["location"].removeprefix("/knowledge/"))
    async with db.tenant_session(mandate.id) as session:
        kept = (
            await session.execute(
                text("SELECT title, scope, neutralize, user_id FROM document WHERE id = :id"),
                {"id": document},
            )
        ).one()
    assert tuple(kept) == ("rules.txt", "mandate", True, mandate.users["member"])
    page = await browser.get(f"/knowledge/{document}")
    assert "data-refresh" in page.text
    async with db.tenant_session(mandate.id) as session:
        await session.execute(
            text("UPDATE document SET status = 'failed', reason = 'damaged' WHERE id = :id"), {"id": document}
        )
    page = await browser.get(f"/knowledge/{document}")
    assert "data-refresh" not in page.text
    assert "It is damaged and cannot be read; upload a sound copy." in page.text


async def test_several_files_at_once_are_found_in_the_list(sign_in: SignIn, mandate: TestMandate) -> None:
    browser = await sign_in(mandate.id, mandate.users["member"])
    sent = await _upload(browser, "one.txt", "two.txt")
    assert (sent.status_code, sent.headers["location"]) == (303, "/knowledge")
    listed = (await browser.get("/knowledge")).text
    assert "one.txt" in listed
    assert "two.txt" in listed
    assert "data-refresh" in listed


async def test_what_the_policy_refuses_is_said(sign_in: SignIn, db: Database, mandate: TestMandate) -> None:
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("""UPDATE mandate SET policy = '{"refusedSourceKinds": ["upload"]}'"""))
    browser = await sign_in(mandate.id, mandate.users["member"])
    sent = await _upload(browser, "one.txt", "two.txt")
    assert sent.status_code == 303
    said = await browser.get(sent.headers["location"])
    assert re.search(r'role="alert">[^<]*2[^<]*policy', said.text), said.text
    assert "one.txt" not in said.text


async def test_an_upload_needs_a_file_and_the_forms_token(sign_in: SignIn, mandate: TestMandate) -> None:
    browser = await sign_in(mandate.id, mandate.users["member"])
    assert (await _upload(browser)).status_code == 422
    files = {"file": ("a.txt", b"words")}
    refused = await browser.post("/knowledge/upload", data={"csrf_token": "no"}, files=files)
    assert refused.status_code == 403


@pytest.mark.parametrize("language", ["en", "de"])
async def test_a_button_for_the_original_is_there_for_whom_it_opens_and_others_are_told_why_not(
    sign_in: SignIn, db: Database, mandate: TestMandate, app: FastAPI, language: str
) -> None:
    """Also where nobody asked for masking, and a secret was found in it."""
    owner = await sign_in(mandate.id, mandate.users["owner"])
    reader = await sign_in(mandate.id, mandate.users["member"])
    reader.cookies.set("catchment_language", language)
    unread = await _upload(owner, "shared.txt", scope="mandate")
    masked = await _masked(app, db, mandate)
    for place, why in (
        (
            unread.headers["location"],
            "It is still being read; until then the original is for its owner and admins.",
        ),
        (f"/knowledge/{masked}", "The original of a masked document is for its owner and admins."),
    ):
        original = f"/v1/documents/{place.removeprefix('/knowledge/')}/original"
        assert (await reader.get(original)).status_code == 404
        page = html.unescape((await reader.get(place)).text)
        assert original not in page
        assert Words(language)(why) in page
        assert (Words(language)(why) == why) is (language == "en")
        assert original in (await owner.get(place)).text


async def _masked(app: FastAPI, db: Database, mandate: TestMandate) -> UUID:
    kept = "The key is [secret:aws_key:0123abcd]."
    ready = ReadyDocument(
        texts=(kept,),
        source_id="masked",
        described={"title": "Keys", "scope": "mandate", "user_id": mandate.users["owner"]},
    )
    vectors = await app.state.embedder.embed([kept])
    async with db.tenant_session(mandate.id) as session:
        [made] = (await load_documents(session, app.state.embedder.model, [ready], vectors)).document_ids
        await session.execute(
            text("INSERT INTO document_text (mandate_id, document_id, text) VALUES (:m, :d, :t)"),
            {"m": mandate.id, "d": made, "t": kept},
        )
    return made
