"""The console's first rooms, as a browser meets them."""

import re

import httpx
import pytest

from gateway.db import Database
from gateway.tenancy import repository
from tests.fixtures.tenants import SignIn, TestMandate


async def test_home_asks_strangers_to_sign_in(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    assert page.status_code == 401
    assert page.headers["content-type"].startswith("text/html")
    assert "catchment login" in page.text


async def test_home_says_who_and_where_one_is(sign_in: SignIn, mandate: TestMandate) -> None:
    browser = await sign_in(mandate.id, mandate.users["admin"])
    page = await browser.get("/")
    assert page.status_code == 200
    for words in ("admin@example.org", "(admin)", "Sign out"):
        assert words in page.text
    assert re.search(r"Documents</dt><dd>0<", page.text)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/no/such/page", {}, 404),
        ("PUT", "/knowledge", {}, 405),
        ("POST", "/knowledge/upload", {"Content-Length": str(10**12)}, 413),
    ],
)
async def test_what_a_person_is_refused_on_the_way_to_a_page_is_a_page(
    client: httpx.AsyncClient, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    """And for programs it is what they can read, wherever they call."""
    browsers = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": "de", **headers}
    page = await client.request(method, path, headers=browsers)
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert '<html lang="de">' in page.text
    for_a_program = await client.request(method, path, headers=headers)
    assert (for_a_program.status_code, for_a_program.json()["status"]) == (status, status)
    assert (await client.get("/v1/nothing", headers=browsers)).json()["code"] == "auth.required"


async def test_names_are_text_not_markup(sign_in: SignIn, db: Database, mandate: TestMandate) -> None:
    async with db.tenant_session(mandate.id) as session:
        await repository.update_mandate(session, name="<img src=x onerror=alert(1)>")
        await repository.update_user(session, mandate.users["owner"], display_name="<b>Bob</b>")
    browser = await sign_in(mandate.id, mandate.users["owner"])
    page = await browser.get("/")
    assert "<img src=x" not in page.text
    assert "<b>Bob" not in page.text
    assert "&lt;b&gt;Bob" in page.text


async def test_signing_out_needs_the_forms_token_and_ends_the_session(
    sign_in: SignIn, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    cookie = browser.cookies["catchment_session"]
    for form in ({}, {"csrf_token": "wrong"}):
        refused = await browser.post("/logout", data=form)
        assert refused.status_code == 403
        assert "Nothing was done" in refused.text
    assert (await browser.get("/")).status_code == 200
    found = re.search(r'name="csrf_token" value="([^"]+)"', (await browser.get("/")).text)
    assert found
    done = await browser.post("/logout", data={"csrf_token": found.group(1)})
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert 'catchment_session=""' in done.headers["set-cookie"]
    browser.cookies.set("catchment_session", cookie)
    assert (await browser.get("/")).status_code == 401
    assert (await browser.get("/v1/whoami")).status_code == 401


async def test_signing_out_without_a_session_is_no_error(client: httpx.AsyncClient) -> None:
    assert (await client.post("/logout")).status_code == 303


@pytest.mark.parametrize("query", ["", "?token=", "?token=cl_nothing", f"?token={'x' * 150}"])
async def test_a_bad_link_gives_the_sign_in_page(client: httpx.AsyncClient, query: str) -> None:
    page = await client.get(f"/login{query}")
    assert page.status_code == 401
    assert "already used or has expired" in page.text


async def test_styles_are_served(client: httpx.AsyncClient) -> None:
    for name, kind in {"console.css": "text/css", "icon.svg": "image/svg+xml"}.items():
        file = await client.get(f"/static/{name}")
        assert file.status_code == 200
        assert file.headers["content-type"].startswith(kind)
    assert (await client.get("/static/../routes.py")).status_code == 404
