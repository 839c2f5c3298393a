"""Tenants never mix: 10,000 random probes find nothing, and they do find it when a protection is taken away."""

import os
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest

from gateway.corpus.chunk_repository import ChunkRow
from gateway.corpus.entries_repository import EntryFilter
from gateway.corpus.repository import DocumentFilter
from gateway.corpus.search_repository import Filters, Space, View
from gateway.db import Database, new_id
from gateway.tenancy import service
from tests.fixtures.stores import DatabaseUrls
from tests.integration.probe_world import fill_every_table
from tests.integration.probes import (
    Probed,
    Value,
    either,
    existing,
    listed,
    made_of,
    new,
    probe,
    row_of,
    together,
    victim,
)

ROOT = Path(__file__).parents[2]
LONG_AGO, SOON = datetime(2020, 1, 1, tzinfo=timezone.utc), datetime(2100, 1, 1, tzinfo=timezone.utc)
_ROUTING = "leads from outside to a mandate; tenant-free tables only"
_SWEEPER = "runs as the sweeper, across tenants, on columns granted to it"
_HOUSE = "about the installation, not about a tenant"
_OWNER = "builds indexes as the owner of the tables"

PROBED = [
    Probed(
        import_module("gateway.tenancy.repository"),
        exempt=dict.fromkeys(
            (
                *("claim_slug", "mandate_of_slug", "mandate_exists", "list_mandate_ids", "all_mandate_ids"),
                *("key_route", "session_route", "use_login_route"),
            ),
            _ROUTING,
        )
        | dict.fromkeys(("schema_revision", "sweeper_age_seconds"), _HOUSE),
    ),
    Probed(import_module("gateway.console.repository")),
    Probed(import_module("gateway.connections.repository")),
    Probed(import_module("gateway.connections.purge_repository")),
    Probed(import_module("gateway.connections.oauth_repository")),
    Probed(import_module("gateway.connections.webhook_repository"), exempt={"find_route": _ROUTING}),
    Probed(import_module("gateway.connections.vault_repository")),
    Probed(import_module("gateway.connections.sync_repository")),
    Probed(import_module("gateway.connections.sync_item_repository")),
    Probed(import_module("gateway.connections.sync_absence_repository")),
    Probed(import_module("gateway.ingestion.repository"), exempt={"count_jobs": _SWEEPER}),
    Probed(
        import_module("gateway.ingestion.ledger_repository"),
        exempt={"due_bells": _SWEEPER, "outbox_heads": _SWEEPER, "beat": _HOUSE},
    ),
    Probed(import_module("gateway.ingestion.snapshot_repository")),
    Probed(import_module("gateway.corpus.repository")),
    Probed(import_module("gateway.corpus.blob_repository")),
    Probed(import_module("gateway.corpus.chunk_repository"), exempt={"next_numbers": _HOUSE}),
    Probed(import_module("gateway.corpus.context_repository")),
    Probed(import_module("gateway.corpus.entries_repository")),
    Probed(import_module("gateway.corpus.erasure_repository")),
    Probed(import_module("gateway.corpus.export_repository")),
    Probed(import_module("gateway.corpus.search_repository")),
    Probed(
        import_module("gateway.corpus.settlement_repository"),
        exempt=dict.fromkeys(("build_index", "drop_index", "has_index", "tidy", "try_lock"), _OWNER),
    ),
    Probed(import_module("gateway.corpus.vector_repository")),
    Probed(import_module("gateway.insights.repository")),
    Probed(
        import_module("gateway.tenancy.hold_repository"), exempt={"wait_for_erasures": "an advisory lock"}
    ),
    Probed(import_module("gateway.insights.spend_repository")),
]
# Repositories that know no tenants.
NOT_PROBED = {
    "gateway.embedded.repository": "roles and databases, before there is a schema",
    "gateway.commands.repository": "what doctor asks a server about itself",
}

MODEL = "canary-model-of-b"
IDS: dict[str, Value] = {
    "user_id": existing("user"),
    "user_ids": listed("user"),
    "viewer": existing("user"),
    "asker": existing("user"),
    "act_as": existing("user"),
    "key_id": existing("api_key"),
    "session_id": existing("session"),
    "instance_id": existing("feature_instance"),
    "instance_ids": listed("feature_instance"),
    "feature_instance_id": existing("feature_instance"),
    "connection_id": existing("connection"),
    "owner_id": existing("segment", "owner_id"),
    "document_id": existing("document"),
    "document_ids": listed("document"),
    "entry_id": existing("document"),
    "job_id": existing("job"),
    "job_ids": listed("job"),
    "chunk_id": existing("chunk"),
    "chunk_ids": listed("chunk"),
    "segment_id": existing("segment"),
    "segment_ids": listed("segment"),
    "segments": made_of(lambda row: [row["id"].bytes], "segment"),
    "receipt_id": existing("receipt"),
    "conversation_id": existing("answer", "conversation_id"),
    "claimant": existing("vector_claim", "claimant"),
    "turn_id": existing("citation", "turn_id"),
    "turn_ids": listed("citation", "turn_id"),
    "mandate_id": victim(),
    "back_to": victim(),
    "ids": listed("outbox"),
    "repository.share_lock.ids": listed("connection"),
    "repository.sources_of.ids": listed("connection"),
    "repository.last_receipts.ids": listed("connection"),
    "repository.troubles.counted": listed("connection"),
    "data_source_id": existing("data_source"),
    "watch_id": existing("watch"),
    "failure_id": existing("item_failure"),
    "external_id": existing("remote_item", "external_id"),
    "external_ids": listed("remote_item", "external_id"),
    "folders": listed("remote_item", "external_id"),
    "parents": listed("remote_item", "parent_id"),
    "containers": listed("remote_item", "container_id"),
    "sync_repository.add_job.connection_id": existing("connection"),
}
TEXTS: dict[str, Value] = {
    "email": existing("user", "email"),
    "vendor_id": existing("watch", "vendor_id"),
    "delivery_id": existing("webhook_delivery", "delivery_id"),
    "swap_tokens.old": existing("connection", "sealed_tokens"),
    "take_state.state_hash": existing("oauth_state", "state_hash"),
    "browser_hash": existing("oauth_state", "browser_hash"),
    "source_id": existing("document", "source_id"),
    "source_ids": listed("document", "source_id"),
    "subject_id": made_of(lambda row: str(row["id"]), "document"),
    "asked_by": existing("answer", "asked_by"),
    "principal": existing("blob_upload", "principal"),
    "digest": existing("blob", "sha256"),
    "digests": listed("blob", "sha256"),
    "hashes": listed("text_vector", "text_hash"),
    "content_hash": existing("document", "content_hash"),
    "terms": listed("posting", "term"),
    "numbers": listed("chunk", "number"),
    "dedupe_key": existing("job", "dedupe_key"),
}
ROWS: dict[str, Value] = {
    "keys": made_of(lambda row: [(row["connection_id"], row["source_kind"], row["source_id"])], "document"),
    "key": made_of(lambda row: (row["connection_id"], row["source_kind"], row["source_id"]), "document"),
    "claims": made_of(lambda row: [(row["id"], row["fence"])], "job"),
    "advance.documents": made_of(lambda row: [(row["id"], row["revision"])], "document"),
    "cited": made_of(lambda row: [(row["id"], row["document_id"])], "chunk"),
    "pairs": made_of(lambda row: [(row["query_id"], row["document_id"])], "query_hit"),
    "texts": made_of(lambda row: [(row["document_id"], row["text"])], "document_text"),
    "titles": made_of(lambda row: {row["id"]: "Title"}, "chunk"),
    "chunks": made_of(
        lambda row: [ChunkRow(**{name: row[name] for name in ChunkRow.__dataclass_fields__})], "chunk"
    ),
    "insert_documents.rows": row_of("document"),
    "renew_documents.rows": row_of("document"),
    "describe_documents.rows": row_of("document"),
    "publish.rows": row_of("document"),
    "insert_jobs.rows": row_of("job"),
    "add_sources.rows": row_of("data_source"),
    "upsert_items.rows": row_of("remote_item"),
    "settle_items.rows": row_of("remote_item"),
    "mark_failed.rows": row_of("remote_item"),
    "leave_out.rows": row_of("remote_item"),
    "tombstones": row_of("remote_item"),
    "record_failures.rows": row_of("item_failure"),
    "swap_sealed.rows": made_of(lambda row: [(row["id"], row["sealed_tokens"], b"new")], "connection"),
    "finish.rows": row_of("job"),
    "ring_on_commit.rows": row_of("outbox"),
    "add_timeline.rows": row_of("timeline"),
    "move_chunks.rows": row_of("chunk"),
    "add_queries.rows": row_of("query_log"),
    "insert_blobs.rows": made_of(lambda row: [(row["sha256"], row["size"], row["data"])], "blob"),
    "insert_segment.rows": made_of(lambda row: [(row["term"], row["data"])], "posting"),
    "rewrite_segment.rows": made_of(lambda row: [(row["term"], row["data"])], "posting"),
    "rewrite_segment.chunks": either(0, 1),
    "update_mandate.values": together(name=either("Name"), policy=either({"graceDays": 1})),
    "insert_user.values": together(email=existing("user", "email"), display_name=either("Name")),
    "update_user.values": together(display_name=either("Name")),
    "insert_key.values": together(
        name=either("Name"), hint=either("hint"), user_id=existing("user"), scopes=either(["read"])
    ),
    "add_answer.values": made_of(lambda row: {k: v for k, v in row.items() if k != "mandate_id"}, "answer"),
}
PLAIN: dict[str, Value] = {
    "slug": new(lambda: f"s-{uuid4().hex}"),
    "key_hash": new(lambda: os.urandom(32)),
    "token_hash": new(lambda: os.urandom(32)),
    "plain": either(b"f" * 32),
    "masked": either(b"g" * 32),
    "mandatory": either([], ["paste"]),
    "with_parent": either(True, False),
    "state_hash": new(lambda: os.urandom(32)),
    "sealed_flow": either(b"flow"),
    "sealed_secret": either(b"secret"),
    "sealed": either(b"sealed"),
    "sealed_with_others.key_id": either(b"12345678"),
    "sealed_with_others.table": either("connection", "watch", "oauth_state"),
    "swap_sealed.table": either("connection"),
    "expires_at": either(SOON),
    "account": either({"id": "account"}),
    "surfaces": either(["outlook"]),
    "policy": either({"sites": ["x"]}),
    "details": either({"kind": "x"}),
    "resource": either("resource"),
    "scope": either("mandate", "personal"),
    "auto_start": either(True, False),
    "paused": either(True, False),
    "generation": either(1),
    "room": either([3, 1000]),
    "days": either(0, 7),
    "directory": either(b"directory"),
    "set_feature_members.user_ids": either([]),
    "vectors": either(np.ones((1, 2), np.float32)),
    "fields": either({"title": "Title"}),
    "counts": either({"documents": 1}),
    "column": either("status", "source_kind"),
    "table": either("query_log", "citation", "answer", "timeline"),
    "wanted": made_of(lambda row: DocumentFilter(connection_id=row["connection_id"]), "document"),
    "entries_repository.browse_entries.wanted": either(EntryFilter()),
    "view": made_of(
        lambda row: View(row["mandate_id"], row["user_id"], Filters(connection_id=row["connection_id"])),
        "document",
    ),
    "space": either(Space(MODEL, 2, "[1,0]")),
    "model": either(MODEL),
    "authority": either("msft"),
    "state": either("active"),
    "sync_item_repository.find_items.state": either(None, "pending"),
    "sync_item_repository.find_items.name": either(None, "canary"),
    "entomb.state": either("deleted"),
    "mark_absent.state": either("deleted", "held"),
    "cursor": either("cursor"),
    "phase": either("delta"),
    "listing": either({"full": True}),
    "held": either(None, {"count": 1}),
    "run": either({}),
    "error": either("unavailable"),
    "synced": either(True, False),
    "kind": either("sync"),
    "payload": either({"mode": "delta"}),
    "now": either(SOON),
    "status": either("pending", "extracted"),
    "list_jobs.status": either(None, "pending"),
    "lane": either("interactive", "delta"),
    "subject": either("document"),
    "connections_of.subject": either("user"),
    "connections_of.subject_id": made_of(lambda row: str(row["id"]), "user"),
    "reason": either("reason"),
    "name": either("Name"),
    "label": either("Label"),
    "feature_code": either("code"),
    "csrf_token": either("token"),
    "role": either("member", "admin", "owner"),
    "life": either(timedelta(minutes=5)),
    "lock": either(True, False),
    "settled": either(True, False),
    "done": either(True, False),
    "refund": either(True, False),
    "gaps": either(True, False),
    "everybodys": either(True, False),
    "whose": either(None),
    "told": either({"room": 1}),
    "origin": either(None),
    "agent_deployment_id": either(None),
    "after": either(None),
    "list_chunks.after": either(-1),
    "rows_about.after": either(""),
    "documents_of.after": either(UUID(int=0)),
    "chunks_after.after": either((UUID(int=0), -1)),
    "about": either(
        "account", "keys", "connections", "uploads", "documents", "queries", "answers", "citations"
    ),
    "source_kind": either("paste", "upload"),
    "subjects_after.source_kind": either("profile_snapshot", "feature_snapshot"),
    "subjects_after.subject": either(""),
    "prefix": either(""),
    "revoked": either(True, False),
    "limit": either(1, 50),
    "share": either(None, 0.01, 1.0),
    "start": either(0),
    "length": either(100),
    "revision": either(1),
    "seconds": either(5.0),
    "lease_seconds": either(5.0),
    "delay_seconds": either(5.0),
    "older_than_seconds": either(0.0),
    "quiet_seconds": either(0.0),
    "held_back": either(["throttled"]),
    "fewer_than": either(10),
    "at_least": either(1),
    "texts_count": either(1),
    "add.texts": either(1),
    "tokens": either(1),
    "cost": either(Decimal("0.1")),
    "since": either(LONG_AGO),
    "until": either(SOON),
    "before": either(LONG_AGO),
    "spend_by_day.since": either(date(2020, 1, 1)),
    "spend_by_day.until": either(date(2100, 1, 1)),
}
PARAMETERS = IDS | TEXTS | ROWS | PLAIN


def test_every_repository_is_probed() -> None:
    found = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for package in ("gateway", "workers", "connectors")
        for file in (ROOT / package).rglob("*repository.py")
    }
    assert {one.repository.__name__ for one in PROBED} | set(NOT_PROBED) == found


async def _two_tenants(db: Database) -> tuple[UUID, UUID]:
    made: list[UUID] = []
    for _ in range(2):
        async with db.routing_session() as session:
            mandate = await service.open_mandate(
                session, f"m-{new_id().hex}", "M", email=f"{new_id().hex}@example.org", owner_name="Owner"
            )
            await fill_every_table(session)
            made.append(mandate.mandate.mandate_id)
    # The intruder came second: a statement without any condition finds the other one's row first.
    return made[1], made[0]


async def test_ten_thousand_probes_find_nothing(db: Database) -> None:
    intruder, target = await _two_tenants(db)
    assert await probe(db, intruder, target, PROBED, PARAMETERS, count=10_000, seed=1) == []


async def test_forced_row_security_binds_even_the_tables_owner(database_urls: DatabaseUrls) -> None:
    db = Database(database_urls.owner_url, pool_size=2)
    try:
        intruder, target = await _two_tenants(db)
        assert await probe(db, intruder, target, PROBED, PARAMETERS, count=300, seed=2) == []
    finally:
        await db.dispose()


@pytest.mark.parametrize(
    ("mutation", "as_owner"),
    [
        ('ALTER TABLE "user" NO FORCE ROW LEVEL SECURITY', True),
        ("ALTER TABLE document NO FORCE ROW LEVEL SECURITY", True),
        ("ALTER TABLE api_key DISABLE ROW LEVEL SECURITY", False),
        ("DROP POLICY tenant ON feature_instance", False),
        ("ALTER POLICY tenant ON session USING (true)", False),
        ("ALTER POLICY tenant ON mandate USING (true)", False),
        ("ALTER POLICY tenant ON job USING (true)", False),
    ],
)
async def test_the_probes_see_a_missing_protection(
    scratch: DatabaseUrls, mutation: str, as_owner: bool
) -> None:
    db = Database(scratch.owner_url if as_owner else scratch.runtime_url, pool_size=2)
    try:
        intruder, target = await _two_tenants(db)
        with psycopg.connect(scratch.owner_url, autocommit=True) as owner:
            owner.execute(mutation)
        assert await probe(db, intruder, target, PROBED, PARAMETERS, count=300, seed=3) != []
    finally:
        await db.dispose()
