"""What no store can hold is refused at the door, on every route: a NUL or half a surrogate pair is never a 500."""

import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateway.db import new_id
from gateway.wire import METADATA_BYTES
from tests.fixtures.tenants import TestMandate

NUL, HALF = "x\x00y", "x\ud800y"


def _value(schema: dict[str, Any], text: str, named: dict[str, Any], depth: int = 0) -> Any:
    """The fullest value of a schema, with `text` wherever free text may stand."""
    if "$ref" in schema:
        return _value(named[schema["$ref"].rpartition("/")[2]], text, named, depth)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _value(schema[several][0], text, named, depth)
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        if "properties" not in schema:
            return {"a": text, "b": [{"c": text}]}
        return {name: _value(inner, text, named, depth + 1) for name, inner in schema["properties"].items()}
    if kind == "array":
        return [] if depth > 6 else [_value(schema.get("items", {}), text, named, depth + 1)]
    if kind == "string":
        formats = {"uuid": str(new_id()), "date-time": "2026-01-01T00:00:00Z", "email": "a@example.org"}
        return formats.get(schema.get("format", ""), text)
    return {"integer": 1, "number": 1.0, "boolean": False, "null": None}.get(kind or "", text)


def _calls(app: FastAPI, text: str) -> list[tuple[str, str, dict[str, Any]]]:
    described = app.openapi()
    named = described["components"]["schemas"]
    found: list[tuple[str, str, dict[str, Any]]] = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            query: dict[str, Any] = {}
            filled = path
            for parameter in operation.get("parameters", ()):
                value = _value(parameter["schema"], text, named)
                if parameter["in"] == "path":
                    plain = value if isinstance(value, int) or parameter["schema"].get("format") else "x"
                    filled = filled.replace("{" + parameter["name"] + "}", str(plain))
                elif text == NUL:  # half a pair cannot be written into an address
                    query[parameter["name"]] = value
            options: dict[str, Any] = {"params": query}
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                body = _value(content["application/json"]["schema"], text, named)
                options["content"] = json.dumps(body)
                options["headers"] = {"Content-Type": "application/json"}
            found.append((method.upper(), filled, options))
    return found


@pytest.mark.parametrize("text", [NUL, HALF], ids=["nul", "half a surrogate pair"])
async def test_no_route_breaks_on_text_that_cannot_be_stored(
    app: FastAPI, client: httpx.AsyncClient, mandate: TestMandate, text: str
) -> None:
    broken: list[str] = []
    for method, path, options in _calls(app, text):
        headers = options.pop("headers", {}) | mandate.auth("operator")
        answer = await client.request(method, path, headers=headers, timeout=30, **options)
        refused = answer.status_code >= 400
        if answer.status_code >= 500 or (refused and "problem+json" not in answer.headers["content-type"]):
            broken.append(f"{method} {path}: {answer.status_code}")
    assert broken == []


@pytest.mark.parametrize(
    "field",
    [{"title": NUL}, {"tags": [NUL]}, {"metadata": {"deep": [{"down": NUL}]}}, {"type": HALF}, {"uri": HALF}],
)
async def test_each_field_is_named_in_the_refusal(
    client: httpx.AsyncClient, mandate: TestMandate, field: dict[str, Any]
) -> None:
    body = {"sourceKind": "paste", "sourceId": "a", "content": {"text": "hello"}, **field}
    answer = await client.post(
        "/v1/ingestions",
        content=json.dumps(body),
        headers=mandate.auth() | {"Content-Type": "application/json"},
    )
    assert answer.status_code == 422
    assert next(iter(field)) in answer.json()["errors"][0]["field"]


async def test_a_body_is_refused_at_the_first_byte_too_many(
    app: FastAPI, client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    limit = app.state.settings.upload_limit_bytes * 4 // 3 + 1024 * 1024
    read = 0

    async def endless():
        nonlocal read
        piece = b"x" * 1024 * 1024
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        yield head
        while read <= 2 * limit:
            read += len(piece)
            yield piece

    declared = await client.post(
        "/v1/ingestions", headers=mandate.auth() | {"Content-Length": str(limit + 1)}, content=b"{}"
    )
    assert (declared.status_code, declared.json()["code"]) == (413, "content.too_large")
    streamed = await client.post(
        "/v1/files",
        headers=mandate.auth() | {"Content-Type": "multipart/form-data; boundary=b"},
        content=endless(),
    )
    assert (streamed.status_code, streamed.json()["code"]) == (413, "content.too_large")
    assert read <= limit + 1024 * 1024


TOO_DEEP = '{"a":' * 300 + "1" + "}" * 300


@pytest.mark.parametrize(
    "value",
    [str(2**64), str(-(2**63) - 1), "[[" + "9" * 400 + "]]", TOO_DEEP, "NaN", "-Infinity", "1e999"],
    ids=["2^64", "-2^63-1", "400 digits", "300 levels", "NaN", "-Infinity", "1e999"],
)
async def test_what_json_can_say_and_no_store_can_hold_is_refused_by_its_name(
    client: httpx.AsyncClient, mandate: TestMandate, value: str
) -> None:
    headers = mandate.auth() | {"Content-Type": "application/json"}
    request = '{"sourceKind": "paste", "sourceId": "a", '
    made = await client.post("/v1/ingestions", content=request + '"content": {"text": "x"}}', headers=headers)
    document = f"/v1/documents/{made.json()['documentId']}"
    located = (
        f'"content": {{"objects": [{{"text": "x", "locator": {{"kind": "text", "charStart": {value}}}}}]}}}}'
    )
    for method, path, body, field in (
        ("POST", "/v1/ingestions", f'{request}"content": {{"text": "x"}}, "metadata": {{"n": {value}}}}}', "metadata"),
        ("POST", "/v1/ingestions", request + located, "locator"),
        ("PATCH", document, f'{{"metadata": {{"n": {value}}}}}', "metadata"),
        ("POST", "/v1/entries", f'{{"title": "t", "content": "c", "metadata": {{"n": {value}}}}}', "metadata"),
        ("POST", "/v1/events", f'{{"type": "MandateUpdated", "payload": {{"n": {value}}}}}', "payload"),
    ):  # fmt: skip
        answer = await client.request(method, path, content=body, headers=headers)
        assert answer.status_code == 422, (method, path, answer.text)
        assert field in answer.json()["errors"][0]["field"]


async def test_numbers_of_64_bits_and_a_hundred_levels_are_kept_as_they_are(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    deep: dict[str, Any] = {"most": 2**64 - 1, "least": -(2**63), "part": 0.5}
    for _ in range(99):
        deep = {"a": deep}
    body = {"sourceKind": "paste", "sourceId": "a", "content": {"text": "x"}, "metadata": deep}
    made = await client.post("/v1/ingestions", json=body, headers=mandate.auth())
    assert made.status_code == 202
    kept = await client.get(f"/v1/documents/{made.json()['documentId']}", headers=mandate.auth())
    assert kept.json()["metadata"] == deep


async def test_metadata_has_a_limit(client: httpx.AsyncClient, mandate: TestMandate) -> None:
    """It travels with every row of a list."""
    body = {"sourceKind": "paste", "sourceId": "a", "content": {"text": "x"}}
    full = {"a": "x" * (METADATA_BYTES - 8)}
    made = await client.post("/v1/ingestions", json=body | {"metadata": full}, headers=mandate.auth())
    assert made.status_code == 202
    larger = {"metadata": {"a": full["a"] + "x"}}
    document = f"/v1/documents/{made.json()['documentId']}"
    for method, path, sent in (
        ("POST", "/v1/ingestions", body | larger),
        ("PATCH", document, larger),
        ("POST", "/v1/entries", {"title": "t", "content": "c"} | larger),
    ):
        answer = await client.request(method, path, json=sent, headers=mandate.auth())
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "body.metadata")
        assert "65536 bytes" in answer.json()["detail"]


async def test_a_cursor_of_digits_beyond_all_numbers_is_none_of_ours(
    client: httpx.AsyncClient, mandate: TestMandate
) -> None:
    made = await client.post(
        "/v1/ingestions",
        json={"sourceKind": "paste", "sourceId": "a", "content": {"text": "x"}},
        headers=mandate.auth(),
    )
    chunks = f"/v1/documents/{made.json()['documentId']}/chunks"
    for cursor in ("9" * 30, "9" * 5000, "²"):
        answer = await client.get(chunks, params={"cursor": cursor}, headers=mandate.auth())
        assert answer.status_code in {200, 400, 422}, cursor
