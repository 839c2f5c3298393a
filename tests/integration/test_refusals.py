"""What is refused before any noun has a say: methods, bodies, and a store that takes nothing."""

import json
import re

import httpx
import pytest
from fastapi import FastAPI

from gateway.db import new_id
from gateway.settings import Settings
from tests.fixtures.tenants import TestMandate


@pytest.mark.parametrize(
    ("path", "allowed"), [("/v1/mandates", "GET, POST"), ("/v1/policy", "GET, PATCH"), ("/v1/whoami", "GET")]
)
async def test_a_wrong_method_is_told_every_right_one(
    client: httpx.AsyncClient, mandate: TestMandate, path: str, allowed: str
) -> None:
    answer = await client.put(path, headers=mandate.auth())
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "sent_as", ["text/plain", "application/x-www-form-urlencoded", "application/xml", None]
)
async def test_a_body_that_is_not_sent_as_json_is_told_how_to_send_it(
    client: httpx.AsyncClient, mandate: TestMandate, sent_as: str | None
) -> None:
    headers = mandate.auth() | ({"Content-Type": sent_as} if sent_as else {})
    for method, path, body in (("POST", "/v1/users", {"email": "a@b"}), ("PATCH", "/v1/policy", {})):
        answer = await client.request(method, path, content=json.dumps(body), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "content.unsupported")
        assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize("body", [b'{"slug":"\xff"}', b"[" * 100_000], ids=["no UTF-8", "too deep"])
async def test_a_body_nobody_can_read_is_said_to_be_that(
    client: httpx.AsyncClient, mandate: TestMandate, body: bytes
) -> None:
    headers = mandate.auth() | {"Content-Type": "application/json"}
    answer = await client.post("/v1/users", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "request.invalid")
    assert "body" in answer.json()["detail"]


async def test_a_parameter_that_no_route_knows_is_refused_everywhere(
    app: FastAPI, client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    """Ignored, a misspelt filter would answer with everything."""
    open_to_vendors = {
        "/v1/webhooks/{authority}",
        "/v1/oauth/{authority}/start",
        "/v1/oauth/{authority}/callback",
    }
    lenient: list[str] = []
    for path, methods in app.openapi()["paths"].items():
        filled = re.sub(r"{\w+}", str(new_id()), path).replace(".png", "1.png")
        for method in set(methods) if path not in open_to_vendors else ():
            answer = await client.request(
                method.upper(), filled, params={"bogus": "1"}, headers=mandate.auth("operator")
            )
            fields = [one["field"] for one in answer.json().get("errors", ())]
            if answer.status_code != 422 or "query.bogus" not in fields:
                lenient.append(f"{method} {path}: {answer.status_code} {fields}")
    assert lenient == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/documents?source=note-1", "query.source"),
        ("/documents?tags=zzz", "query.tags"),
        ("/documents?status=bogus", "query.status"),
        ("/documents?sourceKind=bogus", "query.sourceKind"),
        ("/entries?type=rule", "query.type"),
    ],
)
async def test_a_filter_that_is_none_is_named(
    client: httpx.AsyncClient, mandate: TestMandate, path: str, field: str
) -> None:
    answer = await client.get(f"/v1{path}", headers=mandate.auth())
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


async def test_a_full_or_absent_store_of_originals_is_a_503_that_asks_to_come_again(
    client: httpx.AsyncClient, app: FastAPI, settings: Settings, mandate: TestMandate
) -> None:
    """A file where the mandate's folder should be stands for a disk that takes nothing."""
    in_the_way = settings.data_dir / "blobs" / str(mandate.id)
    in_the_way.write_text("")
    large = {"file": ("large.txt", b"word " * 50_000)}
    refused = await client.post("/v1/files", files=large, headers=mandate.auth())
    in_the_way.unlink()
    assert (refused.status_code, refused.json()["code"]) == (503, "store.unavailable")
    assert refused.headers["retry-after"]
    assert str(settings.data_dir) not in refused.text
    assert (await client.post("/v1/files", files=large, headers=mandate.auth())).status_code == 202
