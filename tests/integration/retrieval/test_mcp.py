"""The SDK's own client against a real server: tools, citations, resources, and the same keys and roles as HTTP."""

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from sqlalchemy import text

from gateway.corpus.boundary import unwrap
from gateway.db import Database, new_id
from gateway.insights.query_log import QueryLog
from gateway.mcp_tools import NOTHING_FITS
from gateway.tenancy import service as tenancy
from tests.fixtures.tenants import TestMandate
from tests.integration.retrieval.conftest import Shelf

REFUNDS = (
    "Refunds are paid out within five working days after the returned goods have arrived in our warehouse."
)
HEADER = re.compile(r"^\[entry (\S+) · chunk (\S+) · score ([0-9.]+)\] ?(.*)$")
ALL_TOOLS = {"knowledge_search", "knowledge_context", "knowledge_ingest", "knowledge_reindex"}
# both eras of the protocol: the handshake of 2025 and the per-request envelope of 2026
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])


@asynccontextmanager
async def agent(address: str, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=20) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        async with Client(transport, mode=mode, cache=None) as client:
            yield client


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content]


@MODES
async def test_an_agent_lists_the_tools_searches_and_gets_a_citation(
    address: str, mandate: TestMandate, shelf: Shelf, mode: str
) -> None:
    loaded = await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds", uri="https://a.example/r")
    async with agent(address, mandate.keys["owner"], mode) as client:
        listed = (await client.list_tools()).tools
        assert {tool.name for tool in listed} == ALL_TOOLS
        found = await client.call_tool("knowledge_search", {"query": "when are refunds paid out"})
    assert not found.is_error
    (block,) = texts(found)
    line, _, passage = block.partition("\n")
    header = HEADER.match(line)
    assert header is not None
    assert header.groups()[:2] == (str(loaded.document_ids[0]), str(loaded.chunk_ids[0]))
    assert header[4] == "Refunds"
    assert unwrap(passage) == REFUNDS
    citation = found.structured_content["hits"][0]["citation"]
    assert (citation["uri"], citation["chunkId"]) == ("https://a.example/r", header[2])


async def test_a_search_over_mcp_is_logged_as_such(
    address: str, mandate: TestMandate, shelf: Shelf, query_log: QueryLog, client: httpx.AsyncClient
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    async with agent(address, mandate.keys["owner"]) as connected:
        await connected.call_tool("knowledge_search", {"query": "refunds", "agentDeploymentId": "bot"})
    await query_log.drained()
    logged = await client.get("/v1/insights/queries?origin=mcp", headers=mandate.auth())
    assert [item["query"] for item in logged.json()["items"]] == ["refunds"]


async def test_an_agent_is_told_when_the_nearest_is_not_about_its_question(
    address: str, mandate: TestMandate, shelf: Shelf
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds")
    async with agent(address, mandate.keys["owner"]) as client:
        found = await client.call_tool("knowledge_search", {"query": "zzqq flurbo"})
        misspelt = await client.call_tool(
            "knowledge_search", {"query": "refunds", "sourceKinds": ["uploads"]}
        )
    assert texts(found)[0] == NOTHING_FITS  # before an agent reads what does not answer it
    assert len(texts(found)) == 2
    assert misspelt.is_error
    assert "sourceKinds" in texts(misspelt)[0]
    assert found.structured_content["answered"] is False


async def test_a_context_comes_in_one_block(address: str, mandate: TestMandate, shelf: Shelf) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds")
    async with agent(address, mandate.keys["owner"]) as client:
        found = await client.call_tool(
            "knowledge_context", {"query": "when are refunds paid", "tokenBudget": 400}
        )
    (block,) = texts(found)
    assert REFUNDS in block
    assert found.structured_content["tokens"] <= 400
    assert found.structured_content["passages"][0]["title"] == "Refunds"


async def test_what_an_agent_hands_in_is_queued_once(
    address: str, mandate: TestMandate, client: httpx.AsyncClient
) -> None:
    entry = {"title": "Learned", "content": "The printer needs a kick.", "type": "note", "tags": ["printer"]}
    async with agent(address, mandate.keys["member"]) as connected:
        first = await connected.call_tool("knowledge_ingest", entry)
        again = await connected.call_tool("knowledge_ingest", entry)
        assert first.structured_content["outcome"] == "queued"
        assert again.structured_content["outcome"] == "duplicate"
        document = first.structured_content["documentId"]
        redone = await connected.call_tool("knowledge_reindex", {"documentId": document})
        assert redone.structured_content["outcome"] == "queued"
    shown = (await client.get(f"/v1/documents/{document}", headers=mandate.auth("member"))).json()
    assert (shown["title"], shown["tags"], shown["revision"]) == ("Learned", ["printer"], 2)


async def _key(db: Database, mandate: TestMandate, *scopes: Any) -> str:
    async with db.tenant_session(mandate.id) as session:
        _, key = await tenancy.make_key(session, "narrow", scopes, user_id=mandate.users["member"])
    return key


@MODES
async def test_a_key_without_the_scope_sees_less_and_is_refused(
    db: Database, address: str, mandate: TestMandate, mode: str
) -> None:
    async with agent(address, await _key(db, mandate, "read"), mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "knowledge_search",
            "knowledge_context",
        }
        for tool, arguments in (
            ("knowledge_ingest", {"title": "No", "content": "Never."}),
            ("knowledge_reindex", {"documentId": str(new_id())}),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error
            assert texts(refused)[0].startswith("auth.forbidden: ")
    async with httpx.AsyncClient(verify=False, base_url=address) as http:
        assert (await http.get("/v1/documents", headers=mandate.auth("member"))).json()["items"] == []


async def test_no_key_and_no_scope_read_do_not_get_in(
    db: Database, address: str, mandate: TestMandate
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with httpx.AsyncClient(verify=False, base_url=address) as http:
        assert (await http.post("/mcp", json=message)).status_code == 401
        narrow = {"Authorization": f"Bearer {await _key(db, mandate, 'write')}"}
        assert (await http.post("/mcp", json=message, headers=narrow)).status_code == 403


async def test_a_member_cannot_reindex_what_is_not_theirs(
    address: str, mandate: TestMandate, other_mandate: TestMandate, shelf: Shelf
) -> None:
    shared = await shelf.put(mandate.id, "shared", REFUNDS, user_id=mandate.users["owner"])
    foreign = await shelf.put(other_mandate.id, "foreign", REFUNDS)
    async with agent(address, mandate.keys["member"]) as client:
        for document, code in ((shared, "auth.forbidden"), (foreign, "not_found")):
            refused = await client.call_tool(
                "knowledge_reindex", {"documentId": str(document.document_ids[0])}
            )
            assert refused.is_error
            assert texts(refused)[0].startswith(code)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("knowledge_search", {}, "request.invalid"),
        ("knowledge_search", {"query": "x", "limit": 0}, "request.invalid"),
        ("knowledge_search", {"query": "x", "colour": "red"}, "request.invalid"),
        ("knowledge_search", {"query": "…"}, "search.query_empty"),
        ("knowledge_ingest", {"title": "t", "content": " "}, "request.invalid"),
        ("knowledge_ingest", {"title": "a\x00", "content": "c"}, "request.invalid"),
        ("knowledge_reindex", {"documentId": "7"}, "request.invalid"),
    ],
)
async def test_wrong_arguments_are_an_answer_the_model_can_read(
    address: str, mandate: TestMandate, tool: str, arguments: dict[str, Any], code: str
) -> None:
    async with agent(address, mandate.keys["owner"], "legacy") as client:
        refused = await client.call_tool(tool, arguments)
        assert refused.is_error
        assert texts(refused)[0].startswith(code)
        assert (await client.list_tools()).tools  # the session goes on


async def test_an_unknown_tool_is_a_protocol_error(address: str, mandate: TestMandate) -> None:
    async with agent(address, mandate.keys["owner"]) as client:
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("knowledge_delete", {})


async def test_documents_are_resources_to_those_who_may_see_them(
    db: Database, address: str, mandate: TestMandate, shelf: Shelf
) -> None:
    shared = await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds")
    mine = await shelf.put(
        mandate.id, "diary", "Dear diary.", title="Diary", scope="personal", user_id=mandate.users["owner"]
    )
    async with db.tenant_session(mandate.id) as session:
        await session.execute(
            text("INSERT INTO document_text (mandate_id, document_id, text) VALUES (:m, :d, :t)"),
            {"m": mandate.id, "d": shared.document_ids[0], "t": REFUNDS},
        )
    async with agent(address, mandate.keys["member"]) as client:
        listed = (await client.list_resources()).resources
        assert [resource.name for resource in listed] == ["Refunds"]
        read = await client.read_resource(listed[0].uri)
        assert unwrap(read.contents[0].text) == REFUNDS
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["catchment://documents/{documentId}"]
        for uri in (
            f"catchment://documents/{mine.document_ids[0]}",
            "catchment://documents/x",
            "file:///etc/passwd",
            str(shared.document_ids[0]),
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


async def test_what_is_everybodys_is_read_by_all_and_looked_after_by_operators(
    db: Database, address: str, mandate: TestMandate, shelf: Shelf, commons: UUID
) -> None:
    loaded = await shelf.put(commons, "refunds", REFUNDS, title="Refunds", scope="global")
    document = loaded.document_ids[0]
    async with db.tenant_session(commons) as session:
        await session.execute(
            text("INSERT INTO document_text (mandate_id, document_id, text) VALUES (:m, :d, :t)"),
            {"m": commons, "d": document, "t": REFUNDS},
        )
    async with agent(address, mandate.keys["owner"]) as client:
        found = await client.call_tool("knowledge_search", {"query": "when are refunds paid out"})
        assert str(document) in texts(found)[0]
        read = await client.read_resource(f"catchment://documents/{document}")
        assert unwrap(read.contents[0].text) == REFUNDS
        refused = await client.call_tool("knowledge_reindex", {"documentId": str(document)})
        assert texts(refused)[0].startswith("auth.forbidden")
    async with agent(address, mandate.keys["operator"]) as client:
        done = await client.call_tool("knowledge_reindex", {"documentId": str(document)})
        assert not done.is_error


async def test_an_agent_narrows_a_search_like_everybody_else(
    address: str, mandate: TestMandate, shelf: Shelf
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds")
    cases: list[tuple[dict[str, Any], int]] = [
        ({"limit": 100}, 1),
        ({"sourceId": "refunds", "from": "2020-01-01"}, 1),
        ({"sourceId": "other"}, 0),
        ({"to": "2020-01-01T00:00:00Z"}, 0),
    ]
    async with agent(address, mandate.keys["owner"]) as client:
        for narrowed, hits in cases:
            found = await client.call_tool("knowledge_search", {"query": "refunds paid", **narrowed})
            assert not found.is_error, texts(found)
            assert len((found.structured_content or {})["hits"]) == hits, narrowed


async def test_an_agent_that_starts_a_command_gets_the_same_over_stdio(
    address: str, mandate: TestMandate, shelf: Shelf
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds")
    program = "import sys; from gateway.commands.mcp import mcp; mcp(url=sys.argv[1], api_key=sys.argv[2])"
    command = StdioServerParameters(
        command=sys.executable,
        args=["-c", program, address, mandate.keys["owner"]],
        cwd=Path(__file__).parents[3],
    )
    async with Client(command, cache=None) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == ALL_TOOLS
        found = await client.call_tool("knowledge_search", {"query": "when are refunds paid out"})
        assert HEADER.match(texts(found)[0].splitlines()[0])
        refused = await client.call_tool("knowledge_search", {"query": "…"})
        assert refused.is_error
        assert len((await client.list_resources()).resources) == 1
