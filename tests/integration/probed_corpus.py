"""What the cross-tenant probes need to know about the repositories behind the door: one row of everything, and what each
parameter means."""

import os
from decimal import Decimal
from uuid import uuid4

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.connections import repository as connections
from gateway.corpus import blob_repository as blobs
from gateway.corpus import chunk_repository as chunks
from gateway.corpus import erasure_repository as erasures
from gateway.corpus import repository as corpus
from gateway.corpus import vector_repository as vectors
from gateway.corpus.chunk_repository import ChunkRow
from gateway.corpus.repository import DocumentFilter
from gateway.db import new_id
from gateway.ingestion import ledger_repository as ledger
from gateway.ingestion import repository as ingestion
from gateway.insights import spend_repository as spend
from tests.integration.probes import Probed, Value, World, either, existing, invented, listed

MODEL = "lookup-4@1"
TABLES = (
    *("connection", "blob", "blob_upload", "document", "document_text", "segment", "posting", "chunk"),
    *("text_vector", "vector_claim", "job", "outbox", "timeline", "receipt", "spend"),
)


def document_row(document_id, user_id, sha256: bytes, connection_id=None, source_id: str = "s") -> dict:
    empty = dict.fromkeys(
        (
            "uri",
            "mime_type",
            "language",
            "type",
            "feature_code",
            "feature_instance_id",
            "data_source_id",
            "parent_document_id",
        )
    )
    return empty | {
        "id": document_id,
        "connection_id": connection_id,
        "source_kind": "paste",
        "source_id": source_id,
        "title": "T",
        "tags": [],
        "metadata": {},
        "scope": "personal",
        "user_id": user_id,
        "neutralize": False,
        "content_version": None,
        "content_hash": os.urandom(32),
        "fingerprint": os.urandom(32),
        "blob_sha256": sha256,
        "content_form": "text",
        "size": 1,
    }


async def fill(session: AsyncSession) -> None:
    """One of everything, in the session's mandate."""
    user_id = (await session.execute(text('SELECT id FROM "user" LIMIT 1'))).scalar_one()
    connection_id, document_id, segment_id, sha256, text_hash = (
        new_id(), new_id(), new_id(), os.urandom(32), os.urandom(32)
    )  # fmt: skip
    await connections.add(session, connection_id, "msft", user_id)
    await blobs.insert_blobs(session, [(sha256, 1, b"x")])
    await blobs.note_upload(session, sha256, f"user:{user_id}")
    row = document_row(document_id, user_id, sha256, connection_id, f"source-{new_id().hex}{new_id().hex}")
    await ingestion.insert_documents(session, [row])
    job = {"id": new_id(), "kind": "ingest", "lane": "delta", "document_id": document_id, "revision": 1}
    await ingestion.insert_jobs(session, [job | {"dedupe_key": f"ingest:{document_id}"}])
    await ingestion.ring_on_commit(
        session, [{"id": new_id(), "topic": "event", "lane": "delta", "payload": {}}]
    )
    await ingestion.add_timeline(session, [{"id": new_id(), "document_id": document_id, "status": "pending"}])
    [number] = await chunks.next_numbers(session, 1)
    await chunks.insert_segment(
        session, segment_id, connection_id, bytes(12), [number], [("term", b"\x00\x00\x00")]
    )
    chunk = ChunkRow(
        new_id(), number, document_id, 0, "text", text_hash, {"kind": "text"}, "", 1, "en", MODEL
    )
    await chunks.insert_chunks(session, [chunk])
    await chunks.keep_texts(session, [(document_id, "text")])
    await vectors.insert(session, MODEL, [text_hash], np.ones((1, 4), np.float32))
    await vectors.claim(session, MODEL, [os.urandom(32)], new_id(), seconds=600)
    await erasures.open_receipt(session, new_id(), "connection", str(connection_id), "test")
    await spend.add(session, MODEL, texts=1, tokens=1, cost=Decimal(1))


def documents(world: World, chance) -> tuple[list, list]:
    """Rows that name B's document, or one that is nowhere. The bytes are nobody's: only the id could match."""
    pair = existing("document")(world, chance)
    return tuple([document_row(one, uuid4(), bytes(32))] for one in pair)  # type: ignore[return-value]


def rows_with(table: str, field: str = "id", **others: Value) -> Value:
    def value(world: World, chance) -> tuple[list, list]:
        real, made_up = existing(table)(world, chance)
        both = []
        for side, one in enumerate((real, made_up)):
            both.append(
                [{field: str(one), **{name: make(world, chance)[side] for name, make in others.items()}}]
            )
        return both[0], both[1]

    return value


def keys(world: World, chance) -> tuple[list, list]:
    row = chance.choice(world.rows["document"])
    return [(row.connection_id, row.source_kind, row.source_id)], [(uuid4(), "paste", uuid4().hex)]


def claims(world: World, chance) -> tuple[list, list]:
    row = chance.choice(world.rows["job"])
    return [(row.id, row.fence)], [(uuid4(), row.fence)]


def new_chunk(world: World, chance) -> tuple[list, list]:
    """A chunk for B's document, with an id of its own in each call."""
    real, made_up = existing("document")(world, chance)
    return tuple(  # type: ignore[return-value]
        [ChunkRow(uuid4(), 1, one, 0, "t", bytes(32), {"kind": "text"}, "", 1, "en", MODEL)]
        for one in (real, made_up)
    )


def texts_for(world: World, chance) -> tuple[list, list]:
    real, made_up = existing("document")(world, chance)
    return [(real, "t")], [(made_up, "t")]


def subject_ids(world: World, chance) -> tuple[str, str]:
    return world.one("receipt", "subject_id", chance), str(uuid4())


SHARED: dict[str, Value] = {
    "document_id": existing("document"),
    "document_ids": listed("document"),
    "job_id": existing("job"),
    "job_ids": listed("job"),
    "ids": listed("connection"),
    "connection_id": existing("connection"),
    "user_id": existing("user"),
    "viewer": existing("user"),
    "digest": existing("blob", "sha256"),
    "digests": listed("blob", "sha256"),
    "hashes": listed("text_vector", "text_hash"),
    "receipt_id": existing("receipt"),
    "segment_id": existing("segment"),
    "segment_ids": listed("segment"),
    "owner_id": existing("segment", "owner_id"),
    "chunk_ids": listed("chunk"),
    "claimant": existing("vector_claim", "claimant"),
    "numbers": either([1, 2, 3], list(range(1, 200))),
    "model": either(MODEL),
    "lane": either("interactive", "delta", "backfill"),
    "status": either("extracted", "embedding"),
    "reason": either("budget", "test"),
    "keys": keys,
    "claims": claims,
    "limit": either(1, 50),
    "after": either(None),
    "lease_seconds": either(30.0),
    "delay_seconds": either(0.0),
    "refund": either(True, False),
    "seconds": either(30.0),
    "count": either(1),
    "older_than_seconds": either(0.0),
    "fewer_than": either(1000),
    "at_least": either(1),
    "principal": either("user:x"),
    "source_id": existing("document", "source_id"),
    "subject": either("connection"),
    "subject_id": subject_ids,
    "counts": either({"document": 1}),
    "done": either(True, False),
    "terms": either(["term"]),
    "fields": either({"title": "x"}),
    "wanted": either(DocumentFilter()),
    "revision": either(1),
    "fingerprint": either(bytes(32)),
}


def probed(repository, **parameters: Value) -> Probed:
    return Probed(
        repository,
        TABLES,
        nothing,
        SHARED | {k.replace("__", "."): v for k, v in parameters.items()},
        SWEEPING,
    )


async def nothing(_session: AsyncSession) -> None:
    """`fill` has made the rows already."""


# The sweeper's own reads and the heartbeat cross tenants by design, with columns that say nothing.
# So do chunk numbers, which come from one sequence and name nothing.
SWEEPING = frozenset({"due_bells", "outbox_heads", "count_jobs", "beat", "next_numbers"})

CORPUS = [
    Probed(
        connections,
        TABLES,
        fill,
        SHARED
        | {
            "add.connection_id": invented(uuid4),
            "add.user_id": existing("user"),
            "authority": either("msft"),
            "state": either("active"),
        },
    ),
    probed(
        ingestion,
        insert_documents__rows=documents,
        renew_documents__rows=documents,
        describe_documents__rows=documents,
        insert_jobs__rows=rows_with(
            "document", "document_id", id=invented(lambda: str(uuid4())), kind=either("ingest"), lane=either("delta")
        ),
        ring_on_commit__rows=invented(lambda: [{"id": str(uuid4()), "topic": "bell", "lane": "delta"}]),
        add_timeline__rows=rows_with(
            "document", "document_id", id=invented(lambda: str(uuid4())), status=either("pending")
        ),
        list_jobs__status=either(None, "pending"),
    ),
    probed(
        ledger,
        finish__rows=rows_with("job", status=either("failed"), reason=either("x"), error=either("x")),
        delete_outbox__ids=listed("outbox"),
        take_events__ids=listed("outbox"),
    ),
    probed(blobs, insert_blobs__rows=invented(lambda: [(os.urandom(32), 1, b"x")])),
    probed(
        chunks,
        insert_chunks__chunks=new_chunk,
        move_chunks__rows=rows_with(
            "chunk", ordinal=either(5), locator=either({}), heading_path=either("h"), language=either("de"),
            model=either(MODEL), token_count=either(1),
        ),
        insert_segment__segment_id=invented(uuid4),
        insert_segment__rows=either([("t", b"\x00\x00\x00")]),
        directory=either(bytes(12)),
        rewrite_segment__chunks=either(0, 1),
        rewrite_segment__rows=either([("term", None)], [("term", b"\x00\x00\x00")]),
        publish__rows=rows_with("document", chunk_count=either(1), language=either("en"), mime_type=either("x/y")),
        texts=texts_for,
    ),
    probed(vectors, vectors=either(np.ones((1, 4), np.float32)), insert__hashes=invented(lambda: [os.urandom(32)])),
    probed(erasures, open_receipt__receipt_id=invented(uuid4), connections_of__subject=either("mandate", "user")),
    probed(
        corpus,
        is_feature_member__feature_instance_id=existing("feature_instance"),
        list_chunks__after=either(-1),
        source_id=existing("document", "source_id"),
    ),
    probed(spend, texts=either(1), tokens=either(1), cost=either(Decimal(1))),
]  # fmt: skip
