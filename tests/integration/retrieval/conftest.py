"""The gateway with everything that answers questions, and a shelf to put passages on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
import uvicorn
from fastapi import FastAPI

import gateway.mcp_routes
from gateway import retrieval
from gateway.app import create_app
from gateway.corpus.embedders import Embedder
from gateway.corpus.loading import Loaded, ReadyDocument, load_documents
from gateway.db import COMMONS, Database
from gateway.insights.query_log import QueryLog
from gateway.settings import Settings
from gateway.tenancy import service as tenancy
from tests.fixtures.processes import free_port, until


@pytest.fixture(scope="module")
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    gateway_app = create_app(settings)
    async with gateway_app.router.lifespan_context(gateway_app):
        if hasattr(gateway_app.state, "query_log"):
            yield gateway_app
            return
        for router in retrieval.ROUTERS:
            gateway_app.include_router(router, prefix="/v1")
        gateway_app.include_router(gateway.mcp_routes.router)
        async with retrieval.running(gateway_app):
            yield gateway_app


@pytest.fixture
def query_log(app: FastAPI) -> QueryLog:
    return app.state.query_log


@dataclass(frozen=True)
class Shelf:
    """Puts passages into the corpus as the pipeline would have, with the gateway's own embedder."""

    db: Database
    embedder: Embedder

    async def put(self, mandate_id: UUID, source_id: str, *texts: str, **described: Any) -> Loaded:
        document = ReadyDocument(texts=texts, source_id=source_id, described=described)
        vectors = await self.embedder.embed(texts)
        async with self.db.tenant_session(mandate_id) as session:
            return await load_documents(session, self.embedder.model, [document], vectors)


@pytest.fixture
def shelf(app: FastAPI, db: Database) -> Shelf:
    return Shelf(db, app.state.embedder)


@pytest.fixture
async def commons(db: Database) -> UUID:
    async with db.routing_session() as session:
        await tenancy.seed_commons(session)
    return COMMONS


@pytest.fixture(scope="module")
async def address(app: FastAPI) -> AsyncIterator[str]:
    """The gateway behind a real server on the loopback."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=free_port(), lifespan="off", log_config=None, access_log=False)
    )
    serving = asyncio.create_task(server.serve())
    url = f"http://127.0.0.1:{server.config.port}"

    async def answers() -> bool:
        return server.started

    await until(answers, 10, f"a server at {url}")
    yield url
    server.should_exit = True
    await serving
