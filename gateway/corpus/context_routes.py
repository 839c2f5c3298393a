"""Context and answers over HTTP. What can be refused is refused before a stream begins; after that it says how it ended."""

from collections.abc import AsyncGenerator
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from gateway.corpus import answers
from gateway.corpus.answers import Turn
from gateway.corpus.context import Context, build_context, context_out
from gateway.corpus.context_schemas import (
    AnswerIn,
    CitationFrame,
    ContextIn,
    ContextOut,
    TokenFrame,
    TurnOut,
)
from gateway.http import Cursor, Db, Limit
from gateway.insights.query_log import asked
from gateway.tenancy.access import Principal, Reader
from gateway.wire import Page, decode_cursor, encode_cursor

router = APIRouter(tags=["context"])


def _note(request: Request, principal: Principal, context: Context, agent_deployment_id: str | None) -> None:
    request.app.state.query_log.note(
        asked(
            principal,
            context.query,
            context.result,
            model=request.app.state.embedder.model,
            agent_deployment_id=agent_deployment_id,
        )
    )


@router.post("/context")
async def get_context(request: Request, db: Db, wanted: ContextIn, principal: Reader) -> ContextOut:
    """What the corpus has to say on a question, ready for a prompt, within the token budget, every passage citable."""
    state = request.app.state
    context = await build_context(db, state.embedder, principal, wanted, reranker=state.reranker)
    _note(request, principal, context, wanted.agent_deployment_id)
    return context_out(context, wanted)


async def _turn(request: Request, db: Db, wanted: AnswerIn, principal: Reader) -> Turn:
    state = request.app.state
    turn = await answers.prepare(db, state.embedder, principal, wanted, reranker=state.reranker)
    _note(request, principal, turn.context, wanted.agent_deployment_id)
    return turn


@router.post("/answers", response_class=EventSourceResponse)
async def get_answer(
    request: Request, db: Db, turn: Annotated[Turn, Depends(_turn)]
) -> AsyncGenerator[ServerSentEvent]:
    """Streams `citation` frames (what the model is given), `token` frames (what it says) and one `done`."""
    async for frame in answers.answer(db, request.app.state.chat_model, turn):
        event = (
            "token"
            if isinstance(frame, TokenFrame)
            else "citation"
            if isinstance(frame, CitationFrame)
            else "done"
        )
        yield ServerSentEvent(event=event, raw_data=frame.model_dump_json(by_alias=True))


@router.get("/answers")
async def get_conversation(
    db: Db,
    principal: Reader,
    conversation_id: Annotated[UUID, Query(alias="conversationId")],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[TurnOut]:
    """The newest turns of a conversation of one's own, oldest first, with what each was given; the cursor leads back."""
    turns = await answers.conversation(
        db,
        conversation_id,
        principal,
        limit=limit + 1,
        after=decode_cursor(cursor) if cursor else None,
    )
    shown = turns[:limit]
    earlier = encode_cursor(shown[-1].created_at, shown[-1].turn_id) if len(turns) > limit else None
    return Page(items=shown[::-1], next_cursor=earlier)
