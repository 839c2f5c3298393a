"""Everything about a user leaves in one archive: for themself and for admins, whole, and in little memory."""

import io
import json
import tracemalloc
import zipfile
from hashlib import sha256

import pytest
from sqlalchemy import text

from gateway.corpus import blob_repository
from gateway.corpus.export import export_user
from gateway.corpus.export_repository import ABOUT
from gateway.db import new_id
from gateway.errors import NotFound
from tests.fixtures.corpus import ask, rows_of
from tests.integration.corpus.test_erasure import connect
from tests.integration.workers.test_ingest import paragraphs


async def taken(db, bench, tenant) -> zipfile.ZipFile:
    pieces = await export_user(db, bench.blobs, tenant.mandate_id, tenant.user_id)
    return zipfile.ZipFile(io.BytesIO(b"".join([piece async for piece in pieces])))


def rows(archive: zipfile.ZipFile, name: str) -> list[dict]:
    return [json.loads(line) for line in archive.read(f"{name}.jsonl").splitlines()]


async def test_the_archive_holds_every_sort_of_thing_and_the_originals(db, tenant, bench, capsys):
    connection = await connect(db, tenant)
    large = paragraphs(*range(400))
    assert len(large) > 128 * 1024  # lies in the object store
    handles = await bench.hand_in(
        tenant,
        ask(tenant, "small", "A short note."),
        ask(tenant, "large", large),
        ask(tenant, "mail", "From a mailbox.", sourceKind="sharepoint_item", connectionId=connection),
        ask(tenant, "theirs", "Somebody else's.", userId=new_id()),
    )
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        await session.execute(QUERY, {"mandate": tenant.mandate_id, "id": new_id(), "user": tenant.user_id})
        await session.execute(QUERY, {"mandate": tenant.mandate_id, "id": new_id(), "user": new_id()})
    archive = await taken(db, bench, tenant)
    assert archive.testzip() is None
    documents = rows(archive, "documents")
    assert {row["source_id"] for row in documents} == {"small", "large", "mail"}
    assert [row["q"] for row in rows(archive, "queries")] == ["how do refunds work"]
    assert [row["authority"] for row in rows(archive, "connections")] == ["msft"]
    assert [row["email"] for row in rows(archive, "account")] == ["owner@example.org"]
    stored = await rows_of(
        db,
        tenant,
        "SELECT c.text FROM chunk c JOIN document d ON d.id = c.document_id WHERE d.user_id = :u",
        u=tenant.user_id,
    )
    assert sorted(row["text"] for row in rows(archive, "chunks")) == sorted(row.text for row in stored)
    assert len(rows(archive, "timeline")) == 4 * 3
    by_name = {row["source_id"]: row["id"] for row in documents}
    assert archive.read(f"originals/{by_name['large']}").decode() == large
    assert archive.read(f"texts/{by_name['small']}.txt").decode().strip() == "A short note."
    everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"Somebody else" not in everything
    assert str(handles[3].document_id).encode() not in everything
    assert "ingestion.exported" in capsys.readouterr().out


QUERY = text(
    "INSERT INTO query_log (mandate_id, id, at, origin, user_id, q, result_count, answered, took_ms) "
    "VALUES (:mandate, :id, now(), 'sdk', :user, 'how do refunds work', 1, true, 3)"
)


async def test_every_table_that_names_a_user_is_in_the_archive(db, tenant):
    """A new table with a user in it must be exported too, or be named here with the reason."""
    elsewhere = {
        "membership": "the role is in account",
        "feature_member": "features",
        "session": "a login; it ends by itself",
        "api_key": "keys",
        "user": "account",
        "query_log": "queries",
        "answer": "answers",
        "citation": "citations",
        "connection": "connections",
        "document": "documents",
        "data_source": "sources",
        "oauth_state": "a consent on its way; it ends by itself",
    }
    found = await rows_of(
        db,
        tenant,
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'user_id'",
    )
    assert {row.table_name for row in found} <= set(elsewhere)
    assert {
        "documents",
        "queries",
        "answers",
        "citations",
        "connections",
        "keys",
        "features",
        "account",
    } <= set(ABOUT)


async def test_what_a_legal_hold_keeps_and_what_was_never_used_is_in_the_archive(db, tenant, bench):
    await rows_of(db, tenant, """UPDATE mandate SET policy = '{"legalHold": true}' RETURNING 1""")
    for words in ("first plan", "second plan", "last plan"):
        [handle] = await bench.hand_in(tenant, ask(tenant, "../../a", words, title="../../a"))
        await bench.drain(tenant)
    used, unused = b"last plan", b"never used"
    async with db.tenant_session(tenant.mandate_id) as session:
        for data in (used, unused):
            await bench.blobs.add(session, [(sha256(data).digest(), data)])
            await blob_repository.note_upload(session, sha256(data).digest(), f"user:{tenant.user_id}")
        await blob_repository.note_upload(session, sha256(used).digest(), f"user:{new_id()}")
    archive = await taken(db, bench, tenant)
    files = {name: archive.read(name) for name in archive.namelist() if name[-6:] != ".jsonl"}
    document = handle.document_id
    assert files == {
        f"texts/{document}.txt": b"last plan",
        f"originals/{document}": b"last plan",
        f"originals/{document}.revision-1": b"first plan",
        f"originals/{document}.revision-2": b"second plan",
        f"uploads/{sha256(unused).hexdigest()}": unused,
    }
    assert [row["revision"] for row in rows(archive, "revisions")] == [1, 2]
    assert {(row["status"], row["document_id"]) for row in rows(archive, "jobs")} == {
        ("indexed", str(document))
    }


async def test_what_a_connection_of_theirs_brought_in_nobodys_name_is_theirs(db, tenant, bench):
    connection = await connect(db, tenant)
    fields = {"sourceKind": "sharepoint_item", "connectionId": connection, "scope": "mandate"}
    await bench.hand_in(
        tenant,
        ask(tenant, "nobodys", "Shared.", userId=None, **fields),
        ask(tenant, "another's", "Shared too.", userId=new_id(), **fields),
    )
    await bench.drain(tenant)
    archive = await taken(db, bench, tenant)
    assert [row["source_id"] for row in rows(archive, "documents")] == ["nobodys"]
    assert [row["text"] for row in rows(archive, "chunks")] == ["Shared."]


async def test_who_left_without_a_document_still_has_an_archive(db, tenant, bench):
    gone = new_id()
    async with db.tenant_session(tenant.mandate_id) as session:
        await session.execute(QUERY, {"mandate": tenant.mandate_id, "id": new_id(), "user": gone})
    pieces = await export_user(db, bench.blobs, tenant.mandate_id, gone)
    archive = zipfile.ZipFile(io.BytesIO(b"".join([piece async for piece in pieces])))
    assert archive.namelist() == ["queries.jsonl"]


async def test_no_secret_leaves(db, tenant, bench):
    await bench.hand_in(tenant, ask(tenant, "a", "Text."))
    await bench.drain(tenant)
    archive = await taken(db, bench, tenant)
    keys = rows(archive, "keys")
    assert keys
    assert all(
        set(row) == {"id", "name", "hint", "scopes", "created_at", "expires_at", "revoked_at"} for row in keys
    )
    assert tenant.key.encode() not in b"".join(archive.read(name) for name in archive.namelist())


async def test_it_is_written_in_little_memory(db, tenant, bench):
    size = 30 * 1024 * 1024
    await bench.hand_in(tenant, ask(tenant, "big", "x" * size))
    tracemalloc.start()
    try:
        total = 0
        async for piece in await export_user(db, bench.blobs, tenant.mandate_id, tenant.user_id):
            total += len(piece)
        assert total > size
        assert tracemalloc.get_traced_memory()[1] < size // 2
    finally:
        tracemalloc.stop()


async def test_who_is_unknown_has_no_archive(db, tenant, bench):
    with pytest.raises(NotFound):
        await export_user(db, bench.blobs, tenant.mandate_id, new_id())


async def test_only_the_user_and_admins_may_have_it(client, mandate, other_mandate):
    path = f"/v1/users/{mandate.users['member']}/export"
    for who in ("member", "admin", "owner"):
        answer = await client.get(path, headers=mandate.auth(who))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
        assert "account.jsonl" in zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert (await client.get(path, headers=mandate.auth("service"))).status_code == 403
    owner = f"/v1/users/{mandate.users['owner']}/export"
    assert (await client.get(owner, headers=mandate.auth("member"))).status_code == 403
    assert (await client.get(path, headers=other_mandate.auth())).status_code == 404
    assert (await client.get(path)).status_code == 401
