"""What a connection brings in, changed by form: who may, what is refused and where it is said, what stays untouched."""

import re
from typing import Any
from uuid import UUID

import httpx
import pytest

from gateway.connections import repository
from gateway.db import Database, new_id
from tests.fixtures.tenants import SignIn, TestMandate

pytestmark = pytest.mark.usefixtures("app")


async def connection_of(
    db: Database, mandate: TestMandate, who: str = "member", state: str = "active", **options: Any
) -> UUID:
    made = new_id()
    options = {"surfaces": ["sharepoint", "outlook"], "policy": {}, "auto_start": False} | options
    async with db.tenant_session(mandate.id) as session:
        await repository.add(session, made, "msft", mandate.users[who], state, **options)  # type: ignore[index]
    return made


async def policy_of(db: Database, mandate: TestMandate, connection_id: UUID) -> dict[str, Any]:
    async with db.tenant_session(mandate.id) as session:
        row = await repository.find(session, connection_id)
    assert row is not None
    return row.policy


def token_of(page: httpx.Response) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
    assert found
    return found.group(1)


def field(page: httpx.Response, name: str) -> str:
    """A field's tag, whose attributes say what a screen reader hears."""
    found = re.search(rf'<(?:input|select|textarea) id="{name}"[^>]*>', page.text)
    assert found, name
    return found.group()


async def test_rules_are_saved_shown_again_and_given_back_to_the_mandate(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, policy={"shareIntoMandate": True, "mailTier": "snippet"})
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = await browser.get(f"/connections/{made}")
    assert "What is brought in" in page.text
    form = {
        "csrf_token": token_of(page),
        "mailTier": "",
        "mailWindowDays": "30",
        "sites": "HR\r\n\r\n  https://example.org/sites/Law \r\n",
        "libraries": "",
        "folders": "/Contracts/*",
        "fileTypes": "pdf\ndocx",
        "maxFileBytes": "0,5",
        "maxItems": "1000",
    }
    saved = await browser.post(f"/connections/{made}/rules", data=form)
    assert (saved.status_code, saved.headers["location"]) == (303, f"/connections/{made}?saved=rules")
    assert await policy_of(db, mandate, made) == {
        "shareIntoMandate": True,  # what the form does not offer stays
        "mailWindowDays": 30,
        "sites": ["HR", "https://example.org/sites/Law"],
        "folders": ["/Contracts/*"],
        "fileTypes": ["pdf", "docx"],
        "maxFileBytes": 512 * 1024,
        "maxItems": 1000,
    }
    shown = await browser.get(saved.headers["location"])
    assert "Saved." in shown.text
    assert 'value="30"' in field(shown, "mailWindowDays")
    assert 'value="0.5"' in field(shown, "maxFileBytes")
    assert "HR\nhttps://example.org/sites/Law</textarea>" in shown.text
    emptied = dict.fromkeys(form, "") | {"csrf_token": form["csrf_token"]}
    assert (await browser.post(f"/connections/{made}/rules", data=emptied)).status_code == 303
    policy = await policy_of(db, mandate, made)
    assert policy == {"shareIntoMandate": True}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mailTier", "everything"),
        ("mailWindowDays", "0"),
        ("mailWindowDays", "soon"),
        ("mailWindowDays", "9" * 10),
        ("maxItems", "-3"),
        ("maxItems", "2.5"),
        ("maxItems", "9" * 20),
        ("maxFileBytes", "large"),
        ("maxFileBytes", "nan"),
        ("maxFileBytes", "1e400"),
        ("maxFileBytes", "0"),
        ("folders", "x" * 10_001),
    ],
)
async def test_what_is_refused_is_said_at_its_field_and_nothing_is_saved(
    sign_in: SignIn, db: Database, mandate: TestMandate, name: str, value: str
) -> None:
    made = await connection_of(db, mandate, policy={"maxItems": 7})
    browser = await sign_in(mandate.id, mandate.users["member"])
    form = {"csrf_token": token_of(await browser.get(f"/connections/{made}")), "sites": "<b>HR</b>"}
    refused = await browser.post(f"/connections/{made}/rules", data=form | {name: value})
    assert refused.status_code == 422
    assert refused.text.count('aria-invalid="true"') == 1
    marked = field(refused, name)
    assert 'aria-invalid="true"' in marked
    assert f"{name}-problem" in marked
    assert f'class="problem" id="{name}-problem"' in refused.text
    assert 'role="alert"' in refused.text
    assert "&lt;b&gt;HR&lt;/b&gt;</textarea>" in refused.text  # as it was typed, and still text
    assert await policy_of(db, mandate, made) == {"maxItems": 7}
    german = await browser.post(
        f"/connections/{made}/rules", data=form | {name: value}, headers={"Accept-Language": "de"}
    )
    assert "Es wurde nichts gespeichert" in german.text


async def test_only_its_user_and_admins_see_the_form_and_may_send_it(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, who="owner")
    member = await sign_in(mandate.id, mandate.users["member"])
    token = token_of(await member.get("/settings"))
    assert (await member.get(f"/connections/{made}")).status_code == 404
    refused = await member.post(f"/connections/{made}/rules", data={"csrf_token": token, "maxItems": "1"})
    assert refused.status_code == 404
    assert "What is brought in" not in refused.text
    assert await policy_of(db, mandate, made) == {}
    admin = await sign_in(mandate.id, mandate.users["admin"])
    page = await admin.get(f"/connections/{made}")
    assert f'action="/connections/{made}/rules#rules"' in page.text
    foreign = await admin.post(f"/connections/{made}/rules", data={"csrf_token": token, "maxItems": "1"})
    assert foreign.status_code == 403, "another session's token"
    own = {"csrf_token": token_of(page), "maxItems": "1"}
    assert (await admin.post(f"/connections/{made}/rules", data=own)).status_code == 303
    assert await policy_of(db, mandate, made) == {"maxItems": 1}


async def test_only_what_its_surfaces_know_is_offered_and_taken(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, surfaces=["teams"])
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = await browser.get(f"/connections/{made}")
    assert 'name="maxItems"' in page.text
    assert not [name for name in ("mailTier", "sites", "folders") if f'name="{name}"' in page.text]
    sent = {"csrf_token": token_of(page), "mailTier": "body", "maxItems": "5", "neutralize": "true"}
    assert (await browser.post(f"/connections/{made}/rules", data=sent)).status_code == 303
    assert await policy_of(db, mandate, made) == {"maxItems": 5}


async def test_a_number_nobody_touched_stays_to_the_byte(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, policy={"maxFileBytes": 1_000_001})
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = await browser.get(f"/connections/{made}")
    typed = re.search(r'value="([^"]*)"', field(page, "maxFileBytes"))
    assert typed
    sent = {"csrf_token": token_of(page), "maxFileBytes": typed.group(1), "maxItems": "9"}
    await browser.post(f"/connections/{made}/rules", data=sent)
    assert await policy_of(db, mandate, made) == {"maxFileBytes": 1_000_001, "maxItems": 9}


async def test_the_mandates_word_is_shown_where_it_is_the_stricter_one(
    client: httpx.AsyncClient, sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, policy={"mailTier": "attachments"})
    word = {"mail": {"tier": "metadata", "windowDays": 14}}
    assert (await client.patch("/v1/policy", json=word, headers=mandate.auth())).status_code == 200
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = await browser.get(f"/connections/{made}")
    assert '<option value="attachments" selected>' in page.text
    assert "In force now: metadata." in page.text
    assert "In force now: 14." in page.text


async def test_a_revoked_connection_has_no_form(sign_in: SignIn, db: Database, mandate: TestMandate) -> None:
    made = await connection_of(db, mandate, state="revoked")
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = await browser.get(f"/connections/{made}")
    assert page.status_code == 200
    assert "What is brought in" not in page.text
    sent = {"csrf_token": token_of(page), "maxItems": "5"}
    assert (await browser.post(f"/connections/{made}/rules", data=sent)).status_code == 409
    assert await policy_of(db, mandate, made) == {}
