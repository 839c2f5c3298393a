"""All SQL of search. What runs here was EXPLAINed as the runtime role (tests/acceptance/test_retrieval.py).

The statements go to psycopg directly, from a thread (`gateway.readers`): a search is seven of them, and the layers above
would cost more than they do.
They are prepared once per connection, with a plan for any value, because planning costs as much as running them; what a
plan must know beforehand, such as the model of a partial index, is written out. Exact scans of a narrow view are planned
for their values.
"""

import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, LiteralString, NamedTuple, cast
from uuid import UUID

import numpy as np
import orjson
from numpy.typing import NDArray
from psycopg import ClientCursor
from psycopg.sql import quote
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.corpus.settlement_repository import index_name
from gateway.db import COMMONS, entering, tenant_of
from gateway.readers import Connection

SOURCES = 100  # of one text that a hit names; boilerplate may have thousands

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

    sources: str  # the visible chunks with the text of `t`, to be joined
    visible: bytes
    page: bytes
    still: bytes
    allowed: bytes
    nearest_allowed: bytes
    texts: bytes


@lru_cache(maxsize=256)
def statements(given: tuple[str, ...]) -> Statements:
    # The one predicate of the corpus browser, in this driver's spelling.
    view = " AND ".join([VISIBLE.replace(":viewer", "%(viewer)s"), *(_CLAUSES[name] for name in given)])
    sources = f"""
            LATERAL (SELECT c.number FROM {_CHUNKS}
                WHERE c.mandate_id = %(mandate_id)s AND c.text_hash = t.text_hash AND {view}
                ORDER BY c.number LIMIT {SOURCES}) f"""
    return Statements(
        sources=sources,
        visible=f"""
            SELECT t.text_hash, t.asked, v.embedding <=> %(query)s::halfvec AS distance, f.number
            FROM (SELECT c.text_hash, array_agg(c.number) AS asked FROM unnest(%(numbers)s::bigint[]) AS n(number)
                JOIN chunk c ON c.mandate_id = %(mandate_id)s AND c.number = n.number GROUP BY c.text_hash) t
            LEFT JOIN {sources} ON true
            LEFT JOIN text_vector v
                ON v.mandate_id = %(mandate_id)s AND v.model = %(model)s AND v.text_hash = t.text_hash
            """.encode(),
        # Ids, times and locators as text: they are taken apart where they are needed.
        page=f"""
            SELECT c.text_hash, c.number, c.id::text, c.text, c.locator::text, c.heading_path, c.token_count, c.language,
                d.id::text, d.source_kind, d.title, d.uri, d.scope, d.connection_id::text, d.indexed_revision,
                d.indexed_version, d.verified_at::text
            FROM {_CHUNKS} WHERE c.mandate_id = %(mandate_id)s AND c.number = ANY(%(numbers)s::bigint[]) AND {view}
            ORDER BY c.number
            """.encode(),
        still=f"""
            SELECT c.id FROM {_CHUNKS} WHERE c.mandate_id = %(mandate_id)s AND c.id = ANY(%(ids)s::uuid[]) AND {view}
            """.encode(),
        allowed=f"""
            SELECT c.number FROM {_CHUNKS} WHERE d.mandate_id = %(mandate_id)s AND {view} LIMIT %(limit)s
            """.encode(),
        # OFFSET 0 keeps the planner from reading all vectors to find a few thousand of them.
        nearest_allowed=f"""
            SELECT t.text_hash, t.distance, f.number FROM (
                SELECT h.text_hash, n.distance
                FROM (SELECT DISTINCT c.text_hash FROM {_CHUNKS} WHERE d.mandate_id = %(mandate_id)s AND {view}) h
                CROSS JOIN LATERAL (
                    SELECT v.embedding <=> %(query)s::halfvec AS distance FROM text_vector v
                    WHERE v.mandate_id = %(mandate_id)s AND v.model = %(model)s AND v.text_hash = h.text_hash OFFSET 0) n
                ORDER BY n.distance LIMIT %(limit)s) t
            CROSS JOIN {sources}
            """.encode(),
        texts=f"""
            SELECT c.number, concat_ws(E'\n', c.title, c.text), c.document_id FROM {_CHUNKS}
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


def halfvec_literal(vector: NDArray[np.float32]) -> str:
    return orjson.dumps(np.ascontiguousarray(vector), option=orjson.OPT_SERIALIZE_NUMPY).decode()


# How every statement of a search is run. An iterative scan is off, as pgvector has it: it keeps every neighbour it passes by,
# for a later that seldom comes. `nearest` turns it on when a plain scan did not find enough; it gives up beyond
# 20,000 tuples, also pgvector's own word, and the caller searches what is visible exactly.
SETTINGS: dict[str, str | int] = {
    "plan_cache_mode": "force_generic_plan",
    "hnsw.ef_search": LEAST_EF_SEARCH,
}


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


def read_state(connection: Connection, mandate_id: UUID, model: str) -> State:
    """Which languages the mandate holds (a hop per language, not a scan) and how its vectors are searched."""
    cursor = connection.execute(
        _STATE, {"mandate_id": mandate_id, "model": model, "index": index_name(model)}, prepare=True
    )
    languages, settled, chunks, indexed = cast(
        "tuple[list[str], bool, float | None, float | None]", cursor.fetchone()
    )
    # Chunks stand for vectors, whose exact number would take a scan; a guess about effort may be rough.
    share = min(max((chunks or 0.0) / max(indexed or 0.0, 1.0), 0.01), 1.0)
    return State(languages, share if settled else None)


def commons_hold_anything(connection: Connection, *, back_to: UUID) -> bool:
    """Whether there is any chunk in the commons: there and back to one's own mandate in one message."""
    cursor = connection.execute(
        f"{entering(COMMONS)}; SELECT EXISTS (SELECT FROM segment); {entering(back_to)}".encode()
    )
    cursor.nextset()
    return bool(cursor.fetchall()[0][0])


# -- the lexical leg

_POSTINGS = """
SELECT NULL::text, NULL::bytea, string_agg(uuid_send(id) || int4send(version), ''::bytea ORDER BY id)
FROM segment WHERE mandate_id = %(mandate_id)s
UNION ALL
SELECT term, uuid_send(segment_id), data FROM posting WHERE mandate_id = %(mandate_id)s AND term = ANY(%(terms)s)
"""
PostingRow = tuple[str, bytes, bytes]  # term, segment, packed postings
_VERSION = struct.Struct(">16si")


def read_postings(
    connection: Connection, mandate_id: UUID, terms: Sequence[str]
) -> tuple[bytes, list[PostingRow]]:
    """Every segment with its version, packed, and the terms' postings, of one and the same moment."""
    cursor = connection.execute(
        _POSTINGS, {"mandate_id": mandate_id, "terms": list(terms)}, prepare=True, binary=True
    )
    rows = cast("list[tuple[str | None, bytes, bytes]]", cursor.fetchall())
    versions = next(data for term, _, data in rows if term is None)
    return versions or b"", [cast("PostingRow", row) for row in rows if row[0] is not None]


def segment_versions(packed: bytes) -> dict[bytes, int]:
    """Segment → its version, in the order of their ids."""
    return dict(_VERSION.iter_unpack(packed))


def read_directories(
    connection: Connection, mandate_id: UUID, segments: Sequence[bytes]
) -> list[tuple[bytes, int, bytes]]:
    cursor = connection.execute(
        "SELECT uuid_send(id), version, directory FROM segment WHERE mandate_id = %s AND id = ANY(%s)",
        (mandate_id, [UUID(bytes=segment) for segment in segments]),
        binary=True,
    )
    return cast("list[tuple[bytes, int, bytes]]", cursor.fetchall())


# -- the dense leg

# Text hash, cosine distance, and a visible chunk with the text; none: it is there, but not to be seen.
Neighbour = tuple[bytes, float, int | None]


@lru_cache(maxsize=512)
def nearest_statement(
    mandate_id: UUID, model: str, width: int, limit: int, sources: str, *, indexed: bool
) -> bytes:
    """What decides the plan is written out – whose vectors, which model's, how many – so that it finds the partial index, and
    is right for a mandate of any size. Without sources it is the bare index query.
    """
    name, most = quote(model).replace("%", "%%"), int(limit)
    where = f"FROM text_vector WHERE mandate_id = '{UUID(int=mandate_id.int)}' AND model = {name}"
    near = f"""
        SELECT text_hash, embedding <=> %(query)s::halfvec AS distance {where} AND NOT settled
        ORDER BY distance LIMIT {most}"""
    if indexed:
        near = f"""
        (SELECT text_hash, (embedding::halfvec({int(width)})) <=> %(query)s::halfvec({int(width)}) AS distance {where}
        AND settled ORDER BY distance LIMIT {most}) UNION ALL ({near}) ORDER BY distance LIMIT {most}"""
    if not sources:
        return near.encode()
    return f"""
        WITH t AS MATERIALIZED ({near})
        SELECT t.text_hash, t.distance, f.number FROM t LEFT JOIN {sources} ON true""".encode()


def nearest(
    connection: Connection, view: View, space: Space, *, share: float | None, limit: int
) -> list[Neighbour]:
    """The mandate's nearest texts: settled ones by the index, the rest exactly; whether visible or not, but saying so."""
    # Twice what is wanted, because the end of a list as long as ef_search is poor; and the more the smaller the share,
    # because other mandates' vectors take their places in the list before they are dropped.
    width = min(int(max(2 * limit, LEAST_EF_SEARCH) / (share or 1.0)), MOST_EF_SEARCH)
    if width != LEAST_EF_SEARCH:  # and stays so: whoever looks again looks further
        connection.execute(f"SET LOCAL hnsw.ef_search = {width}".encode())
    statement = nearest_statement(
        view.mandate_id, space.model, space.dimensions, limit, view.sql.sources, indexed=share is not None
    )
    parameters = {**view.parameters, "query": space.query}
    found = _neighbours(connection, statement, parameters)
    if share is not None and len({text_hash for text_hash, *_ in found}) < limit:
        # Other mandates' vectors took the places.
        connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        found = _neighbours(connection, statement, parameters)
    return found


def _neighbours(connection: Connection, statement: bytes, parameters: dict[str, Any]) -> list[Neighbour]:
    cursor = connection.execute(statement, parameters, prepare=True, binary=True)
    return cast("list[Neighbour]", cursor.fetchall())


# -- what the view lets through


class Seen(NamedTuple):
    """A visible chunk; `asked` are the chunk numbers asked for that have its text."""

    text_hash: bytes
    asked: list[int]
    distance: float | None
    number: int


def visible(
    connection: Connection, view: View, space: Space | None, numbers: Collection[int]
) -> tuple[list[Seen], bool]:
    """Every visible chunk with the text of one of these chunks, and how far that is from the query; and whether all of
    these chunks are there, visible or not.
    """
    cursor = connection.execute(
        view.sql.visible,
        {
            **view.parameters,
            "numbers": _listed(numbers),
            "model": space.model if space else None,
            "query": space.query if space else None,
        },
        prepare=True,
        binary=True,
    )
    rows = cursor.fetchall()
    there = {number for _, asked, _, _ in rows for number in asked}
    return [Seen._make(row) for row in rows if row[-1] is not None], len(there) == len(numbers)


class Found(NamedTuple):
    """A chunk, ready to be cited."""

    text_hash: bytes
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


def page(connection: Connection, view: View, numbers: Iterable[int]) -> list[Found]:
    """These chunks, in one round trip for a page of hits.

    The last statement of a search. It looks at scope and connections once more, so what was revoked while the search ran
    is not served.
    """
    parameters = {**view.parameters, "numbers": _listed(numbers)}
    cursor = connection.execute(view.sql.page, parameters, prepare=True, binary=True)
    return list(map(Found._make, cursor.fetchall()))


def _listed(numbers: Iterable[int]) -> str:
    """Written out here: the driver's own way takes longer than the lookup."""
    return "{" + ",".join(map(str, numbers)) + "}"


def still_visible(connection: Connection, view: View, chunk_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the chunks that the view shows now."""
    cursor = connection.execute(view.sql.still, {**view.parameters, "ids": list(chunk_ids)}, binary=True)
    return {row[0] for row in cursor.fetchall()}


def numbers_of(connection: Connection, mandate_id: UUID, hashes: Sequence[bytes]) -> list[int]:
    """Every chunk with one of these texts, visible or not."""
    cursor = connection.execute(
        "SELECT number FROM chunk WHERE mandate_id = %s AND text_hash = ANY(%s::bytea[])",
        (mandate_id, list(hashes)),
        binary=True,
    )
    return [row[0] for row in cursor.fetchall()]


def allowed_numbers(connection: Connection, view: View, limit: int | None) -> list[int]:
    """Every chunk number the view shows, up to a limit."""
    cursor = ClientCursor(connection)
    cursor.execute(view.sql.allowed, {**view.parameters, "limit": limit})
    return [row[0] for row in cursor.fetchall()]


def nearest_allowed(connection: Connection, view: View, space: Space, limit: int) -> list[Neighbour]:
    """The nearest texts among what the view shows, exactly: for views so narrow that the index would hardly hit them."""
    cursor = ClientCursor(connection)
    parameters = {**view.parameters, "model": space.model, "query": space.query, "limit": limit}
    cursor.execute(view.sql.nearest_allowed, parameters)
    return cast("list[Neighbour]", cursor.fetchall())


class Text(NamedTuple):
    """A chunk's title and text, as they are searched."""

    number: int
    text: str
    document_id: UUID


def read_texts(connection: Connection, view: View, numbers: Sequence[int]) -> list[Text]:
    cursor = connection.execute(view.sql.texts, {**view.parameters, "numbers": list(numbers)})
    return list(map(Text._make, cursor.fetchall()))


# -- what a citation opens


async def find_locator(session: AsyncSession, document_id: UUID, chunk_id: UUID) -> dict[str, Any] | None:
    return await session.scalar(
        text(
            "SELECT locator FROM chunk WHERE mandate_id = :mandate_id AND id = :id AND document_id = :document_id"
        ),
        {"mandate_id": tenant_of(session), "id": chunk_id, "document_id": document_id},
    )
