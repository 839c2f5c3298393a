"""Who gets in, as whom, and for how long."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from gateway.db import Database
from gateway.tenancy import repository, service
from gateway.tenancy.principal import new_token, token_hash
from tests.fixtures.tenants import SignIn, TestMandate

CSRF = "SELECT csrf_token FROM session WHERE user_id = :user"


async def _csrf(db: Database, mandate: TestMandate, role: str) -> str:
    async with db.tenant_session(mandate.id) as session:
        return str(await session.scalar(text(CSRF), {"user": mandate.users[role]}))


@pytest.mark.parametrize(
    "path",
    [
        *("/v1", "/v1/", "/v1/users", "/v1/no/such/path", "/v1/openapi.json", "/mcp", "/mcp/x"),
        *("/v1/webhooks", "/v1/webhooks/nobody", "/v1/webhooks/msft/x"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer ck_nobody"},
        {"Authorization": "Basic eDp5"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer ck_nobody", "X-Act-As-User": "nobody"},
    ],
)
async def test_every_protected_path_known_or_not_is_401_without_a_good_key(
    client: httpx.AsyncClient, path: str, method: str, headers: dict[str, str]
) -> None:
    answer = await client.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"
    body = answer.json()
    assert body["code"] == "auth.required"
    assert body["requestId"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_a_vendors_door_is_open_to_notifications_alone(client: httpx.AsyncClient, method: str) -> None:
    assert (await client.request(method, "/v1/webhooks/msft")).status_code == 401


async def test_an_unknown_path_is_404_for_those_who_may_ask(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    answer = await client.get("/v1/no/such/path", headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_wrong_method_is_405_and_names_the_right_ones(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    answer = await client.put("/v1/policy", headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"]


async def test_keys_expire_by_the_databases_clock(
    client: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    async with db.tenant_session(mandate.id) as session:
        key, secret = await service.make_key(session, "short", ("read",), user_id=mandate.users["owner"])
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await client.get("/v1/whoami", headers=headers)).status_code == 200
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE api_key SET expires_at = now() WHERE id = :id"), {"id": key.id})
    assert (await client.get("/v1/whoami", headers=headers)).status_code == 401


async def test_a_key_that_would_never_work_is_not_made(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    body = {"name": "late", "expiresAt": "2001-01-01T00:00:00Z"}
    answer = await client.post("/v1/keys", headers=mandate.auth(), json=body)
    assert answer.status_code == 422
    assert "must be in the future" in answer.json()["detail"]


async def test_a_key_that_expires_makes_nothing_that_outlives_it(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    scopes = ["read", "write", "admin"]
    body = {"name": "short", "scopes": scopes, "expiresAt": "2100-01-01T00:00:00Z"}
    made = (await client.post("/v1/keys", headers=mandate.auth(), json=body)).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    for longer in ({}, {"expiresAt": "2100-01-01T00:00:01Z"}, {"service": "robot"}):
        answer = await client.post("/v1/keys", headers=headers, json={"name": "longer", **longer})
        assert (answer.status_code, answer.json()["code"]) == (403, "auth.forbidden"), longer
    assert (await client.post("/v1/login-links", headers=headers, json={})).status_code == 403
    same = {"name": "same", "expiresAt": "2100-01-01T00:00:00Z"}
    assert (await client.post("/v1/keys", headers=headers, json=same)).status_code == 201


async def test_a_revoked_key_stops_with_the_next_request(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    made = (await client.post("/v1/keys", headers=mandate.auth(), json={"name": "tmp"})).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert (await client.get("/v1/whoami", headers=headers)).status_code == 200
    assert (await client.delete(f"/v1/keys/{made['id']}", headers=mandate.auth())).status_code == 204
    assert (await client.get("/v1/whoami", headers=headers)).status_code == 401
    # Even if the route were still there, the row itself says no.
    shown = (await client.get(f"/v1/keys/{made['id']}", headers=mandate.auth())).json()
    assert shown["revokedAt"]


async def test_a_revoked_row_is_refused_even_if_its_route_is_still_there(
    client: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE api_key SET revoked_at = now() WHERE user_id IS NOT NULL"))
    assert (await client.get("/v1/whoami", headers=mandate.auth())).status_code == 401
    assert (await client.get("/v1/whoami", headers=mandate.auth("service"))).status_code == 200


async def test_secrets_are_nowhere_in_the_database(db: Database, mandate: TestMandate) -> None:
    secret = mandate.keys["owner"]
    async with db.tenant_session(mandate.id) as session:
        keys = await session.scalar(text("SELECT string_agg(k::text, ' ') FROM api_key k"))
        routes = await session.scalar(text("SELECT string_agg(r::text, ' ') FROM key_route r"))
    assert secret not in keys
    assert secret not in routes
    assert token_hash(secret).hex() in routes


# -- acting for a user


async def test_a_service_acts_for_a_member(client: httpx.AsyncClient, mandate: TestMandate) -> None:
    headers = {**mandate.auth("service"), "X-Act-As-User": str(mandate.users["member"])}
    me = (await client.get("/v1/whoami", headers=headers)).json()
    assert me["userId"] == str(mandate.users["member"])
    assert me["role"] == "member"
    assert me["scopes"] == ["read", "write"]


async def test_acting_for_an_owner_does_not_raise_the_services_own_rights(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    made = await client.post(
        "/v1/keys",
        headers=mandate.auth(),
        json={"name": "s", "service": "s", "scopes": ["read", "write", "admin", "act_as"]},
    )
    headers = {"Authorization": f"Bearer {made.json()['key']}", "X-Act-As-User": str(mandate.users["owner"])}
    me = (await client.get("/v1/whoami", headers=headers)).json()
    assert (me["userId"], me["role"]) == (str(mandate.users["owner"]), "admin")
    weak = {**mandate.auth("service"), "X-Act-As-User": str(mandate.users["owner"])}
    assert (await client.get("/v1/whoami", headers=weak)).json()["role"] == "member"


async def test_acting_is_refused_without_the_scope_or_for_strangers(
    client: httpx.AsyncClient, mandate: TestMandate, other_mandate: TestMandate
) -> None:
    member = str(mandate.users["member"])
    for who in ("owner", "operator", "member"):
        answer = await client.get("/v1/whoami", headers={**mandate.auth(who), "X-Act-As-User": member})
        assert (answer.status_code, answer.json()["code"]) == (403, "auth.forbidden"), who
    for stranger in (str(other_mandate.users["member"]), str(uuid4()), "me", ""):
        answer = await client.get(
            "/v1/whoami", headers={**mandate.auth("service"), "X-Act-As-User": stranger}
        )
        assert answer.status_code == 403, stranger


async def test_a_service_cannot_act_for_a_member_who_left(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    member = mandate.users["member"]
    headers = {**mandate.auth("service"), "X-Act-As-User": str(member)}
    assert (await client.get("/v1/whoami", headers=headers)).status_code == 200
    assert (await client.delete(f"/v1/members/{member}", headers=mandate.auth())).status_code == 204
    assert (await client.get("/v1/whoami", headers=headers)).status_code == 403


async def test_a_service_in_a_users_place_makes_neither_keys_nor_login_links(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    headers = {**mandate.auth("service"), "X-Act-As-User": str(mandate.users["member"])}
    assert (await client.post("/v1/keys", headers=headers, json={"name": "stay"})).status_code == 403
    assert (await client.post("/v1/login-links", headers=headers, json={})).status_code == 403


# -- sessions


async def test_a_session_has_the_rights_of_its_role(sign_in: SignIn, mandate: TestMandate) -> None:
    for role, scopes in {"member": ["read", "write"], "owner": ["admin", "read", "write"]}.items():
        browser = await sign_in(mandate.id, mandate.users[role])
        me = (await browser.get("/v1/whoami")).json()
        assert (me["role"], me["scopes"], me["via"]) == (role, scopes, "session")


async def test_a_session_needs_its_token_to_change_anything(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    for headers in ({}, {"X-CSRF-Token": "wrong"}, {"X-CSRF-Token": ""}):
        answer = await browser.patch("/v1/policy", json={"graceDays": 3}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "auth.csrf")
    assert (await browser.get("/v1/policy")).json()["graceDays"] == 7
    token = await _csrf(db, mandate, "owner")
    answer = await browser.patch("/v1/policy", json={"graceDays": 3}, headers={"X-CSRF-Token": token})
    assert (answer.status_code, answer.json()["graceDays"]) == (200, 3)


async def test_another_sessions_token_does_not_do(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    await sign_in(mandate.id, mandate.users["admin"])
    stolen = await _csrf(db, mandate, "admin")
    answer = await browser.patch("/v1/policy", json={}, headers={"X-CSRF-Token": stolen})
    assert answer.json()["code"] == "auth.csrf"


async def test_sessions_expire_by_the_databases_clock(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["member"])
    assert (await browser.get("/v1/whoami")).status_code == 200
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE session SET expires_at = now()"))
    assert (await browser.get("/v1/whoami")).status_code == 401


async def test_a_session_does_not_act_for_somebody_else(sign_in: SignIn, mandate: TestMandate) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    answer = await browser.get("/v1/whoami", headers={"X-Act-As-User": str(mandate.users["member"])})
    assert (answer.status_code, answer.json()["code"]) == (403, "auth.forbidden")


async def test_a_bad_key_is_not_saved_by_a_good_cookie(sign_in: SignIn, mandate: TestMandate) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    answer = await browser.get("/v1/whoami", headers={"Authorization": "Bearer ck_wrong"})
    assert answer.status_code == 401


async def test_the_cookie_is_closed_to_scripts_and_other_sites(
    client: httpx.AsyncClient, db: Database, mandate: TestMandate, app: FastAPI
) -> None:
    async with db.tenant_session(mandate.id) as session:
        url, _ = await service.create_login_link(session, mandate.users["owner"], "http://test")
    cookie = (await client.get(url)).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    async with db.tenant_session(mandate.id) as session:
        url, _ = await service.create_login_link(session, mandate.users["owner"], "https://test")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://test") as https:
        assert "Secure" in (await https.get(url)).headers["set-cookie"]


# -- one-time links


async def test_a_link_works_once_even_for_many_at_the_same_instant(
    db: Database, mandate: TestMandate
) -> None:
    async with db.tenant_session(mandate.id) as session:
        url, _ = await service.create_login_link(session, mandate.users["owner"], "http://test")
    token = url.partition("token=")[2]
    results = await asyncio.gather(
        *(service.sign_in(db, token, timedelta(hours=1)) for _ in range(20)), return_exceptions=True
    )
    assert sum(isinstance(result, str) for result in results) == 1
    assert {type(result).__name__ for result in results} == {"str", "NotAuthenticated"}


async def test_an_expired_link_says_what_to_do(
    client: httpx.AsyncClient, db: Database, mandate: TestMandate
) -> None:
    token = new_token("cl")
    async with db.tenant_session(mandate.id) as session:
        await repository.insert_login_route(
            session, token_hash(token), mandate.users["owner"], timedelta(seconds=-1)
        )
    answer = await client.get(f"/login?token={token}")
    assert answer.status_code == 401
    assert "already used or has expired" in answer.text
    assert "catchment login" in answer.text
    assert "set-cookie" not in answer.headers


async def test_a_session_cookie_is_no_login_link_and_the_other_way_round(
    client: httpx.AsyncClient, sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    browser = await sign_in(mandate.id, mandate.users["owner"])
    cookie = browser.cookies["catchment_session"]
    assert (await client.get(f"/login?token={cookie}")).status_code == 401
    async with db.tenant_session(mandate.id) as session:
        url, _ = await service.create_login_link(session, mandate.users["owner"], "http://test")
    client.cookies.set("catchment_session", url.partition("token=")[2])
    assert (await client.get("/v1/whoami")).status_code == 401


# -- leaving


async def test_a_member_who_leaves_loses_sessions_keys_and_links_at_once(
    client: httpx.AsyncClient, sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    member = mandate.users["member"]
    browser = await sign_in(mandate.id, member)
    async with db.tenant_session(mandate.id) as session:
        url, _ = await service.create_login_link(session, member, "http://test")
    assert (await client.delete(f"/v1/members/{member}", headers=mandate.auth("admin"))).status_code == 204
    assert (await browser.get("/v1/whoami")).status_code == 401
    assert (await client.get("/v1/whoami", headers=mandate.auth("member"))).status_code == 401
    assert (await client.get(url)).status_code == 401
    async with db.tenant_session(mandate.id) as session:
        left = await session.scalar(
            text(
                "SELECT (SELECT count(*) FROM session WHERE user_id = :user)"
                " + (SELECT count(*) FROM api_key WHERE user_id = :user)"
                " + (SELECT count(*) FROM session_route WHERE mandate_id = :mandate)"
                " + (SELECT count(*) FROM key_route r WHERE r.mandate_id = :mandate AND key_hash = :hash)"
            ),
            {"user": member, "mandate": mandate.id, "hash": token_hash(mandate.keys["member"])},
        )
    assert left == 0
    # The others stay.
    assert (await client.get("/v1/whoami", headers=mandate.auth("admin"))).status_code == 200


async def test_coming_back_does_not_bring_old_credentials_back(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    member = mandate.users["member"]
    await client.delete(f"/v1/members/{member}", headers=mandate.auth())
    back = await client.post(
        "/v1/members", headers=mandate.auth(), json={"userId": str(member), "role": "member"}
    )
    assert back.status_code == 201
    assert (await client.get("/v1/whoami", headers=mandate.auth("member"))).status_code == 401


async def test_a_demoted_admin_has_a_members_rights_with_the_next_request(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    admin = mandate.users["admin"]
    assert (await client.patch("/v1/policy", json={}, headers=mandate.auth("admin"))).status_code == 200
    await client.patch(f"/v1/members/{admin}", json={"role": "member"}, headers=mandate.auth())
    assert (await client.patch("/v1/policy", json={}, headers=mandate.auth("admin"))).status_code == 403
