"""Pages over a corpus with hostile names in it."""

from dataclasses import dataclass
from uuid import UUID

import pytest
from fastapi import FastAPI

from gateway.corpus.loading import ReadyDocument, load_documents
from gateway.db import Database
from tests.fixtures.tenants import TestMandate

HOSTILE = '<script>alert("title")</script> "quoted" \u202etxt.exe & <b>bold</b>'


@dataclass(frozen=True)
class Seen:
    """A document with one passage."""

    document_id: UUID
    chunk_id: UUID


@pytest.fixture
async def hostile(app: FastAPI, db: Database, mandate: TestMandate) -> Seen:
    text = f"The sluice opens at dawn. <img src=x onerror=alert(1)> {HOSTILE}"
    embedder = app.state.embedder
    ready = ReadyDocument(
        texts=(text,),
        source_id="hostile",
        described={"title": HOSTILE, "scope": "mandate", "user_id": mandate.users["owner"]},
    )
    vectors = await embedder.embed([text])
    async with db.tenant_session(mandate.id) as session:
        loaded = await load_documents(session, embedder.model, [ready], vectors)
    return Seen(loaded.document_ids[0], loaded.chunk_ids[0])
