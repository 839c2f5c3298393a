"""All SQL about what was asked, cited and answered, and what an erasure or the passing of time takes away of it."""

import json
from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.corpus.repository import VISIBLE
from gateway.db import tenant_of

Rank = tuple[int, datetime, UUID]  # how often, last when, which


async def _run(session: AsyncSession, sql: str, **values: Any) -> list[Row[Any]]:
    rows = await session.execute(text(sql), {"mandate_id": tenant_of(session), **values})
    return list(rows)


async def _count(session: AsyncSession, sql: str, **values: Any) -> int:
    """Rows that a statement changed."""
    done = await session.execute(text(sql), {"mandate_id": tenant_of(session), **values})
    return int(done.rowcount)  # pyright: ignore[reportAttributeAccessIssue]


# -- the query log


async def keep_documents(session: AsyncSession, document_ids: Collection[UUID]) -> set[UUID]:
    """Which of these are still there; until this transaction ends no erasure can take them."""
    rows = await _run(
        session,
        "SELECT id FROM document WHERE mandate_id = :mandate_id AND id = ANY(:ids) ORDER BY id FOR KEY SHARE",
        ids=list(document_ids),
    )
    return {row.id for row in rows}


async def add_queries(session: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    """Rows as `query_log` has them. One that is already there stays: a batch may come twice after a lost connection.

    Of a user or mandate erased since they asked nothing is written.
    """
    await _run(
        session,
        """
        INSERT INTO query_log (mandate_id, id, at, origin, agent_deployment_id, user_id, q, filters, result_count,
            answered, top_score, took_ms)
        SELECT :mandate_id, id, at, origin, agent_deployment_id, user_id, q, filters, result_count, answered, top_score,
            took_ms
        FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r(id uuid, at timestamptz, origin text,
            agent_deployment_id text, user_id uuid, q text, filters jsonb, result_count integer, answered boolean,
            top_score real, took_ms integer)
        -- Notes are written behind the search: one of somebody who was erased meanwhile must not come after the eraser.
        WHERE NOT EXISTS (SELECT FROM receipt e WHERE e.mandate_id = :mandate_id AND e.subject IN ('user', 'mandate')
            AND e.subject_id IN (r.user_id::text, CAST(:mandate_id AS text)) AND coalesce(e.finished_at, now()) >= r.at)
        ON CONFLICT (mandate_id, id) DO NOTHING RETURNING id
        """,
        # The standard encoder escapes what Postgres then refuses (half surrogates), where orjson would raise here.
        rows=json.dumps(rows, default=str),
    )


async def add_query_hits(session: AsyncSession, pairs: Sequence[tuple[UUID, UUID]]) -> None:
    """`(query, document)`, of queries that were written."""
    await _count(
        session,
        """
        INSERT INTO query_hit (mandate_id, query_id, document_id)
        SELECT :mandate_id, r.query_id, r.document_id
        FROM unnest(CAST(:queries AS uuid[]), CAST(:documents AS uuid[])) AS r(query_id, document_id)
        JOIN query_log q ON q.mandate_id = :mandate_id AND q.id = r.query_id
        ON CONFLICT DO NOTHING
        """,
        queries=[query for query, _ in pairs],
        documents=[document for _, document in pairs],
    )


# One spelling for a question that differs only in case and white space.
_QUERY = r"lower(btrim(regexp_replace(q, '\s+', ' ', 'g')))"
_ASKED = """
mandate_id = :mandate_id AND at >= :since AND at < :until AND q IS NOT NULL
AND (CAST(:asker AS uuid) IS NULL OR user_id = :asker) AND (CAST(:origin AS text) IS NULL OR origin = :origin)
"""


async def top_queries(
    session: AsyncSession,
    *,
    since: datetime,
    until: datetime,
    asker: UUID | None,
    origin: str | None,
    gaps: bool,
    limit: int,
    after: Rank | None = None,
) -> list[Row[Any]]:
    """Questions by how often they were asked; with `gaps`, those that found nothing to the point the last time. A question is
    long, so its hash is what it is known by from page to page.
    """
    unanswered = "HAVING NOT (array_agg(answered ORDER BY at DESC, id DESC))[1]" if gaps else ""
    return await _run(
        session,
        f"""
        SELECT n.*, CAST(md5(n.query) AS uuid) AS id FROM (
            SELECT {_QUERY} AS query, count(*) AS count, count(*) FILTER (WHERE result_count = 0) AS zero_results,
                   count(*) FILTER (WHERE NOT answered) AS unanswered,
                   round(avg(result_count), 1)::float AS mean_results,
                   percentile_disc(0.5) WITHIN GROUP (ORDER BY took_ms) AS median_ms, max(at) AS last_at
            FROM query_log WHERE {_ASKED} GROUP BY 1 {unanswered}) n
        WHERE {_after("n.count, n.last_at, CAST(md5(n.query) AS uuid)")}
        ORDER BY n.count DESC, n.last_at DESC, CAST(md5(n.query) AS uuid) DESC LIMIT :limit
        """,
        since=since,
        until=until,
        asker=asker,
        origin=origin,
        limit=limit,
        **_rank(after),
    )


def _after(ranked: str) -> str:
    """Of rows in falling order those beyond the last that was shown."""
    return (
        f"(CAST(:count AS bigint) IS NULL OR ({ranked}) "
        "< (CAST(:count AS bigint), CAST(:at AS timestamptz), CAST(:id AS uuid)))"
    )


def _rank(after: Rank | None) -> dict[str, Any]:
    count, at, row_id = after or (None, None, None)
    return {"count": count, "at": at, "id": row_id}


# -- citations


async def citable(session: AsyncSession, chunk_ids: Collection[UUID], viewer: UUID | None) -> list[Row[Any]]:
    """Chunks this viewer may see, with their documents, which no erasure can take before this transaction ends."""
    return await _run(
        session,
        f"""
        SELECT c.id AS chunk_id, c.document_id FROM chunk c
        JOIN document d ON d.mandate_id = c.mandate_id AND d.id = c.document_id
        WHERE c.mandate_id = :mandate_id AND c.id = ANY(:ids) AND {VISIBLE}
        ORDER BY d.id FOR KEY SHARE OF d
        """,
        ids=list(chunk_ids),
        viewer=viewer,
    )


async def add_citations(
    session: AsyncSession,
    turn_id: str,
    cited: Sequence[tuple[UUID, UUID]],
    *,
    user_id: UUID | None,
    agent_deployment_id: str | None,
) -> int:
    """`(chunk, document)` pairs of one turn; how many were new."""
    return await _count(
        session,
        """
        INSERT INTO citation (mandate_id, turn_id, chunk_id, document_id, agent_deployment_id, user_id)
        SELECT :mandate_id, :turn_id, chunk_id, document_id, CAST(:deployment AS text), CAST(:user_id AS uuid)
        FROM unnest(CAST(:chunks AS uuid[]), CAST(:documents AS uuid[])) AS r(chunk_id, document_id)
        ON CONFLICT (mandate_id, turn_id, chunk_id) DO NOTHING
        """,
        turn_id=turn_id,
        chunks=[chunk for chunk, _ in cited],
        documents=[document for _, document in cited],
        user_id=user_id,
        deployment=agent_deployment_id,
    )


async def most_cited(
    session: AsyncSession,
    viewer: UUID | None,
    *,
    since: datetime,
    until: datetime,
    limit: int,
    after: Rank | None = None,
) -> list[Row[Any]]:
    return await _run(
        session,
        f"""
        SELECT d.id AS document_id, d.title, d.source_kind, d.created_at, n.citations, n.last_cited_at
        FROM (SELECT document_id, count(*) AS citations, max(cited_at) AS last_cited_at FROM citation
              WHERE mandate_id = :mandate_id AND cited_at >= :since AND cited_at < :until GROUP BY document_id) n
        JOIN document d ON d.mandate_id = :mandate_id AND d.id = n.document_id
        WHERE {VISIBLE} AND {_after("n.citations, n.last_cited_at, d.id")}
        ORDER BY n.citations DESC, n.last_cited_at DESC, d.id DESC LIMIT :limit
        """,
        viewer=viewer,
        since=since,
        until=until,
        limit=limit,
        **_rank(after),
    )


async def never_cited(
    session: AsyncSession,
    viewer: UUID | None,
    *,
    since: datetime,
    until: datetime,
    limit: int,
    after: tuple[datetime, UUID] | None,
) -> list[Row[Any]]:
    """Searchable documents that no turn cited in the period: seen to be 0, which is not the same as unknown."""
    return await _run(
        session,
        f"""
        SELECT d.id AS document_id, d.title, d.source_kind, d.created_at, 0 AS citations,
               CAST(NULL AS timestamptz) AS last_cited_at
        FROM document d
        WHERE d.mandate_id = :mandate_id AND d.status = 'indexed' AND {VISIBLE}
          AND NOT EXISTS (SELECT FROM citation n WHERE n.mandate_id = :mandate_id AND n.document_id = d.id
                          AND n.cited_at >= :since AND n.cited_at < :until)
          AND (CAST(:at AS timestamptz) IS NULL OR (d.created_at, d.id) < (:at, CAST(:id AS uuid)))
        ORDER BY d.created_at DESC, d.id DESC LIMIT :limit
        """,
        viewer=viewer,
        since=since,
        until=until,
        limit=limit,
        at=after and after[0],
        id=after and after[1],
    )


# -- answers


async def add_answer(session: AsyncSession, **values: Any) -> None:
    await _count(
        session,
        """
        INSERT INTO answer (mandate_id, id, conversation_id, asked_by, user_id, question, text, model, complete)
        VALUES (:mandate_id, :id, :conversation_id, :asked_by, :user_id, :question, :text, :model, :complete)
        """,
        **values,
    )


async def conversation(
    session: AsyncSession,
    conversation_id: UUID,
    asked_by: str,
    viewer: UUID | None,
    *,
    limit: int,
    after: tuple[datetime, UUID] | None = None,
) -> list[Row[Any]]:
    """The newest turns of a conversation, newest first. Nobody reads another's.

    Of one that drew on a document the viewer may not see now – its connection is revoked, say, and the purge still under
    way – nothing is read: later turns were given the earlier ones.
    """
    return await _run(
        session,
        f"""
        SELECT id, conversation_id, question, text, model, complete, created_at FROM answer
        WHERE mandate_id = :mandate_id AND conversation_id = :conversation_id AND asked_by = :asked_by
          AND NOT EXISTS (
            SELECT FROM answer a
            JOIN citation n ON n.mandate_id = a.mandate_id AND n.turn_id = a.id::text
            JOIN document d ON d.mandate_id = n.mandate_id AND d.id = n.document_id
            WHERE a.mandate_id = :mandate_id AND a.conversation_id = :conversation_id AND ({VISIBLE}) IS NOT TRUE)
          AND (CAST(:at AS timestamptz) IS NULL OR (created_at, id) < (:at, CAST(:id AS uuid)))
        ORDER BY created_at DESC, id DESC LIMIT :limit
        """,
        conversation_id=conversation_id,
        asked_by=asked_by,
        viewer=viewer,
        limit=limit,
        at=after and after[0],
        id=after and after[1],
    )


async def conversation_owner(session: AsyncSession, conversation_id: UUID) -> str | None:
    rows = await _run(
        session,
        "SELECT asked_by FROM answer WHERE mandate_id = :mandate_id AND conversation_id = :id LIMIT 1",
        id=conversation_id,
    )
    return rows[0].asked_by if rows else None


async def cited_chunks(session: AsyncSession, turn_ids: Collection[str]) -> list[Row[Any]]:
    return await _run(
        session,
        "SELECT turn_id, chunk_id, document_id FROM citation WHERE mandate_id = :mandate_id AND turn_id = ANY(:ids) "
        "ORDER BY turn_id, cited_at, chunk_id",
        ids=list(turn_ids),
    )


# -- spend and totals


async def spend_by_day(session: AsyncSession, *, since: date, until: date) -> list[Row[Any]]:
    return await _run(
        session,
        "SELECT day, model, texts, tokens, cost FROM spend "
        "WHERE mandate_id = :mandate_id AND day >= :since AND day <= :until ORDER BY day DESC, model",
        since=since,
        until=until,
    )


async def holdings(session: AsyncSession, viewer: UUID | None = None) -> list[Row[Any]]:
    """What the mandate holds now, or what of it the viewer may see, by status and source kind: one look at every document."""
    return await _run(
        session,
        f"""
        SELECT status, source_kind, sum(n)::bigint AS documents, sum(chunks)::bigint AS chunks, sum(bytes)::bigint AS bytes
        -- By what they have in common, so that each sort of document is judged once.
        FROM (SELECT mandate_id, status, source_kind, scope, user_id, connection_id, feature_instance_id,
                     count(*) AS n, sum(chunk_count) AS chunks, sum(size) AS bytes
              FROM document WHERE mandate_id = :mandate_id GROUP BY 1, 2, 3, 4, 5, 6, 7) d
        WHERE CAST(:viewer AS uuid) IS NULL OR ({VISIBLE})
        GROUP BY status, source_kind ORDER BY status, source_kind
        """,
        viewer=viewer,
    )


async def usage(session: AsyncSession, since: datetime) -> Row[Any]:
    """What was asked and cited since."""
    rows = await _run(
        session,
        """
        SELECT count(*) AS queries, count(*) FILTER (WHERE NOT answered) AS unanswered_queries,
               (SELECT count(*) FROM citation WHERE mandate_id = :mandate_id AND cited_at >= :since) AS citations
        FROM query_log WHERE mandate_id = :mandate_id AND at >= :since
        """,
        since=since,
    )
    return rows[0]


# -- what goes


async def forget_documents(session: AsyncSession, document_ids: Collection[UUID]) -> dict[str, int]:
    """Before these documents go: the words of questions that found them, and every conversation that drew on them."""
    ids = list(document_ids)
    blanked = await _count(
        session,
        """
        UPDATE query_log SET q = NULL, filters = '{}' WHERE mandate_id = :mandate_id AND q IS NOT NULL AND id IN (
            SELECT query_id FROM query_hit WHERE mandate_id = :mandate_id AND document_id = ANY(:ids))
        """,
        ids=ids,
    )
    answers = await _count(
        session,
        # A later turn was given the earlier ones, so the conversation goes as a whole.
        """
        DELETE FROM answer WHERE mandate_id = :mandate_id AND conversation_id IN (
            SELECT a.conversation_id FROM answer a JOIN citation n
                ON n.mandate_id = a.mandate_id AND n.turn_id = a.id::text
            WHERE a.mandate_id = :mandate_id AND n.document_id = ANY(:ids))
        """,
        ids=ids,
    )
    citations = await _count(
        session, "DELETE FROM citation WHERE mandate_id = :mandate_id AND document_id = ANY(:ids)", ids=ids
    )
    return {"query_log": blanked, "answer": answers, "citation": citations}


async def forget_connection(session: AsyncSession, connection_id: UUID) -> dict[str, int]:
    """Questions that were narrowed to a connection speak of it even when they found nothing."""
    blanked = await _count(
        session,
        "UPDATE query_log SET q = NULL, filters = '{}' "
        "WHERE mandate_id = :mandate_id AND q IS NOT NULL AND filters->>'connectionId' = :id",
        id=str(connection_id),
    )
    return {"query_log": blanked}


async def forget_user(session: AsyncSession, user_id: UUID) -> dict[str, int]:
    """What a person asked and was answered goes with them; what they cited stays as a number without a name."""
    counts: dict[str, int] = {}
    for table in ("query_log", "answer"):
        counts[table] = await _count(
            session,
            f"DELETE FROM {table} WHERE mandate_id = :mandate_id AND user_id = :user_id",
            user_id=user_id,
        )
    await _count(
        session,
        "UPDATE citation SET user_id = NULL WHERE mandate_id = :mandate_id AND user_id = :user_id",
        user_id=user_id,
    )
    return counts


async def forget_all(session: AsyncSession) -> dict[str, int]:
    """For the erasure of a whole mandate."""
    return {
        table: await _count(session, f"DELETE FROM {table} WHERE mandate_id = :mandate_id")
        for table in ("query_log", "citation", "answer")
    }


_EXPIRING = {
    "query_log": "at",
    "citation": "cited_at",
    "answer": "created_at",
    "timeline": "at",
}


async def expire(session: AsyncSession, table: str, before: datetime, limit: int) -> int:
    """Deletes the oldest rows from before; of a document's timeline the last word always stays."""
    when = _EXPIRING[table]
    last_word = (
        "AND EXISTS (SELECT FROM timeline later WHERE later.mandate_id = t.mandate_id "
        "AND later.document_id = t.document_id AND (later.at, later.id) > (t.at, t.id))"
        if table == "timeline"
        else ""
    )
    key = "turn_id, chunk_id" if table == "citation" else "id"
    return await _count(
        session,
        f"""
        DELETE FROM {table} WHERE mandate_id = :mandate_id AND ({key}) IN (
            SELECT {key} FROM {table} t WHERE t.mandate_id = :mandate_id AND t.{when} < :before {last_word}
            ORDER BY t.{when} LIMIT :limit)
        """,
        before=before,
        limit=limit,
    )
