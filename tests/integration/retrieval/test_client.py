"""The client and the command line against the gateway itself, behind a real server."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from gateway.client import CatchmentClient, SyncCatchmentClient
from gateway.errors import InvalidRequest, NotAuthenticated
from tests.fixtures.processes import REPOSITORY
from tests.fixtures.tenants import TestMandate
from tests.integration.retrieval.conftest import Shelf

REFUNDS = (
    "Refunds are paid out within five working days after the returned goods have arrived in our warehouse."
)


@pytest.fixture
async def catchment(address: str, mandate: TestMandate) -> AsyncIterator[CatchmentClient]:
    async with CatchmentClient(address, mandate.keys["owner"]) as client:
        yield client


async def test_handing_in_and_looking_after(catchment: CatchmentClient) -> None:
    handle = await catchment.ingest("Some text.", source_id="a", title="A", tags=["x"])
    assert (await catchment.status(handle)).status == "pending"
    uploaded = await catchment.upload(b"a file", name="b.txt", title="B", scope="mandate", neutralize=True)
    assert {document.title for document in (await catchment.documents()).items} == {"A", "B"}
    assert handle.document_id
    assert uploaded.document_id
    assert (await catchment.document(uploaded.document_id)).scope == "mandate"
    assert (await catchment.delete(handle.document_id))["status"] == "done"
    assert [document.title for document in (await catchment.documents(sourceKind="upload")).items] == ["B"]


async def test_finding(catchment: CatchmentClient, mandate: TestMandate, shelf: Shelf) -> None:
    loaded = await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds", tags=["money"])
    found = await catchment.search("when are refunds paid out", tags=["money"])
    assert [(hit.chunk_id, hit.text) for hit in found.hits] == [(loaded.chunk_ids[0], REFUNDS)]
    await shelf.put(mandate.id, "copy", REFUNDS, title="Copy")
    (hit,) = (await catchment.search("when are refunds paid out")).hits
    assert [source.title for source in hit.sources] == ["Refunds", "Copy"]
    assert (await catchment.search("refunds", tags=["other"])).hits == []
    context = await catchment.context("when are refunds paid out", token_budget=500)
    assert REFUNDS in context.text
    assert await catchment.cite("turn-1", loaded.chunk_ids) == 1


async def test_errors_arrive_as_what_they_are(address: str, catchment: CatchmentClient) -> None:
    with pytest.raises(InvalidRequest, match="no letter"):
        await catchment.search("…")
    async with CatchmentClient(address, "ck_wrong") as stranger:
        with pytest.raises(NotAuthenticated):
            await stranger.documents()


async def test_the_synchronous_face(address: str, mandate: TestMandate, shelf: Shelf) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)

    def work() -> str:
        with SyncCatchmentClient(address, mandate.keys["owner"]) as client:
            return client.search("refunds", limit=1).hits[0].text

    assert await asyncio.to_thread(work) == REFUNDS


# -- catchment search


async def run(address: str, mandate: TestMandate, *arguments: str) -> str:
    """As a process of its own, as people run it."""
    program = "import typer; from gateway.commands.search import search; typer.run(search)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments, "--url", address, "--api-key", mandate.keys["owner"],
        stdout=subprocess.PIPE, cwd=REPOSITORY,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_a_search_on_the_terminal_shows_passage_and_place(
    address: str, mandate: TestMandate, shelf: Shelf
) -> None:
    await shelf.put(
        mandate.id,
        "refunds",
        f"{REFUNDS} \x1b[31mred\x1b[0m",
        title="Refund [bold]policy",
        uri="https://a.example/r",
    )
    shown = await run(address, mandate, "when are refunds paid out")
    for part in (
        "1. Refund [bold]policy",
        "paste · characters 0–",
        "https://a.example/r",
        "Refunds are paid out",
    ):
        assert part in shown
    assert "\x1b[31m" not in shown  # a document cannot colour our terminal
    assert (await run(address, mandate, "refunds", "--tag", "none")).strip() == "Nothing was found."


async def test_a_text_from_several_sources_is_shown_once_and_names_them(
    address: str, mandate: TestMandate, shelf: Shelf
) -> None:
    for number in range(6):
        await shelf.put(mandate.id, f"copy {number}", REFUNDS, title=f"Copy\n{number}")
    shown = await run(address, mandate, "refunds")
    assert "1. Copy 0" in shown
    assert "   also in Copy 1, Copy 2, Copy 3 and 2 more\n" in shown
    assert "1 hit in" in shown


async def test_an_empty_answer_says_what_is_still_on_its_way(
    address: str, mandate: TestMandate, catchment: CatchmentClient
) -> None:
    await catchment.ingest("Some text.", source_id="a")
    shown = await run(address, mandate, "refunds")
    assert "Nothing was found." in shown
    assert "1 document(s) still being indexed" in shown


async def test_json_is_what_the_api_says(address: str, mandate: TestMandate, shelf: Shelf) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS, type="rule")
    shown = await run(
        address, mandate, "refunds", "--json", "--type", "rule", "--type", "note", "--limit", "1"
    )
    (hit,) = json.loads(shown)["hits"]
    assert hit["text"] == REFUNDS
    assert hit["citation"]["sourceKind"] == "paste"
