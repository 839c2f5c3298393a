"""What an agent can do here: search, ask for context, hand in, re-index. Each tool says which role and scope it needs.

Arguments are checked, the principal is asked, and what a tool cannot do comes back as a result the model can read.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast
from uuid import UUID

import mcp_types as types
from pydantic import Field, StringConstraints, ValidationError
from starlette.requests import Request

from gateway.corpus import service
from gateway.corpus.context import build_context, citation_header, context_out
from gateway.corpus.context_schemas import ContextIn
from gateway.corpus.search import MAX_LIMIT, Hit, SearchQuery, search
from gateway.db import Database
from gateway.errors import CatchmentError, NotAllowed, fields_invalid
from gateway.ingestion.facade import reindex
from gateway.ingestion.routes import accept
from gateway.ingestion.schemas import IngestionHandle, IngestionRequest, Scope, SourceKind, TextContent
from gateway.insights.query_log import asked, weighed
from gateway.insights.schemas import Reference
from gateway.logs import emit, place_of
from gateway.tenancy.principal import Principal
from gateway.tenancy.schemas import Role
from gateway.tenancy.schemas import Scope as KeyScope
from gateway.wire import EndMoment, Moment, Wire

NOTHING_FITS = "Nothing here is about this question; the passages below are merely the nearest there is."


class SearchArguments(Wire):
    query: str = Field(description="what to look for, as a question or in keywords; at most 1,000 characters")
    limit: int = Field(default=5, ge=1, le=MAX_LIMIT, description="passages wanted")
    types: list[str] | None = Field(default=None, description="only these types: note, rule, decision …")
    source_kinds: list[SourceKind] | None = Field(default=None, description="only these kinds of source")
    tags: list[str] | None = Field(default=None, description="only with one of these tags")
    feature_instance_id: UUID | None = None
    connection_id: UUID | None = None
    source_id: str | None = Field(default=None, description="only this object, by its source's own id")
    since: Moment | None = Field(default=None, alias="from", description="entered the corpus at or after")
    until: EndMoment | None = Field(
        default=None, alias="to", description="entered the corpus at or before; a day is meant whole"
    )
    agent_deployment_id: Reference | None = None


class ContextArguments(Wire):
    query: str = Field(description="what the context is for")
    token_budget: int = Field(default=2000, ge=50, le=100_000)
    feature_instance_id: UUID | None = None
    agent_deployment_id: Reference | None = None


class IngestArguments(Wire):
    title: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    content: Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
    source_id: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = Field(
        default=None, description="a stable name; the same name again replaces the text"
    )
    type: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    tags: list[str] = Field(default_factory=list, max_length=200)
    scope: Scope = "personal"
    feature_instance_id: UUID | None = None


class ReindexArguments(Wire):
    document_id: UUID


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    arguments: type[Wire]
    run: Callable[[Request, Principal, Any], Awaitable[types.CallToolResult]]
    scope: KeyScope = "read"
    role: Role = "member"

    def open_to(self, principal: Principal) -> bool:
        return principal.may(self.role, self.scope)

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            annotations=types.ToolAnnotations(
                read_only_hint=self.scope == "read", destructive_hint=False, idempotent_hint=True
            ),
        )


# -- what the tools do


async def _search(request: Request, principal: Principal, wanted: SearchArguments) -> types.CallToolResult:
    state = request.app.state
    query = SearchQuery(
        q=wanted.query,
        limit=wanted.limit,
        types=wanted.types,
        source_kinds=wanted.source_kinds,
        tags=wanted.tags,
        feature_instance_id=wanted.feature_instance_id,
        connection_id=wanted.connection_id,
        source_id=wanted.source_id,
        since=wanted.since,
        until=wanted.until,
        origin="mcp",
    )
    result = await search(state.db, state.embedder, principal, query, reranker=state.reranker)
    note = await weighed(
        asked(
            principal,
            query,
            result,
            model=state.embedder.model,
            agent_deployment_id=wanted.agent_deployment_id,
        )
    )
    state.query_log.note(note)
    blocks = [_text(_hit_block(hit)) for hit in result.hits]
    if not note.answered:
        blocks.insert(0, _text(NOTHING_FITS if blocks else "Nothing was found."))
    return types.CallToolResult(
        content=[*blocks],
        structured_content={
            "queryId": str(result.query_id),
            "answered": note.answered,
            "hits": [
                {
                    "entryId": str(hit.document_id),
                    "chunkId": str(hit.chunk_id),
                    "score": hit.score,
                    "title": hit.title,
                    "citation": hit.citation.model_dump(mode="json", by_alias=True),
                    "sources": [source.model_dump(mode="json", by_alias=True) for source in hit.sources],
                }
                for hit in result.hits
            ],
        },
    )


def _hit_block(hit: Hit) -> str:
    return f"{citation_header(hit.document_id, hit.chunk_id, hit.score, hit.title)}\n{hit.prompt_text}"


async def _context(request: Request, principal: Principal, wanted: ContextArguments) -> types.CallToolResult:
    state = request.app.state
    full = ContextIn(**wanted.model_dump(), origin="mcp")
    context = await build_context(state.db, state.embedder, principal, full, reranker=state.reranker)
    state.query_log.note(
        asked(
            principal,
            context.query,
            context.result,
            model=state.embedder.model,
            agent_deployment_id=wanted.agent_deployment_id,
        )
    )
    shown = context_out(context, full).model_dump(mode="json", by_alias=True, exclude={"text"})
    return types.CallToolResult(
        content=[_text(context.text or "Nothing in the corpus is about this.")], structured_content=shown
    )


async def _ingest(request: Request, principal: Principal, wanted: IngestArguments) -> types.CallToolResult:
    fields = wanted.model_dump(exclude={"content", "source_id"})
    handle = await accept(
        request,
        principal,
        IngestionRequest(
            source_kind="paste",
            source_id=wanted.source_id
            or hashlib.sha256(wanted.content.encode("utf-8", "replace")).hexdigest(),
            content=TextContent(text=wanted.content),
            **fields,
        ),
    )
    return _handle(handle)


async def _reindex(request: Request, principal: Principal, wanted: ReindexArguments) -> types.CallToolResult:
    db = cast("Database", request.app.state.db)
    principal = await service.caller_at(db, wanted.document_id, principal, writing=True)
    async with db.tenant_session(principal.mandate_id) as session:
        await service.editable(session, wanted.document_id, principal)
        handle = await reindex(session, wanted.document_id)
    return _handle(handle)


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "knowledge_search",
            "Passages of the corpus that match a question by meaning and by words, each with its citation.",
            SearchArguments,
            _search,
        ),
        Tool(
            "knowledge_context",
            "Everything the corpus has to say on a question, ready for a prompt, within a token budget.",
            ContextArguments,
            _context,
        ),
        Tool(
            "knowledge_ingest",
            "Adds a text to the corpus. It is searchable a moment later.",
            IngestArguments,
            _ingest,
            scope="write",
        ),
        Tool(
            "knowledge_reindex",
            "Runs the pipeline again on a document's original.",
            ReindexArguments,
            _reindex,
            scope="write",
        ),
    )
}


async def call(
    tool: Tool, request: Request, principal: Principal, arguments: dict[str, Any]
) -> types.CallToolResult:
    if not tool.open_to(principal):
        return _refusal(
            NotAllowed(f"{tool.name} needs the role {tool.role} and a key with the scope {tool.scope}.")
        )
    try:
        return await tool.run(request, principal, tool.arguments.model_validate(arguments))
    except ValidationError as error:
        return _refusal(fields_invalid(error.errors()))
    except CatchmentError as error:
        return _refusal(error)
    except Exception as error:  # noqa: BLE001 - the edge of this protocol, as RequestContext is HTTP's
        emit("http.failed", method="MCP", path=tool.name, error=place_of(error))
        return _refusal(CatchmentError())


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _handle(handle: IngestionHandle) -> types.CallToolResult:
    shown = handle.model_dump(mode="json", by_alias=True)
    reason = f" ({handle.reason})" if handle.reason else ""
    line = f"{handle.outcome}{reason}: entry {handle.document_id}, job {handle.job_id}"
    return types.CallToolResult(content=[_text(line)], structured_content=shown)


def _refusal(error: CatchmentError) -> types.CallToolResult:
    return types.CallToolResult(
        content=[_text(f"{error.code}: {error.detail}")],
        structured_content={"code": error.code, "detail": error.detail, "status": error.status},
        is_error=True,
    )
