"""What the gateway needs to answer questions, put together in one place for `app.py`.

    retrieval.ROUTERS                    under /v1
    gateway.mcp_routes.router            as it is: /mcp
    async with retrieval.running(app)    inside the lifespan, once `app.state.db` and `.settings` are there

It sets `app.state.embedder`, `.reranker` and `.chat_model` (or None), `.picture_pool`, `.query_log` and `.mcp`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import APIRouter, FastAPI

import gateway.corpus.context_routes
import gateway.corpus.entries_routes
import gateway.corpus.search_routes
import gateway.insights.routes
from gateway.corpus.chat import ChatModel
from gateway.corpus.embedders import build_embedder
from gateway.corpus.pictures import picture_pool
from gateway.corpus.rerankers import CrossEncoderReranker, HttpReranker, build_reranker
from gateway.insights.query_log import QueryLog
from gateway.mcp_routes import McpDoor
from gateway.settings import Settings

ROUTERS: tuple[APIRouter, ...] = (
    gateway.corpus.search_routes.router,
    gateway.corpus.context_routes.router,
    gateway.corpus.entries_routes.router,
    gateway.insights.routes.router,
)


@asynccontextmanager
async def running(app: FastAPI) -> AsyncGenerator[None]:
    settings = cast("Settings", app.state.settings)
    app.state.chat_model = ChatModel.of(settings)
    # Reading the weights takes a moment that the loop must not stand still for.
    app.state.embedder = await asyncio.to_thread(
        build_embedder,
        settings.embedder,
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
        base_url=settings.openai_base_url,
    )
    app.state.reranker = await asyncio.to_thread(_reranker, settings)
    # Both start with their first use, so that a start does not wait for them.
    app.state.mcp = McpDoor()
    app.state.picture_pool = picture_pool()
    try:
        async with QueryLog(app.state.db) as app.state.query_log:
            yield
    finally:
        await app.state.mcp.aclose()
        await app.state.picture_pool.aclose()
        await app.state.embedder.aclose()
        if app.state.reranker is not None:
            await app.state.reranker.aclose()
        if app.state.chat_model is not None:
            await app.state.chat_model.aclose()


def _reranker(settings: Settings) -> HttpReranker | CrossEncoderReranker | None:
    if settings.reranker is None:
        return None
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    return build_reranker(settings.reranker, api_key=key, base_url=settings.openai_base_url)
