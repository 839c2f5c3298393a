"""Answers: streamed, cited by what entered the prompt, kept per turn, honest about who spoke and how it ended."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from gateway.connections import repository as connections
from gateway.corpus.answers import NOT_A_MODEL, NOTHING_FOUND
from gateway.corpus.chat import ChatModel
from gateway.db import Database, new_id
from gateway.insights import repository
from tests.fixtures.chat_service import DONE, ChatService, chat_service, said
from tests.fixtures.processes import until
from tests.fixtures.tenants import TestMandate
from tests.integration.retrieval.conftest import Shelf

REFUNDS = (
    "Refunds are paid out within five working days after the returned goods have arrived in our warehouse."
)
HOLIDAYS = "Every employee has thirty days of paid holiday per year, to be agreed with the team beforehand."


@pytest.fixture
async def service(app: FastAPI) -> AsyncIterator[ChatService]:
    """A model for the gateway to speak through, for one test."""
    async with chat_service() as service:
        app.state.chat_model = ChatModel("m-1", api_key=None, base_url=service.url, first_pause=0.001)
        yield service
        await app.state.chat_model.aclose()
        app.state.chat_model = None


class Answer:
    """The frames of one stream, by kind."""

    def __init__(self, events: list[tuple[str, Any]]) -> None:
        self.kinds = [kind for kind, _ in events]
        self.text = "".join(data["text"] for kind, data in events if kind == "token")
        self.citations = [data for kind, data in events if kind == "citation"]
        self.done = next(data for kind, data in events if kind == "done")


async def ask(
    client: httpx.AsyncClient, mandate: TestMandate, question: str, who: str = "owner", **fields: Any
) -> Answer:
    answer = await client.post(
        "/v1/answers", headers=mandate.auth(who), json={"question": question, **fields}
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    events: list[tuple[str, Any]] = []
    for block in answer.text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            events.append((lines["event"], json.loads(lines["data"])))
    return Answer(events)


async def kept(db: Database, mandate: TestMandate, table: str) -> list[Any]:
    async with db.tenant_session(mandate.id) as session:
        return list(await session.execute(text(f"SELECT * FROM {table}")))


async def test_a_model_answers_from_the_passages_and_they_are_its_citations(
    db: Database, client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    loaded = await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds")
    service.stream(said("Five "), said("days [1]."), said("", "stop"), DONE)
    answer = await ask(client, mandate, "when are refunds paid out")
    assert answer.text == "Five days [1]."
    assert answer.kinds == [
        "citation",
        "token",
        "token",
        "done",
    ]  # what it is given is said before the first word
    (cited,) = answer.citations
    assert (cited["number"], cited["citation"]["chunkId"]) == (1, str(loaded.chunk_ids[0]))
    assert {name: answer.done[name] for name in ("mode", "model", "complete", "reason", "kept")} == {
        "mode": "model",
        "model": "m-1",
        "complete": True,
        "reason": None,
        "kept": True,
    }
    prompt = service.requests[0]["messages"]
    assert prompt[0]["role"] == "system"
    assert "[1] [entry" in prompt[-1]["content"]
    assert "⟪untrusted" in prompt[-1]["content"]
    (row,) = await kept(db, mandate, "answer")
    assert (str(row.id), row.text, row.model) == (answer.done["turnId"], "Five days [1].", "m-1")
    (citation,) = await kept(db, mandate, "citation")
    assert (citation.turn_id, citation.document_id) == (answer.done["turnId"], loaded.document_ids[0])


async def test_without_a_model_the_best_extracts_answer_and_say_so(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    answer = await ask(client, mandate, "when are refunds paid out")
    assert (answer.done["mode"], answer.done["model"], answer.done["complete"]) == ("extracts", None, True)
    assert answer.text == f"{NOT_A_MODEL}[1] {REFUNDS}\n\n"
    assert len(answer.citations) == 1


async def test_who_asks_for_whom_is_no_extract_unless_that_was_asked(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf
) -> None:
    """Snapshots come with every context; a model reads them, but a person did not ask for them."""
    about = "The organisation is the harbour company of Bremen, founded in 1888."
    await shelf.put(mandate.id, "mandate", about, source_kind="mandate_snapshot", title="mandate")
    nothing = await ask(client, mandate, "zzqq flurbo")
    assert (nothing.text, nothing.citations) == (NOTHING_FOUND, [])
    await shelf.put(mandate.id, "refunds", REFUNDS, title="Refunds")
    refunds = await ask(client, mandate, "within how many working days are refunds paid out?")
    assert REFUNDS in refunds.text
    assert about not in refunds.text
    assert [one["citation"]["title"] for one in refunds.citations] == ["Refunds"]
    itself = await ask(client, mandate, "when was the harbour company of Bremen founded?")
    assert about in itself.text


async def test_what_is_everybodys_is_kept_with_the_turn_that_was_given_it(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, commons: UUID
) -> None:
    bees = "Beekeepers register every hive with the veterinary office of their canton."
    law = await shelf.put(commons, "bees", bees, scope="global")
    answer = await ask(client, mandate, "where do beekeepers register a hive")
    turns = await client.get(
        f"/v1/answers?conversationId={answer.done['conversationId']}", headers=mandate.auth()
    )
    (turn,) = turns.json()["items"]
    assert turn["chunkIds"] == [str(law.chunk_ids[0])]


async def test_a_password_in_a_question_is_not_kept(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, db: Database
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    await ask(client, mandate, "are refunds paid out with the password Winter!Sun42")
    async with db.tenant_session(mandate.id) as session:
        kept = (await session.scalars(text("SELECT question FROM answer"))).all()
    assert kept == ["are refunds paid out with the password [secret:password]"]


async def test_with_nothing_to_go_by_no_model_is_asked(
    client: httpx.AsyncClient, mandate: TestMandate, service: ChatService
) -> None:
    service.stream(said("I make this up."), DONE)
    answer = await ask(client, mandate, "when are refunds paid out")
    assert service.requests == []
    assert (answer.text, answer.citations) == ("Nothing in the corpus answers this.", [])
    assert answer.done["mode"] == "extracts"


async def test_a_stream_that_is_cut_is_kept_as_incomplete(
    db: Database, client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    service.stream(said("Five da"), cut=True)
    answer = await ask(client, mandate, "when are refunds paid out")
    assert answer.text == "Five da"
    assert (answer.done["mode"], answer.done["complete"], answer.done["reason"]) == (
        "model",
        False,
        "chat.unavailable",
    )
    (row,) = await kept(db, mandate, "answer")
    assert not row.complete


@pytest.mark.parametrize(("status", "reason"), [(401, "chat.refused"), (500, "chat.unavailable")])
async def test_a_model_that_does_not_answer_is_replaced_by_extracts_with_the_reason(
    client: httpx.AsyncClient,
    mandate: TestMandate,
    shelf: Shelf,
    service: ChatService,
    status: int,
    reason: str,
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    service.refuse(status)
    answer = await ask(client, mandate, "when are refunds paid out")
    assert (answer.done["mode"], answer.done["reason"]) == ("extracts", reason)
    assert REFUNDS in answer.text
    assert "SECRET" not in json.dumps(answer.done)


async def test_an_answer_stopped_by_length_says_so(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    service.stream(said("Five"), said("", "length"), DONE)
    answer = await ask(client, mandate, "when are refunds paid out")
    assert (answer.done["complete"], answer.done["reason"]) == (False, "length")


async def test_a_conversation_goes_on_and_is_nobody_elses(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    service.stream(said("Five days."), DONE)
    first = await ask(client, mandate, "when are refunds paid out")
    conversation = first.done["conversationId"]
    await ask(client, mandate, "and refunds from abroad", conversationId=conversation)
    said_before = [message["content"] for message in service.requests[1]["messages"][1:3]]
    assert said_before == ["when are refunds paid out", "Five days."]
    turns = (await client.get(f"/v1/answers?conversationId={conversation}", headers=mandate.auth())).json()[
        "items"
    ]
    assert [turn["question"] for turn in turns] == ["when are refunds paid out", "and refunds from abroad"]
    assert len(turns[0]["chunkIds"]) == 1

    body = {"question": "what did they say about refunds", "conversationId": conversation}
    intruder = await client.post("/v1/answers", headers=mandate.auth("admin"), json=body)
    assert intruder.status_code == 404
    reading = await client.get(f"/v1/answers?conversationId={conversation}", headers=mandate.auth("admin"))
    assert reading.status_code == 404


async def test_extracts_shown_before_are_not_put_into_the_models_mouth(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    service.refuse(401)
    service.stream(said("Five days."), DONE)
    first = await ask(client, mandate, "when are refunds paid out")
    assert first.done["mode"] == "extracts"
    await ask(client, mandate, "and refunds from abroad", conversationId=first.done["conversationId"])
    outside = [message["content"] for message in service.requests[-1]["messages"][:-1]]
    assert outside[1] == "when are refunds paid out"
    assert not any(
        REFUNDS in said_before for said_before in outside
    )  # a document's words, outside a boundary


async def test_of_a_conversation_on_what_may_not_be_seen_now_nothing_is_read(
    db: Database, client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    connection, user = new_id(), mandate.users["member"]
    async with db.tenant_session(mandate.id) as session:
        await connections.add(session, connection, "msft", user)
    mail = {"connection_id": connection, "user_id": user, "source_kind": "outlook_message"}
    await shelf.put(mandate.id, "mail", REFUNDS, **mail)
    await shelf.put(mandate.id, "holidays", HOLIDAYS)
    service.stream(said(REFUNDS), DONE)
    first = await ask(client, mandate, "when are refunds paid out", "member")
    path = f"/v1/answers?conversationId={first.done['conversationId']}"
    assert (await client.get(path, headers=mandate.auth("member"))).status_code == 200

    async with db.tenant_session(mandate.id) as session:  # the fence is down, the purge has not begun
        await session.execute(
            text("UPDATE connection SET state = 'revoked' WHERE id = :id"), {"id": connection}
        )
    assert (await client.get(path, headers=mandate.auth("member"))).status_code == 404
    second = await ask(
        client,
        mandate,
        "how many days of paid holiday",
        "member",
        conversationId=first.done["conversationId"],
    )
    assert REFUNDS not in json.dumps(service.requests[-1])
    assert second.done["conversationId"] != first.done["conversationId"]  # which the purge takes as a whole


async def test_a_long_conversation_is_read_page_by_page(
    client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf
) -> None:
    await shelf.put(mandate.id, "refunds", REFUNDS)
    conversation = str(new_id())  # of the caller's own making
    for turn in range(8):
        await ask(client, mandate, f"when are refunds paid out, {turn}", conversationId=conversation)
    path = f"/v1/answers?conversationId={conversation}"
    whole = (await client.get(path, headers=mandate.auth())).json()
    assert [turn["question"][-1] for turn in whole["items"]] == list("01234567")
    page = (await client.get(f"{path}&limit=5", headers=mandate.auth())).json()
    assert [turn["question"][-1] for turn in page["items"]] == list("34567")
    page = (await client.get(f"{path}&limit=5&cursor={page['nextCursor']}", headers=mandate.auth())).json()
    assert [turn["question"][-1] for turn in page["items"]] == list("012")
    assert page["nextCursor"] is None


async def test_a_conversation_goes_with_a_document_it_drew_on(
    db: Database, client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf
) -> None:
    gone = await shelf.put(mandate.id, "refunds", REFUNDS)
    await shelf.put(mandate.id, "holidays", HOLIDAYS)
    first = await ask(client, mandate, "when are refunds paid out")
    conversation = first.done["conversationId"]
    await ask(client, mandate, "how many days of paid holiday", conversationId=conversation)
    other = await ask(client, mandate, "how many days of holiday per year does an employee have")
    async with db.tenant_session(mandate.id) as session:
        counts = await repository.forget_documents(session, gone.document_ids)
    assert counts["answer"] == 2
    assert {str(row.id) for row in await kept(db, mandate, "answer")} == {other.done["turnId"]}
    assert UUID(conversation) not in {row.conversation_id for row in await kept(db, mandate, "answer")}
    assert gone.document_ids[0] not in {row.document_id for row in await kept(db, mandate, "citation")}


async def test_an_answer_whose_source_is_erased_while_it_is_made_is_not_kept(
    db: Database, client: httpx.AsyncClient, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    loaded = await shelf.put(mandate.id, "refunds", REFUNDS)
    service.stream(said("Five days."), DONE)

    async def erase() -> None:
        async with db.tenant_session(mandate.id) as session:
            await session.execute(text("DELETE FROM document WHERE id = :id"), {"id": loaded.document_ids[0]})

    service.before_answer = erase
    answer = await ask(client, mandate, "when are refunds paid out")
    assert (answer.text, answer.done["kept"]) == ("Five days.", False)
    assert await kept(db, mandate, "answer") == []


async def test_what_was_said_to_a_reader_who_left_is_kept_as_incomplete(
    address: str, db: Database, mandate: TestMandate, shelf: Shelf, service: ChatService
) -> None:
    loaded = await shelf.put(mandate.id, "refunds", REFUNDS)
    service.stream(said("Five da"), cut=True)
    left = asyncio.Event()

    async def go_on_thinking() -> None:
        await left.wait()

    service.after_answer = go_on_thinking
    async with httpx.AsyncClient(verify=False, base_url=address, headers=mandate.auth()) as reader:
        asked = {"question": "when are refunds paid out"}
        async with reader.stream("POST", "/v1/answers", json=asked) as answer:
            async for line in answer.aiter_lines():
                if "Five da" in line:
                    break

    async def remembered() -> bool:
        return bool(await kept(db, mandate, "answer"))

    await until(remembered, 10, "the turn")
    left.set()
    (row,) = await kept(db, mandate, "answer")
    assert (row.text, row.complete) == ("Five da", False)
    (citation,) = await kept(db, mandate, "citation")
    assert citation.document_id == loaded.document_ids[0]


@pytest.mark.parametrize("question", ["", "…", "x" * 1001])
async def test_what_cannot_be_asked_is_refused_before_a_stream_begins(
    client: httpx.AsyncClient, mandate: TestMandate, question: str
) -> None:
    answer = await client.post("/v1/answers", headers=mandate.auth(), json={"question": question})
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("application/problem+json")
    unknown = await client.get(f"/v1/answers?conversationId={new_id()}", headers=mandate.auth())
    assert unknown.status_code == 404
