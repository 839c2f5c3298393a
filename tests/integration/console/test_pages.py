"""Every page: for whom it is, that hostile names stay text, and that German is complete."""

import json
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import event, text

from gateway.console.activity import LogFilter, last_lines
from gateway.console.words import Words, chosen_language
from gateway.corpus.loading import ReadyDocument, load_documents
from gateway.db import COMMONS, Database
from gateway.tenancy import service as tenancy
from tests.fixtures.tenants import SignIn, TestMandate
from tests.integration.console.conftest import HOSTILE, Seen
from tests.integration.console.test_rules import connection_of

CONSOLE = Path(__file__).parents[3] / "gateway" / "console"
PAGES = ("/", "/connections", "/knowledge", "/knowledge/new", "/search", "/ask", "/insights", "/settings")


def _token(page: httpx.Response) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
    assert found
    return found.group(1)


@pytest.mark.parametrize("path", [*PAGES, "/activity"])
async def test_every_page_opens_for_its_reader_and_asks_strangers_to_sign_in(
    client: httpx.AsyncClient, sign_in: SignIn, mandate: TestMandate, hostile: Seen, path: str
) -> None:
    assert (await client.get(path)).status_code == 401
    browser = await sign_in(mandate.id, mandate.users["admin"])
    page = await browser.get(path)
    assert page.status_code == 200, page.text
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text
    assert page.text.count("<h1") == 1


async def test_a_member_sees_no_admin_controls_and_is_refused(sign_in: SignIn, mandate: TestMandate) -> None:
    browser = await sign_in(mandate.id, mandate.users["member"])
    assert "/activity" not in (await browser.get("/")).text
    assert (await browser.get("/activity")).status_code == 403
    settings = await browser.get("/settings")
    assert 'action="/settings/policy"' not in settings.text
    refused = await browser.post("/settings/policy", data={"csrf_token": _token(settings)})
    assert refused.status_code == 403
    assert "auth.forbidden" in refused.text


async def test_home_counts_what_its_visitor_may_see_and_offers_no_button_that_leads_nowhere(
    sign_in: SignIn, db: Database, mandate: TestMandate, hostile: Seen
) -> None:
    async with db.tenant_session(mandate.id) as session:
        await session.execute(
            text("UPDATE document SET scope = 'personal', status = 'failed' WHERE id = :id"),
            {"id": hostile.document_id},
        )
        await session.execute(
            text(
                "INSERT INTO job (mandate_id, id, kind, lane, status, document_id, reason) "
                "VALUES (:mandate, :id, 'ingest', 'interactive', 'pending', :id, 'budget')"
            ),
            {"mandate": mandate.id, "id": hostile.document_id},
        )
    theirs = await (await sign_in(mandate.id, mandate.users["member"])).get("/")
    assert "Nothing here yet" in theirs.text
    assert "budget" not in theirs.text
    own = await (await sign_in(mandate.id, mandate.users["owner"])).get("/")
    assert "1 document could not be indexed." in own.text
    assert "1 job waits for a larger budget." in own.text
    assert "Nothing here yet" not in own.text


async def test_what_is_everybodys_opens_at_its_citation_and_is_not_for_members_to_change(
    app: FastAPI, sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    words = "Beekeepers register every hive."
    law = ReadyDocument(texts=(words,), source_id="law", described={"title": "Law", "scope": "global"})
    async with db.routing_session() as session:
        await tenancy.seed_commons(session)
    async with db.tenant_session(COMMONS) as session:
        vectors = await app.state.embedder.embed([words])
        loaded = await load_documents(session, app.state.embedder.model, [law], vectors)
    browser = await sign_in(mandate.id, mandate.users["admin"])
    page = await browser.get(f"/knowledge/{loaded.document_ids[0]}?chunk={loaded.chunk_ids[0]}")
    assert f"<mark>{words}</mark>" in page.text
    assert "/delete" not in page.text


async def test_hostile_names_stay_text_wherever_a_document_is_shown(
    sign_in: SignIn, mandate: TestMandate, hostile: Seen
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    for path in (
        "/knowledge",
        f"/knowledge/{hostile.document_id}",
        f"/knowledge/{hostile.document_id}?chunk={hostile.chunk_id}",
        "/search?q=sluice",
        "/ask?q=sluice&plain=true",
        f"/search?q={HOSTILE}",
    ):
        page = await browser.get(path)
        assert page.status_code == 200, page.text
        assert "<script>alert" not in page.text, path
        assert "<img src=x" not in page.text, path
    assert "&lt;script&gt;" in (await browser.get("/knowledge")).text


async def test_a_hit_leads_to_its_passage_in_place(
    sign_in: SignIn, mandate: TestMandate, hostile: Seen
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    found = await browser.get("/search?q=sluice")
    assert "<mark>sluice</mark>" in found.text
    assert f"/knowledge/{hostile.document_id}?chunk={hostile.chunk_id}#cited" in found.text
    shown = await browser.get(f"/knowledge/{hostile.document_id}?chunk={hostile.chunk_id}")
    assert "<mark>The sluice opens at dawn." in shown.text


async def test_an_entry_is_written_revised_and_deleted_with_a_receipt(
    sign_in: SignIn, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["member"])
    token = _token(await browser.get("/knowledge/new"))
    form = {"title": "Locks", "content": "Lock two first.", "tags": "lock, two", "csrf_token": token}
    assert (await browser.post("/knowledge/new", data=form | {"csrf_token": "no"})).status_code == 403
    made = await browser.post("/knowledge/new", data=form)
    assert made.status_code == 303, made.text
    place = made.headers["location"]
    assert "Lock two first." in (await browser.get(f"{place}/edit")).text
    changed = await browser.post(f"{place}/edit", data=form | {"title": "Locks and keys"})
    assert changed.status_code == 303
    assert "Locks and keys" in (await browser.get(place)).text
    empty = await browser.post("/knowledge/new", data=form | {"content": " "})
    assert empty.status_code == 422
    gone = await browser.post(f"{place}/delete", data={"csrf_token": token})
    receipt = await browser.get(gone.headers["location"])
    assert "Everything below is gone" in receipt.text
    assert (await browser.get(place)).status_code == 404


async def test_settings_are_saved_and_a_key_is_shown_once(sign_in: SignIn, mandate: TestMandate) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    token = _token(await browser.get("/settings"))
    saved = await browser.post(
        "/settings/policy",
        data={
            "csrf_token": token,
            "mail.tier": "snippet",
            "mail.windowDays": "30",
            "legalHold": "on",
            "retentionDays": "outlook_message 365\nrubbish",
        },
    )
    assert saved.status_code == 303, saved.text
    policy = (await browser.get("/v1/policy")).json()
    assert policy["mail"] == {"tier": "snippet", "windowDays": 30}
    assert policy["legalHold"] is True
    assert policy["retentionDays"] == {"outlook_message": 365}
    made = await browser.post(
        "/settings/keys", data={"csrf_token": token, "name": "robot", "scopes": "read", "days": "30"}
    )
    assert re.search(r"ck_[\w-]{40,}", made.text)
    assert not re.search(r"ck_[\w-]{40,}", (await browser.get("/settings")).text)


async def test_a_new_member_gets_a_link_and_loses_everything_when_removed(
    sign_in: SignIn, client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    token = _token(await browser.get("/settings"))
    added = await browser.post("/settings/members", data={"csrf_token": token, "email": "new@example.org"})
    assert added.status_code == 200, added.text
    link = re.search(r"http://test/login\?token=[\w-]+", added.text)
    assert link
    assert (await client.get(link.group())).status_code == 303
    assert "new@example.org" in (await client.get("/")).text
    user = re.search(
        r"/settings/members/([0-9a-f-]+)/remove", added.text.partition("new@example.org</td>")[2]
    )
    assert user
    await browser.post(f"/settings/members/{user.group(1)}/remove", data={"csrf_token": token})
    assert (await client.get("/")).status_code == 401


async def test_the_language_is_chosen_by_cookie_profile_and_browser(
    sign_in: SignIn, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    assert "Wissen" in (await browser.get("/", headers={"Accept-Language": "de-CH,de;q=0.9"})).text
    chosen = await browser.get("/language/de?back=/knowledge")
    assert chosen.headers["location"] == "/knowledge"
    page = await browser.get("/knowledge")
    assert '<html lang="de">' in page.text
    assert "Eintrag schreiben" in page.text
    for bad in ("//evil.example", "https://evil.example", "/\\evil.example"):
        assert (await browser.get(f"/language/en?back={bad}")).headers["location"] == "/"
    assert chosen_language(None, "de", "fr") == "de"
    assert chosen_language(None, None, "fr") == "en"


async def test_who_is_refused_is_told_so_in_german(
    client: httpx.AsyncClient, sign_in: SignIn, mandate: TestMandate
) -> None:
    german = {"Accept-Language": "de"}
    used = await client.get("/login?token=used", headers=german)
    assert "Dieser Link wurde schon benutzt oder ist abgelaufen." in used.text
    assert "Die Sitzung ist beendet" in (await client.get("/knowledge", headers=german)).text
    member = await sign_in(mandate.id, mandate.users["member"])
    assert "enthält keinen Buchstaben" in (await member.get("/search?q=%3F", headers=german)).text
    assert "Diese Seite ist für Admins des Mandats." in (await member.get("/activity", headers=german)).text


async def test_a_connection_that_waits_for_consent_is_not_called_busy(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, "owner", state="pending")
    browser = await sign_in(mandate.id, mandate.users["owner"])
    for path in ("/connections", f"/connections/{made}"):
        assert ">wartet auf Zustimmung<" in (await browser.get(path, headers={"Accept-Language": "de"})).text


async def test_where_nothing_is_there_yet_the_pages_say_what_comes_first(
    sign_in: SignIn, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    connections = (await browser.get("/connections")).text
    assert "CATCHMENT_MSFT_CLIENT_ID" in connections
    assert "What do you want to connect?" not in connections
    assert "Widen the filters" not in (await browser.get("/knowledge")).text
    assert "Widen the filters" in (await browser.get("/knowledge?q=nowhere")).text


def _spoken() -> set[str]:
    """Every English text that a template or a route asks the dictionary for."""
    found: set[str] = set()
    for file in [*CONSOLE.glob("templates/*.html"), *CONSOLE.glob("*.py")]:
        pattern = r"""\b(?:_|words)\(\s*(["'])((?:(?!\1).)+)\1\s*\)"""
        found |= {text for _, text in re.findall(pattern, file.read_text())}
    return found


def test_every_word_of_the_console_has_a_german_one() -> None:
    german = json.loads((CONSOLE / "german.json").read_text())
    assert sorted(_spoken() - set(german)) == []
    assert Words("de")("Sign out") == "Abmelden"


def test_every_name_of_our_vocabulary_is_put_into_words() -> None:
    from connectors.registry import SURFACES
    from gateway.connections.purge_repository import _STORES
    from gateway.ingestion.schemas import SOURCE_KINDS

    names = {*SOURCE_KINDS, *SURFACES, *(part for parts in SURFACES.values() for part in parts)}
    names |= {*_STORES, "event", "account", "upload", "object"}  # what a receipt counts
    assert sorted(names - set(json.loads((CONSOLE / "german.json").read_text()))) == []


def test_why_something_is_not_here_is_said_in_german_and_never_in_words_of_ours() -> None:
    from gateway.connections.sync_why_service import SENTENCES
    from gateway.corpus.service import REASON_SENTENCES

    english = json.loads((CONSOLE / "english.json").read_text())
    german = json.loads((CONSOLE / "german.json").read_text())
    assert sorted({*SENTENCES.values(), *REASON_SENTENCES, *REASON_SENTENCES.values()} - set(german)) == []
    assert [name for name in REASON_SENTENCES if "_" in name and "_" in english.get(name, name)] == []


def test_what_a_page_can_be_refused_for_has_a_german_title() -> None:
    from gateway import errors
    from gateway.connections.oauth_service import ConsentInvalid
    from gateway.corpus.search import QueryEmpty, QueryTooLong, SearchInvalid

    of_the_house = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in of_the_house if issubclass(kind, errors.CatchmentError)]
    for_programs = {"EventInvalid", "ConfigurationError"}
    titles = {
        kind().title()
        for kind in (*kinds, ConsentInvalid, QueryEmpty, QueryTooLong, SearchInvalid)
        if kind.__name__ not in for_programs
    }
    assert sorted(titles - set(json.loads((CONSOLE / "german.json").read_text()))) == []


def test_the_log_shows_a_mandate_only_its_own_lines(tmp_path: Path) -> None:
    lines = [
        {"event": "ingestion.queued", "mandateId": "a", "documentId": "1"},
        {"event": "ingestion.queued", "mandateId": "b", "documentId": "2"},
        {"event": "ingestion.connection.purged", "connectionId": "mine"},
        {"event": "ingestion.connection.purged", "connectionId": "theirs"},
        {"event": "http.request", "path": "/"},
    ]
    log = tmp_path / "catchment.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"event": "half')
    shown, position = last_lines(log, LogFilter("a", {"mine"}), 10)
    assert [line.get("documentId") or line.get("connectionId") for line in shown] == ["mine", "1"]
    assert position == log.stat().st_size - len('{"event": "half')
    assert last_lines(log, LogFilter("a", {"mine"}, event="ingestion.connection"), 10)[0] == [lines[2]]
    assert last_lines(tmp_path / "none", LogFilter("a"), 10) == ([], 0)


# What a page may ask of the database, the session's own look-ups included.
MOST_QUERIES = {
    "/": 13,
    "/connections": 9,
    "/knowledge": 9,
    "/knowledge?q=dawn": 10,
    "/search?q=dawn": 9,
    "/insights": 15,
    "/settings": 10,
}


@pytest.mark.parametrize("path", MOST_QUERIES)
async def test_a_page_asks_a_bounded_number_of_queries(
    app, sign_in: SignIn, mandate: TestMandate, hostile: Seen, path: str
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    await app.state.query_log.drained()  # what an earlier search left to be written is not this page's
    asked: list[str] = []
    engine = app.state.db.engine.sync_engine
    note = lambda *arguments: asked.append(arguments[2])  # noqa: E731
    event.listen(engine, "before_cursor_execute", note)
    try:
        assert (await browser.get(path)).status_code == 200
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert 0 < len(asked) <= MOST_QUERIES[path], asked
