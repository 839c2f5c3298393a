"""All SQL of search. What runs here was EXPLAINed as the runtime role (tests/acceptance/test_retrieval.py).

The statements go to psycopg directly: a search is eight of them, and the layers above would cost more than they do.
They are prepared once per connection, with a plan for any value, because planning costs as much as running them; what a
plan must know beforehand, such as the model of a partial index, is written out. Exact scans of a narrow view are planned
for their values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, LiteralString, NamedTuple, cast
from uuid import UUID

from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.sql import quote
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.corpus.settlement_repository import index_name
from gateway.db import tenant_of

Connection = AsyncConnection[Any]

SOURCES = 100  # of one text that a hit names; boilerplate may have thousands

# Beyond this many visited tuples an index scan gives up, and the caller searches what is visible exactly.
MAX_SCAN_TUPLES = 20_000
# Recall@10 is 0.97 at the least, measured on vectors without any clusters; the most is pgvector's own limit.
LEAST_EF_SEARCH, MOST_EF_SEARCH = 100, 1000


@dataclass(frozen=True)
class Filters:
    """Values of one filter are alternatives; every filter given must hold."""

    types: tuple[str, ...] | None = None
    source_kinds: tuple[str, ...] | None = None
    connection_id: UUID | None = None
    source_id: str | None = None
    feature_instance_id: UUID | None = None
    tags: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


_CLAUSES: dict[str, LiteralString] = {
    # What has no type of its own goes by its source kind.
    "types": "coalesce(d.type, d.source_kind) = ANY(%(types)s::text[])",
    "source_kinds": "d.source_kind = ANY(%(source_kinds)s::text[])",
    "connection_id": "d.connection_id = %(connection_id)s",
    "source_id": "d.source_id = %(source_id)s",
    "feature_instance_id": "d.feature_instance_id = %(feature_instance_id)s",
    "tags": "d.tags && %(tags)s::text[]",
    "since": "d.created_at >= %(since)s",
    "until": "d.created_at <= %(until)s",
}
_CHUNKS = "chunk c JOIN document d ON d.mandate_id = c.mandate_id AND d.id = c.document_id"


class Statements(NamedTuple):
    """What depends on which filters are given. `d` is the document, `c` the chunk."""

    resolve: bytes
    allowed: bytes
    nearest_allowed: bytes
    texts: bytes


@lru_cache(maxsize=256)
def statements(given: tuple[str, ...]) -> Statements:
    # The one predicate of the corpus browser, in this driver's spelling.
    view = " AND ".join([VISIBLE.replace(":viewer", "%(viewer)s"), *(_CLAUSES[name] for name in given)])
    return Statements(
        # Ids, times and locators as text: most rows are candidates that no page will show.
        resolve=f"""
            WITH wanted AS (
                SELECT text_hash, array_agg(number) AS asked, bool_or(near) AS near FROM (
                    SELECT text_hash, NULL::bigint AS number, true AS near
                    FROM unnest(%(hashes)s::bytea[]) AS h(text_hash)
                    UNION ALL
                    SELECT c.text_hash, c.number, false FROM unnest(%(numbers)s::bigint[]) AS n(number)
                    JOIN chunk c ON c.mandate_id = %(mandate_id)s AND c.number = n.number) either
                GROUP BY text_hash)
            SELECT w.text_hash, w.asked, v.embedding <=> %(query)s::halfvec AS distance, f.*
            FROM wanted w CROSS JOIN LATERAL (
                SELECT c.number, c.id::text AS chunk_id, c.text, c.locator::text, c.heading_path, c.token_count,
                    c.language, d.id::text AS document_id, d.source_kind, d.title, d.uri, d.scope,
                    d.connection_id::text, d.indexed_revision, d.indexed_version, d.verified_at::text
                FROM {_CHUNKS} WHERE c.mandate_id = %(mandate_id)s AND c.text_hash = w.text_hash AND {view}
                ORDER BY c.number LIMIT {SOURCES}) f
            -- a null key ends the lookup before it begins: the distance of a neighbour is known
            LEFT JOIN text_vector v ON v.mandate_id = %(mandate_id)s AND v.model = %(model)s
                AND v.text_hash = CASE WHEN NOT w.near THEN w.text_hash END
            """.encode(),
        allowed=f"""
            SELECT c.number FROM {_CHUNKS} WHERE d.mandate_id = %(mandate_id)s AND {view} LIMIT %(limit)s
            """.encode(),
        # OFFSET 0 keeps the planner from reading all vectors to find a few thousand of them.
        nearest_allowed=f"""
            SELECT t.text_hash, n.distance
            FROM (SELECT DISTINCT c.text_hash FROM {_CHUNKS} WHERE d.mandate_id = %(mandate_id)s AND {view}) t
            CROSS JOIN LATERAL (
                SELECT v.embedding <=> %(query)s::halfvec AS distance FROM text_vector v
                WHERE v.mandate_id = %(mandate_id)s AND v.model = %(model)s AND v.text_hash = t.text_hash OFFSET 0) n
            ORDER BY n.distance LIMIT %(limit)s
            """.encode(),
        texts=f"""
            SELECT c.number, c.text FROM {_CHUNKS}
            WHERE c.mandate_id = %(mandate_id)s AND c.number = ANY(%(numbers)s::bigint[]) AND {view}
            """.encode(),
    )


class View:
    """What one search may see of one mandate: scope, live connections and the caller's filters."""

    def __init__(self, mandate_id: UUID, viewer: UUID | None, filters: Filters) -> None:
        given = {name: value for name, value in vars(filters).items() if value is not None}
        lists = {name: list(value) for name, value in given.items() if isinstance(value, tuple)}
        self.mandate_id = mandate_id
        self.key = (mandate_id, viewer, filters)
        self.sql = statements(tuple(given))
        self.parameters: dict[str, Any] = {"mandate_id": mandate_id, "viewer": viewer, **given, **lists}


class Space(NamedTuple):
    """The vectors of one model, and where the query lies among them."""

    model: str
    dimensions: int
    query: str  # as a halfvec literal


_BEGIN = f"""
SELECT EXISTS (SELECT FROM segment), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.max_scan_tuples', '{MAX_SCAN_TUPLES}', true),
       set_config('hnsw.ef_search', '{LEAST_EF_SEARCH}', true)
""".encode()


async def begin(connection: Connection) -> bool:
    """Says how every statement of this transaction is run; true if the tenant at its beginning has any chunk."""
    cursor = await connection.execute(_BEGIN)
    return bool((await cursor.fetchall())[0][0])


class State(NamedTuple):
    languages: list[str]
    # How much of the HNSW index is this mandate's, from 0 to 1; None: it has nothing in it.
    share: float | None


_STATE = """
WITH RECURSIVE held(language) AS (
    (SELECT language FROM chunk WHERE mandate_id = %(mandate_id)s ORDER BY language LIMIT 1)
    UNION ALL
    SELECT (SELECT language FROM chunk
            WHERE mandate_id = %(mandate_id)s AND language > held.language ORDER BY language LIMIT 1)
    FROM held WHERE held.language IS NOT NULL)
SELECT ARRAY(SELECT language FROM held WHERE language IS NOT NULL),
       EXISTS (SELECT FROM text_vector WHERE mandate_id = %(mandate_id)s AND model = %(model)s AND settled),
       (SELECT sum(chunks)::float FROM segment WHERE mandate_id = %(mandate_id)s),
       (SELECT reltuples::float FROM pg_class WHERE oid = to_regclass(%(index)s))
"""


async def read_state(connection: Connection, mandate_id: UUID, model: str) -> State:
    """Which languages the mandate holds (a hop per language, not a scan) and how its vectors are searched."""
    cursor = await connection.execute(
        _STATE, {"mandate_id": mandate_id, "model": model, "index": index_name(model)}, prepare=True
    )
    languages, settled, chunks, indexed = cast(
        "tuple[list[str], bool, float | None, float | None]", await cursor.fetchone()
    )
    # Chunks stand for vectors, whose exact number would take a scan; a guess about effort may be rough.
    share = min(max((chunks or 0.0) / max(indexed or 0.0, 1.0), 0.01), 1.0)
    return State(languages, share if settled else None)


# -- the lexical leg

_POSTINGS = """
SELECT NULL::text, id, version, NULL::bytea FROM segment WHERE mandate_id = %(mandate_id)s
UNION ALL
SELECT term, segment_id, 0, data FROM posting WHERE mandate_id = %(mandate_id)s AND term = ANY(%(terms)s)
"""
PostingRow = tuple[str | None, UUID, int, bytes | None]


async def read_postings(connection: Connection, mandate_id: UUID, terms: Sequence[str]) -> list[PostingRow]:
    """Every segment (a row without a term) and the terms' postings, of one and the same moment."""
    cursor = await connection.execute(
        _POSTINGS, {"mandate_id": mandate_id, "terms": list(terms)}, prepare=True, binary=True
    )
    return cast("list[PostingRow]", await cursor.fetchall())


async def read_directories(
    connection: Connection, mandate_id: UUID, segment_ids: Sequence[UUID]
) -> list[tuple[UUID, int, bytes]]:
    cursor = await connection.execute(
        "SELECT id, version, directory FROM segment WHERE mandate_id = %s AND id = ANY(%s)",
        (mandate_id, list(segment_ids)),
        binary=True,
    )
    return cast("list[tuple[UUID, int, bytes]]", await cursor.fetchall())


# -- the dense leg

Neighbour = tuple[bytes, float]  # text hash, cosine distance


@lru_cache(maxsize=512)
def nearest_statement(mandate_id: UUID, model: str, width: int, limit: int, *, indexed: bool) -> bytes:
    """What decides the plan is written out – whose vectors, which model's, how many – so that it finds the partial index, and
    is right for a mandate of any size.
    """
    name, most = quote(model).replace("%", "%%"), int(limit)
    where = f"FROM text_vector WHERE mandate_id = '{UUID(int=mandate_id.int)}' AND model = {name}"
    tail = f"""
        SELECT text_hash, embedding <=> %(query)s::halfvec AS distance {where} AND NOT settled
        ORDER BY distance LIMIT {most}"""
    if not indexed:
        return tail.encode()
    near = f"""
        SELECT text_hash, (embedding::halfvec({int(width)})) <=> %(query)s::halfvec({int(width)}) AS distance {where}
        AND settled ORDER BY distance LIMIT {most}"""
    return f"({near}) UNION ALL ({tail})".encode()


async def nearest(
    connection: Connection, mandate_id: UUID, space: Space, *, share: float | None, limit: int
) -> list[Neighbour]:
    """The mandate's nearest texts, best first: settled ones by the index, the rest exactly. Visibility comes later."""
    # Twice what is wanted, because the end of a list as long as ef_search is poor; and the more the smaller the share,
    # because other mandates' vectors take their places in the list before they are dropped.
    width = min(int(max(2 * limit, LEAST_EF_SEARCH) / (share or 1.0)), MOST_EF_SEARCH)
    if width != LEAST_EF_SEARCH:
        await connection.execute(f"SET LOCAL hnsw.ef_search = {width}".encode())
    cursor = await connection.execute(
        nearest_statement(mandate_id, space.model, space.dimensions, limit, indexed=share is not None),
        {"query": space.query},
        prepare=True,
        binary=True,
    )
    found = cast("list[Neighbour]", await cursor.fetchall())
    if width != LEAST_EF_SEARCH:
        await connection.execute(f"SET LOCAL hnsw.ef_search = {LEAST_EF_SEARCH}".encode())
    return sorted(found, key=lambda neighbour: neighbour[1])[:limit]


# -- what the view lets through


class Found(NamedTuple):
    """A visible chunk; `asked` are the chunk numbers asked for that have its text."""

    text_hash: bytes
    asked: list[int | None]
    distance: float | None
    number: int
    chunk_id: str
    text: str
    locator: str
    heading_path: str
    token_count: int
    language: str
    document_id: str
    source_kind: str
    title: str
    uri: str | None
    scope: str
    connection_id: str | None
    indexed_revision: int | None
    indexed_version: str | None
    verified_at: str | None


async def resolve(
    connection: Connection, view: View, space: Space | None, hashes: Iterable[bytes], numbers: Iterable[int]
) -> list[Found]:
    """Every visible chunk with one of these texts, or with the text of one of these chunks, ready to be cited.

    The last statement of a search, and one round trip for all its candidates. It looks at scope and connections itself,
    so what was revoked while the search ran is not served. Distances are of texts found by number alone.
    """
    cursor = await connection.execute(
        view.sql.resolve,
        {
            **view.parameters,
            # written out here: the driver's own way takes longer than the lookup
            "hashes": "{" + ",".join(f'"\\\\x{text_hash.hex()}"' for text_hash in hashes) + "}",
            "numbers": "{" + ",".join(map(str, numbers)) + "}",
            "model": space.model if space else None,
            "query": space.query if space else None,
        },
        prepare=True,
        binary=True,
    )
    return [Found(*row) for row in await cursor.fetchall()]


async def numbers_of(connection: Connection, mandate_id: UUID, hashes: Sequence[bytes]) -> list[int]:
    """Every chunk with one of these texts, visible or not."""
    cursor = await connection.execute(
        "SELECT number FROM chunk WHERE mandate_id = %s AND text_hash = ANY(%s::bytea[])",
        (mandate_id, list(hashes)),
        binary=True,
    )
    return [row[0] for row in await cursor.fetchall()]


async def allowed_numbers(connection: Connection, view: View, limit: int | None) -> list[int]:
    """Every chunk number the view shows, up to a limit."""
    cursor = AsyncClientCursor(connection)
    await cursor.execute(view.sql.allowed, {**view.parameters, "limit": limit})
    return [row[0] for row in await cursor.fetchall()]


async def nearest_allowed(connection: Connection, view: View, space: Space, limit: int) -> list[Neighbour]:
    """The nearest texts among what the view shows, exactly: for views so narrow that the index would hardly hit them."""
    cursor = AsyncClientCursor(connection)
    parameters = {**view.parameters, "model": space.model, "query": space.query, "limit": limit}
    await cursor.execute(view.sql.nearest_allowed, parameters)
    return cast("list[Neighbour]", await cursor.fetchall())


async def read_texts(connection: Connection, view: View, numbers: Sequence[int]) -> list[tuple[int, str]]:
    cursor = await connection.execute(view.sql.texts, {**view.parameters, "numbers": list(numbers)})
    return cast("list[tuple[int, str]]", await cursor.fetchall())


# -- what a citation opens


async def find_locator(session: AsyncSession, document_id: UUID, chunk_id: UUID) -> dict[str, Any] | None:
    return await session.scalar(
        text(
            "SELECT locator FROM chunk WHERE mandate_id = :mandate_id AND id = :id AND document_id = :document_id"
        ),
        {"mandate_id": tenant_of(session), "id": chunk_id, "document_id": document_id},
    )
