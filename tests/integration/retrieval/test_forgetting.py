"""Promise 5 beyond documents: questions, citations and answers go with what they speak of, and the receipt counts them."""

from typing import Any, cast
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from gateway.connections import repository as connections
from gateway.corpus import erasure
from gateway.corpus.erasure import Subject
from gateway.db import Database, new_id
from gateway.insights.query_log import QueryLog
from tests.fixtures.tenants import TestMandate
from tests.integration.retrieval.conftest import Shelf

SECRET = "The merger is called Project Heron and is worth nine million."
OTHER = "Lunch is served at noon in the canteen on the ground floor."


async def erase(
    app: FastAPI, db: Database, mandate: TestMandate, subject: str, subject_id: UUID
) -> dict[str, int]:
    async with db.tenant_session(mandate.id) as session:
        receipt = await erasure.begin_erasure(session, cast("Subject", subject), str(subject_id), "test")
    return await erasure.finish_erasure(db, app.state.blobs, mandate.id, receipt)


async def words(db: Database, mandate: TestMandate) -> list[str]:
    """Everything the insights tables say about anybody, as one text per row."""
    found: list[str] = []
    async with db.tenant_session(mandate.id) as session:
        for table in ("query_log", "answer", "citation"):
            found += list(await session.scalars(text(f"SELECT row_to_json(t)::text FROM {table} t")))
    return found


@pytest.mark.parametrize("subject", ["connection", "document", "user", "mandate"])
async def test_nothing_speaks_of_what_was_erased(
    app: FastAPI,
    db: Database,
    client: httpx.AsyncClient,
    mandate: TestMandate,
    shelf: Shelf,
    query_log: QueryLog,
    subject: str,
) -> None:
    connection, user = new_id(), mandate.users["member"]
    async with db.tenant_session(mandate.id) as session:
        await connections.add(session, connection, "msft", user)
    fields: dict[str, Any] = {"connection_id": connection, "user_id": user, "source_kind": "outlook_message"}
    gone = await shelf.put(mandate.id, "mail", SECRET, **fields)
    await shelf.put(mandate.id, "lunch", OTHER)
    asking = mandate.auth("member")
    await client.get("/v1/search", params={"q": "project heron"}, headers=asking)
    await client.get("/v1/search", params={"q": "heron", "connectionId": str(connection)}, headers=asking)
    await client.post("/v1/answers", json={"question": "what is project heron worth"}, headers=asking)
    cited = {"turnId": "turn", "chunkIds": [str(gone.chunk_ids[0])]}
    await client.post("/v1/citations", json=cited, headers=asking)
    await query_log.drained()
    assert any("heron" in row.lower() for row in await words(db, mandate))

    subject_id = {
        "connection": connection,
        "document": gone.document_ids[0],
        "user": user,
        "mandate": mandate.id,
    }
    counts = await erase(app, db, mandate, subject, subject_id[subject])
    left = await words(db, mandate)
    assert not any("heron" in row.lower() or "nine million" in row for row in left)
    assert counts["query_log"] >= 2
    assert (counts["answer"], counts["citation"]) == (1, 2)
