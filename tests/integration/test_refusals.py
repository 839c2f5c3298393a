"""What is refused before any noun has a say: methods, bodies, and a store that takes nothing."""

import json

import httpx
import pytest
from fastapi import FastAPI

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
