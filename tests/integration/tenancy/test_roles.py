"""The matrix: what each kind of caller gets from each route."""

from uuid import UUID

import httpx
import pytest

from gateway.db import Database
from tests.fixtures.tenants import TestMandate, make_mandate

# (method, path, body) → status for owner, admin, member, service (scopes read, write, act_as). `{x}` is filled in below.
MATRIX: list[tuple[str, str, object, tuple[int, int, int, int]]] = [
    ("GET", "/v1/whoami", None, (200, 200, 200, 200)),
    ("GET", "/v1/mandates", None, (200, 200, 200, 200)),
    ("GET", "/v1/mandates/{mandate}", None, (200, 200, 200, 200)),
    ("GET", "/v1/mandates/{other_mandate}", None, (404, 404, 404, 404)),
    ("POST", "/v1/mandates", {"slug": "never", "name": "Never"}, (403, 403, 403, 403)),
    ("PATCH", "/v1/mandates/{mandate}", {"name": "New name"}, (200, 200, 403, 403)),
    ("PATCH", "/v1/mandates/{other_mandate}", {"name": "New name"}, (404, 404, 403, 403)),
    ("GET", "/v1/policy", None, (200, 200, 200, 200)),
    ("PATCH", "/v1/policy", {"graceDays": 1}, (200, 200, 403, 403)),
    ("GET", "/v1/users", None, (200, 200, 200, 200)),
    ("GET", "/v1/users/{member}", None, (200, 200, 200, 200)),
    ("GET", "/v1/users/{stranger}", None, (404, 404, 404, 404)),
    ("POST", "/v1/users", {"email": "n@example.org", "displayName": "N"}, (201, 201, 403, 403)),
    (
        "POST",
        "/v1/users",
        {"email": "n@example.org", "displayName": "N", "role": "admin"},
        (201, 201, 403, 403),
    ),
    (
        "POST",
        "/v1/users",
        {"email": "n@example.org", "displayName": "N", "role": "owner"},
        (201, 403, 403, 403),
    ),
    ("PATCH", "/v1/users/{member}", {"displayName": "Renamed"}, (200, 200, 200, 403)),
    ("PATCH", "/v1/users/{admin}", {"displayName": "Renamed"}, (200, 200, 403, 403)),
    ("PATCH", "/v1/users/{stranger}", {"displayName": "Renamed"}, (404, 404, 403, 403)),
    ("DELETE", "/v1/users/{member}", None, (204, 204, 403, 403)),
    ("DELETE", "/v1/users/{owner}", None, (409, 403, 403, 403)),
    ("DELETE", "/v1/users/{stranger}", None, (404, 404, 403, 403)),
    ("GET", "/v1/members", None, (200, 200, 200, 200)),
    ("GET", "/v1/members/{admin}", None, (200, 200, 200, 200)),
    ("GET", "/v1/members/{stranger}", None, (404, 404, 404, 404)),
    ("POST", "/v1/members", {"userId": "{member}", "role": "member"}, (409, 409, 403, 403)),
    ("POST", "/v1/members", {"userId": "{stranger}", "role": "member"}, (404, 404, 403, 403)),
    ("PATCH", "/v1/members/{member}", {"role": "admin"}, (200, 200, 403, 403)),
    ("PATCH", "/v1/members/{member}", {"role": "owner"}, (200, 403, 403, 403)),
    ("PATCH", "/v1/members/{owner}", {"role": "owner"}, (200, 403, 403, 403)),
    ("PATCH", "/v1/members/{owner}", {"role": "member"}, (409, 403, 403, 403)),
    ("PATCH", "/v1/members/{stranger}", {"role": "member"}, (404, 404, 403, 403)),
    ("DELETE", "/v1/members/{member}", None, (204, 204, 204, 403)),
    ("DELETE", "/v1/members/{admin}", None, (204, 204, 403, 403)),
    ("DELETE", "/v1/members/{owner}", None, (409, 403, 403, 403)),
    ("DELETE", "/v1/members/{stranger}", None, (404, 404, 403, 403)),
    ("GET", "/v1/feature-instances", None, (200, 200, 200, 200)),
    ("POST", "/v1/feature-instances", {"featureCode": "crm", "label": "CRM"}, (201, 201, 403, 403)),
    ("GET", "/v1/keys", None, (200, 200, 200, 200)),
    ("POST", "/v1/keys", {"name": "mine", "scopes": ["read"]}, (201, 201, 201, 400)),
    ("POST", "/v1/keys", {"name": "mine", "scopes": ["read", "admin"]}, (201, 201, 403, 400)),
    ("POST", "/v1/keys", {"name": "mine", "scopes": ["operator"]}, (403, 403, 403, 400)),
    ("POST", "/v1/keys", {"name": "mine", "scopes": ["act_as"]}, (400, 400, 400, 400)),
    ("POST", "/v1/keys", {"name": "s", "service": "s", "scopes": ["read"]}, (201, 201, 403, 403)),
    ("POST", "/v1/keys", {"name": "s", "service": "s", "scopes": ["read", "act_as"]}, (201, 201, 403, 403)),
    ("POST", "/v1/keys", {"name": "s", "service": "s", "scopes": ["operator"]}, (403, 403, 403, 403)),
    ("POST", "/v1/keys", {"name": "x", "userId": "{member}", "scopes": ["read"]}, (201, 201, 201, 403)),
    ("POST", "/v1/keys", {"name": "x", "userId": "{owner}", "scopes": ["read"]}, (201, 403, 403, 403)),
    ("POST", "/v1/keys", {"name": "x", "userId": "{stranger}", "scopes": ["read"]}, (404, 404, 403, 403)),
    ("POST", "/v1/keys", {"name": "x", "userId": "{member}", "service": "s"}, (400, 400, 400, 400)),
    ("POST", "/v1/login-links", {}, (201, 201, 201, 400)),
    ("POST", "/v1/login-links", {"userId": "{member}"}, (201, 201, 201, 403)),
    ("POST", "/v1/login-links", {"userId": "{owner}"}, (201, 403, 403, 403)),
    ("POST", "/v1/login-links", {"userId": "{stranger}"}, (404, 404, 404, 404)),
    ("GET", "/v1/openapi.json", None, (200, 200, 200, 200)),
]


def _fill(value: object, names: dict[str, UUID]) -> object:
    if isinstance(value, str):
        return value.format(**names) if "{" in value else value
    if isinstance(value, dict):
        return {key: _fill(item, names) for key, item in value.items()}
    return value


@pytest.fixture(scope="module")
async def settled(db: Database) -> tuple[TestMandate, TestMandate]:
    """Two mandates for requests that change nothing."""
    return await make_mandate(db), await make_mandate(db)


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"), MATRIX, ids=[f"{m} {p} {b or ''}" for m, p, b, _ in MATRIX]
)
async def test_each_caller_gets_what_the_matrix_says(
    client: httpx.AsyncClient,
    db: Database,
    settled: tuple[TestMandate, TestMandate],
    method: str,
    path: str,
    body: object,
    expected: tuple[int, ...],
) -> None:
    for caller, status in zip(("owner", "admin", "member", "service"), expected, strict=True):
        mandate, other_mandate = settled
        if status < 300 and method != "GET":
            mandate = await make_mandate(db)
        names = {
            **mandate.users,
            "stranger": other_mandate.users["member"],
            "mandate": mandate.id,
            "other_mandate": other_mandate.id,
        }
        answer = await client.request(
            method, str(_fill(path, names)), headers=mandate.auth(caller), json=_fill(body, names)
        )
        assert answer.status_code == status, (caller, answer.text)
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["code"] in {"auth.forbidden", "not_found", "conflict", "request.invalid"}


@pytest.mark.parametrize("scopes", [["read"], ["write"], ["admin"], ["read", "write"]])
async def test_an_owners_key_does_no_more_than_its_scopes(
    client: httpx.AsyncClient, mandate: TestMandate, scopes: list[str]
) -> None:
    made = await client.post("/v1/keys", headers=mandate.auth(), json={"name": "narrow", "scopes": scopes})
    headers = {"Authorization": f"Bearer {made.json()['key']}"}
    assert ((await client.get("/v1/users", headers=headers)).status_code == 200) == ("read" in scopes)
    new = await client.post("/v1/keys", headers=headers, json={"name": "child", "scopes": scopes})
    assert (new.status_code == 201) == ("write" in scopes)
    assert ((await client.patch("/v1/policy", headers=headers, json={})).status_code == 200) == (
        "admin" in scopes
    )
    more = await client.post(
        "/v1/keys", headers=headers, json={"name": "more", "scopes": [*scopes, "operator"]}
    )
    assert more.status_code == 403
    link = await client.post("/v1/login-links", headers=headers, json={})
    assert link.status_code == 403, "a session would have more rights than this key"
