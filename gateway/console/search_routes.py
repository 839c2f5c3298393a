"""Search and ask, over the same functions that agents reach by HTTP: what a person sees is what an agent gets."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from gateway.console import passages
from gateway.console.visits import Member, PageRoute
from gateway.corpus import answers, search_routes
from gateway.corpus.context_schemas import AnswerIn, CitationFrame, DoneFrame, TokenFrame
from gateway.corpus.search import QueryEmpty, QueryTooLong
from gateway.corpus.search_schemas import SearchParameters
from gateway.ingestion.schemas import SOURCE_KINDS

router = APIRouter(route_class=PageRoute)


@router.get("/search")
async def search_page(
    visit: Member,
    *,
    q: Annotated[str, Query(max_length=4000)] = "",
    kind: Annotated[str, Query(max_length=100)] = "",
    tag: Annotated[str, Query(max_length=200)] = "",
    connection: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> HTMLResponse:
    filters: dict[str, Any] = {"q": q, "kind": kind, "tag": tag, "limit": limit}
    found, problem = None, None
    if q.strip():
        wanted = SearchParameters.model_validate(
            {
                "q": q,
                "limit": limit,
                "sourceKinds": kind or None,
                "tags": tag or None,
                "connectionId": connection,
                "origin": "dashboard",
            }
        )
        try:
            found = await search_routes.search_corpus(visit.request, visit.db, visit.principal, wanted)
        except (QueryEmpty, QueryTooLong) as error:
            problem = error.detail
    hits = [(hit, passages.highlighted(hit.text, q)) for hit in found.hits] if found else []
    return visit.page(
        "search.html", filters=filters, found=found, hits=hits, problem=problem, kinds=SOURCE_KINDS
    )


@router.get("/ask")
async def ask_page(
    visit: Member, q: Annotated[str, Query(max_length=4000)] = "", plain: bool = False
) -> HTMLResponse:
    """With a script the answer streams in; `plain` waits for all of it and needs none."""
    answer: dict[str, Any] | None = None
    if q.strip() and plain:
        answer = await _whole_answer(visit, q)
    return visit.page("ask.html", question=q, answer=answer)


async def _whole_answer(visit: Member, question: str) -> dict[str, Any]:
    state = visit.request.app.state
    asked = AnswerIn(question=question, origin="dashboard")
    turn = await answers.prepare(visit.db, state.embedder, visit.principal, asked, reranker=state.reranker)
    text, citations, done = "", list[CitationFrame](), None
    async for frame in answers.answer(visit.db, state.chat_model, turn):
        if isinstance(frame, TokenFrame):
            text += frame.text
        elif isinstance(frame, CitationFrame):
            citations.append(frame)
        elif isinstance(frame, DoneFrame):
            done = frame
    return {"text": text, "citations": citations, "done": done}
