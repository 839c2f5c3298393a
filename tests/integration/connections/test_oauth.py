"""Consent counts once, in time, for who began it, where it was begun – and in no other case."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from gateway.connections import oauth_service
from gateway.db import Database, new_id
from tests.fixtures.tenants import SignIn, TestMandate
from tests.integration.connections.conftest import Connect
from tests.integration.connections.vendor import Vendor

CALLBACK = "/v1/oauth/msft/callback"


class Begun:
    """A browser that has just left for the vendor."""

    def __init__(self, browser: httpx.AsyncClient, connection: dict[str, Any], url: str) -> None:
        self.browser, self.connection, self.url = browser, connection, url


@pytest.fixture
async def begun(client: httpx.AsyncClient, mandate: TestMandate, sign_in: SignIn, vendor: Vendor) -> Begun:
    made = await client.post("/v1/connections", json={"authority": "msft"}, headers=mandate.auth("member"))
    assert made.status_code == 201, made.text
    browser = await sign_in(mandate.id, mandate.users["member"])
    left = await browser.get(made.json()["authorizeUrl"])
    return Begun(browser, made.json(), left.headers["location"])


async def state_of(client: httpx.AsyncClient, mandate: TestMandate, begun: Begun) -> str:
    answer = await client.get(f"/v1/connections/{begun.connection['id']}", headers=mandate.auth("owner"))
    return answer.json()["status"]


async def test_consent_makes_a_connection_active(client, mandate, begun, vendor, db):
    assert begun.connection["status"] == "pending"
    left = await begun.browser.get(begun.connection["authorizeUrl"])
    cookie = left.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/v1/oauth/msft" in cookie
    assert "Max-Age=600" in cookie
    back = await begun.browser.get(CALLBACK, params=vendor.consent(begun.url))
    assert (back.status_code, back.headers["location"]) == (
        303,
        f"/connections/{begun.connection['id']}?connected=1",
    )
    assert back.headers["referrer-policy"] == "no-referrer"
    assert back.headers["cache-control"] == "no-store"
    shown = (await client.get(f"/v1/connections/{begun.connection['id']}", headers=mandate.auth())).json()
    assert (shown["status"], shown["accountEmail"]) == ("active", "ada@vendor.example")
    assert "canary" not in str(shown)
    async with db.tenant_session(mandate.id) as session:
        row = (await session.execute(text("SELECT sealed_tokens FROM connection"))).one()
    assert b"canary" not in row.sealed_tokens


async def test_the_matrix_of_theft(client, mandate, other_mandate, begun, vendor, sign_in, db):
    """Stolen state, other browser, other user, other mandate, no session, mix-up: not one is accepted, and none of them
    spoils the sign-in for who began it."""
    answer = vendor.consent(begun.url)
    same_user = await sign_in(mandate.id, mandate.users["member"])
    admin = await sign_in(mandate.id, mandate.users["admin"])
    stranger = await sign_in(other_mandate.id, other_mandate.users["member"])
    cookies = {cookie.name: cookie.value for cookie in begun.browser.cookies.jar if "consent" in cookie.name}
    assert cookies
    thieves = {
        "another browser of the same user": (same_user, {}, 400),
        "another user": (admin, {}, 400),
        "another user with the stolen cookie": (admin, cookies, 400),
        "another mandate with the stolen cookie": (stranger, cookies, 400),
        "nobody": (client, cookies, 401),
    }
    accepted = []
    for name, (browser, brought, status) in thieves.items():
        sent = "; ".join(f"{key}={value}" for key, value in (dict(browser.cookies) | brought).items())
        got = await browser.get(CALLBACK, params=answer, headers={"Cookie": sent})
        assert got.status_code == status, name
        assert "code" not in got.text.replace('"code":', ""), name
        if await state_of(client, mandate, begun) != "pending":
            accepted.append(name)
    # a key in place of a session
    by_key = await client.get(
        CALLBACK,
        params=answer,
        headers=mandate.auth("member") | {"Cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())},
    )
    assert by_key.status_code == 403
    # mix-up: the answer of one vendor at the address of another
    mixed = await begun.browser.get(
        "/v1/oauth/google/callback",
        params=answer,
        headers={"Cookie": "; ".join(f"{k}={v}" for k, v in (dict(begun.browser.cookies) | cookies).items())},
    )
    assert mixed.status_code == 400
    assert mixed.json()["code"] == "connection.consent_invalid"
    assert accepted == []
    assert await state_of(client, mandate, begun) == "pending"
    assert vendor.codes, "nobody even asked the vendor to redeem the code"
    back = await begun.browser.get(CALLBACK, params=answer)
    assert "connected=1" in back.headers["location"]


async def test_a_state_counts_once(client, mandate, begun, vendor):
    """Fifty callbacks at one instant, and again afterwards: one is accepted."""
    answers = [vendor.consent(begun.url) for _ in range(50)]  # fifty codes, one state
    got = await asyncio.gather(*(begun.browser.get(CALLBACK, params=answer) for answer in answers))
    assert sorted(one.status_code for one in got) == [303] + [400] * 49
    assert len(vendor.codes) == 49
    again = await begun.browser.get(CALLBACK, params=vendor.consent(begun.url))
    assert again.status_code == 400


async def test_an_old_state_is_worth_nothing(client, mandate, begun, vendor, db):
    async with db.routing_session() as session:
        await session.execute(text("UPDATE oauth_state SET expires_at = now() - interval '1 second'"))
    assert (await begun.browser.get(CALLBACK, params=vendor.consent(begun.url))).status_code == 400
    assert await state_of(client, mandate, begun) == "pending"


async def test_an_answer_at_another_address_is_refused(client, mandate, begun, vendor, app):
    """The redirect address is the one that was begun with, to the letter."""
    answer = vendor.consent(begun.url)
    cookies = "; ".join(f"{c.name}={c.value}" for c in begun.browser.cookies.jar)
    got = await begun.browser.get(f"http://elsewhere{CALLBACK}", params=answer, headers={"Cookie": cookies})
    assert got.status_code == 400
    assert await state_of(client, mandate, begun) == "pending"


async def test_a_code_from_another_flow_is_refused_by_its_verifier(client, mandate, begun, vendor):
    """An injected code: the attacker's own, brought back with the victim's state."""
    left = await begun.browser.get(begun.connection["authorizeUrl"])
    theirs = vendor.consent(left.headers["location"], "mallory")
    got = await begun.browser.get(CALLBACK, params=vendor.consent(begun.url) | {"code": theirs["code"]})
    assert got.headers["location"].endswith("?problem=refused")
    assert await state_of(client, mandate, begun) == "pending"


async def test_an_answer_that_says_a_thing_twice_is_refused(client, mandate, begun, vendor):
    answer = vendor.consent(begun.url)
    got = await begun.browser.get(f"{CALLBACK}?code={answer['code']}&state={answer['state']}&state=x")
    assert got.status_code == 400
    got = await begun.browser.get(CALLBACK)
    assert got.status_code == 400


async def test_who_declines_is_told_what_to_do_and_may_try_again(client, mandate, begun, vendor):
    got = await begun.browser.get(CALLBACK, params=vendor.consent(begun.url, decline=True))
    assert got.headers["location"] == f"/connections/{begun.connection['id']}?problem=declined"
    assert await state_of(client, mandate, begun) == "pending"
    left = await begun.browser.get(begun.connection["authorizeUrl"])
    back = await begun.browser.get(CALLBACK, params=vendor.consent(left.headers["location"]))
    assert "connected=1" in back.headers["location"]


async def test_a_browser_is_shown_a_page(begun, client):
    got = await begun.browser.get(CALLBACK, params={"state": "<b>x"}, headers={"Accept": "text/html"})
    assert got.status_code == 400
    assert got.headers["content-type"].startswith("text/html")
    assert "start again" in got.text
    assert "<b>x" not in got.text
    german = {"Accept": "text/html", "Accept-Language": "de"}
    got = await begun.browser.get(CALLBACK, params={"state": "x"}, headers=german)
    assert "gehört nicht zu einer hier begonnenen Anmeldung" in got.text
    # A session may end while somebody reads what the vendor asks.
    got = await client.get(CALLBACK, params={"state": "x"}, headers=german)
    assert (got.status_code, got.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "catchment login" in got.text


async def test_only_its_own_user_can_start(client, mandate, begun, sign_in, other_mandate):
    url = begun.connection["authorizeUrl"]
    assert (await client.get(url)).status_code == 401
    assert (await client.get(url, headers=mandate.auth("member"))).status_code == 403
    for whose, who in ((mandate, "admin"), (other_mandate, "member")):
        browser = await sign_in(whose.id, whose.users[who])
        assert (await browser.get(url)).status_code == 404
    assert (await begun.browser.get(url.replace("/msft/", "/clickup/"))).status_code in {404, 409}
    assert (await begun.browser.get(f"/v1/oauth/msft/start?connection={new_id()}")).status_code == 404


async def test_two_tabs_do_not_undo_each_other(begun, vendor, client, mandate):
    second = await begun.browser.get(begun.connection["authorizeUrl"])
    first = await begun.browser.get(CALLBACK, params=vendor.consent(begun.url))
    assert "connected=1" in first.headers["location"]
    again = await begun.browser.get(CALLBACK, params=vendor.consent(second.headers["location"]))
    assert "connected=1" in again.headers["location"]


async def test_consent_given_again_must_be_the_same_accounts(connect: Connect, client, mandate, vendor, db):
    made = await connect(mandate)
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE connection SET state = 'needs_reauth', reauth_since = now()"))
    left = await made["browser"].get(made["authorizeUrl"])
    got = await made["browser"].get(CALLBACK, params=vendor.consent(left.headers["location"], "mallory"))
    assert got.headers["location"].endswith("problem=other_account")
    shown = (await client.get(f"/v1/connections/{made['id']}", headers=mandate.auth())).json()
    assert (shown["status"], shown["accountEmail"]) == ("needs_reauth", "ada@vendor.example")
    left = await made["browser"].get(made["authorizeUrl"])
    got = await made["browser"].get(CALLBACK, params=vendor.consent(left.headers["location"], "ada"))
    assert got.headers["location"].endswith("connected=1")


async def test_a_connection_revoked_meanwhile_stays_revoked(begun, vendor, client, mandate, db):
    answer = vendor.consent(begun.url)
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE connection SET state = 'revoked'"))
    got = await begun.browser.get(CALLBACK, params=answer)
    assert got.status_code == 404
    assert await state_of(client, mandate, begun) == "revoked"


async def test_nothing_secret_is_kept_of_a_sign_in(begun, vendor, db: Database, mandate):
    """Of the state only a hash, of the browser only a hash, of the flow only a sealed envelope."""
    state = vendor.consent(begun.url)["state"]
    cookie = next(c.value for c in begun.browser.cookies.jar if "consent" in c.name)
    async with db.routing_session() as session:
        row = str((await session.execute(text("SELECT * FROM oauth_state"))).all())
    assert state not in row
    assert cookie not in row
    assert "canary" not in row
    assert oauth_service.STATE_SECONDS <= 600
