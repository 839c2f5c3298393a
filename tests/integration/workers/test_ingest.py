"""From queued to searchable: what the pipeline leaves in the stores, and what it costs."""

import io
from base64 import b64encode
from collections import Counter

import pytest
from reportlab.pdfgen.canvas import Canvas
from sqlalchemy import text

from gateway.connections import repository as connections
from gateway.corpus import lexicon
from gateway.corpus.blobs import INLINE_LIMIT
from gateway.corpus.embedders import EmbedderRefused, EmbedderUnavailable
from gateway.corpus.erasure import begin_erasure, finish_erasure
from gateway.corpus.lexical.postings import Directory, unpack_rows
from gateway.db import new_id
from gateway.ingestion import facade
from gateway.ingestion import ledger_repository as ledger
from tests.fixtures.corpus import ask, rows_of
from workers import ingest
from workers.maintenance import Maintenance


def paragraphs(*numbers: int) -> str:
    """Paragraphs of about 250 tokens each, so that each is a chunk or two of its own."""
    return "\n\n".join(" ".join(f"p{number}w{word}" for word in range(90)) for number in numbers)


async def lexical_index(db, tenant) -> Counter:
    """(chunk number, term) → frequency, as the packed segments hold it."""
    found: Counter = Counter()
    directories = {
        row.id: Directory(row.directory)
        for row in await rows_of(db, tenant, "SELECT id, directory FROM segment")
    }
    for row in await rows_of(db, tenant, "SELECT term, segment_id, data FROM posting"):
        postings = unpack_rows([row.data])
        for ordinal, frequency in zip(postings.ordinals.tolist(), postings.frequencies.tolist(), strict=True):
            found[int(directories[row.segment_id].chunk_numbers[ordinal]), row.term] += frequency
    return found


async def expected_index(db, tenant) -> Counter:
    found: Counter = Counter()
    for row in await rows_of(db, tenant, "SELECT number, text, heading_path, title, language FROM chunk"):
        counted = lexicon.chunk_terms(row.text, row.heading_path, row.language, title=row.title)
        for term, count in counted.items():
            found[row.number, term] += count
    return found


async def assert_consistent(db, tenant) -> None:
    """Vectors and lexical index hold exactly what the chunks say."""
    chunks = {(r.model, r.text_hash) for r in await rows_of(db, tenant, "SELECT model, text_hash FROM chunk")}
    vectors = {
        (r.model, r.text_hash) for r in await rows_of(db, tenant, "SELECT model, text_hash FROM text_vector")
    }
    assert vectors == chunks
    assert await lexical_index(db, tenant) == await expected_index(db, tenant)


async def test_a_text_becomes_chunks_vectors_postings_and_a_timeline(db, tenant, bench):
    text = "# Title\n\nFirst part.\n\n## Sub\n\n" + paragraphs(1, 2, 3)
    [handle] = await bench.hand_in(tenant, ask(tenant, "a", text, mimeType="text/markdown"))
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        assert (await facade.get_ingestion_status(session, handle.job_id)).status == "indexed"
    chunks = await rows_of(db, tenant, "SELECT * FROM chunk ORDER BY ordinal")
    [kept] = await rows_of(db, tenant, "SELECT text FROM document_text")
    assert len(chunks) >= 3
    for chunk in chunks:
        assert kept.text[chunk.locator["charStart"] : chunk.locator["charEnd"]] == chunk.text
    assert {chunk.heading_path for chunk in chunks} >= {"Title > Sub"}
    moments = await rows_of(db, tenant, "SELECT status FROM timeline ORDER BY at, id")
    assert [moment.status for moment in moments] == ["pending", "extracted", "embedding", "indexed"]
    [document] = await rows_of(db, tenant, "SELECT * FROM document")
    assert (document.status, document.indexed_revision, document.chunk_count) == ("indexed", 1, len(chunks))
    await assert_consistent(db, tenant)


async def test_an_edit_keeps_ids_and_vectors_of_what_did_not_change(db, tenant, bench):
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1, 2, 3, 4, 5, 6)))
    await bench.drain(tenant)
    before = {r.text_hash: r.id for r in await rows_of(db, tenant, "SELECT id, text_hash FROM chunk")}
    spent = len(bench.embedded())
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1, 2, 3, 99, 5, 6)))
    await bench.drain(tenant)
    after = {r.text_hash: r.id for r in await rows_of(db, tenant, "SELECT id, text_hash FROM chunk")}
    shared = before.keys() & after.keys()
    assert shared
    assert {h: before[h] for h in shared} == {h: after[h] for h in shared}
    assert len(bench.embedded()) - spent == len(after.keys() - before.keys()) <= 4
    await assert_consistent(db, tenant)


async def test_a_new_heading_moves_the_words_but_not_the_vectors(db, tenant, bench):
    for heading in ("Alpha", "Beta"):
        text = f"# {heading}\n\n{paragraphs(1, 2, 3)}"
        await bench.hand_in(tenant, ask(tenant, "a", text, mimeType="text/markdown"))
        await bench.drain(tenant)
        await assert_consistent(db, tenant)
    terms = {row.term for row in await rows_of(db, tenant, "SELECT term FROM posting")}
    assert "beta" in terms
    assert "alpha" not in terms


async def found_by(db, tenant, *words: str) -> list[str]:
    """Those of the words that the lexical index holds."""
    terms = {row.term for row in await rows_of(db, tenant, "SELECT term FROM posting")}
    return [word for word in words if word in terms]


async def test_a_document_is_found_by_its_title_through_its_first_chunk(db, tenant, bench):
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1, 2, 3), title="Zephyr plan"))
    await bench.drain(tenant)
    titles = await rows_of(db, tenant, "SELECT title FROM chunk ORDER BY ordinal")
    assert [row.title for row in titles] == ["Zephyr plan", *[""] * (len(titles) - 1)]
    assert await found_by(db, tenant, "zephyr") == ["zephyr"]
    await assert_consistent(db, tenant)
    # another paragraph becomes the first one, and it has the title now
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(3, 1, 2), title="Zephyr plan"))
    await bench.drain(tenant)
    named = await rows_of(db, tenant, "SELECT ordinal FROM chunk WHERE title <> ''")
    assert [row.ordinal for row in named] == [0]
    await assert_consistent(db, tenant)
    [document] = await rows_of(db, tenant, "SELECT id FROM document")
    async with db.tenant_session(tenant.mandate_id) as session:
        receipt = await begin_erasure(session, "document", str(document.id), "test")
    await finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
    assert await found_by(db, tenant, "zephyr", "plan") == []


async def test_a_renamed_document_is_found_by_its_new_title_only_without_being_read_again(db, tenant, bench):
    for title in ("Zephyr plan", "Mistral plan"):
        await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1, 2), title=title))
        await bench.drain(tenant)
        await assert_consistent(db, tenant)
    assert await found_by(db, tenant, "zephyr", "mistral", "plan") == ["mistral", "plan"]
    assert [job.status for job in await rows_of(db, tenant, "SELECT status FROM job")] == ["indexed"]


async def test_a_document_renamed_while_it_is_read_is_found_by_the_title_it_has_then(
    db, tenant, bench, monkeypatch
):
    parse = ingest.parse_document

    async def renamed_meanwhile(*args, **kwargs):
        parsed = await parse(*args, **kwargs)
        await bench.hand_in(tenant, ask(tenant, "a", "The very text.", title="Mistral"))
        return parsed

    monkeypatch.setattr(ingest, "parse_document", renamed_meanwhile)
    await bench.hand_in(tenant, ask(tenant, "a", "The very text.", title="Zephyr"))
    await bench.drain(tenant)
    assert await found_by(db, tenant, "zephyr", "mistral") == ["mistral"]


async def test_documents_indexed_by_an_earlier_version_are_found_by_their_titles_after_housekeeping(
    db, tenant, bench
):
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1)), ask(tenant, "b", paragraphs(2)))
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:  # what such a version left behind
        await session.execute(text("UPDATE document SET title = 'Zephyr ' || source_id"))
    await Maintenance(db, bench.settings).tidy(tenant.mandate_id)
    titles = await rows_of(db, tenant, "SELECT title FROM chunk WHERE ordinal = 0 ORDER BY title")
    assert [row.title for row in titles] == ["Zephyr a", "Zephyr b"]
    assert await found_by(db, tenant, "zephyr") == ["zephyr"]
    await assert_consistent(db, tenant)


async def test_the_same_text_in_two_documents_is_embedded_once_and_outlives_the_first(db, tenant, bench):
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1, 2)), ask(tenant, "b", paragraphs(1, 2)))
    await bench.drain(tenant)
    assert max(Counter(bench.embedded()).values()) == 1
    [first] = await rows_of(db, tenant, "SELECT id FROM document WHERE source_id = 'a'")
    async with db.tenant_session(tenant.mandate_id) as session:
        receipt = await begin_erasure(session, "document", str(first.id), "test")
    counts = await finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
    assert (counts["document"], counts["vector"], counts["blob"]) == (1, 0, 0)
    await assert_consistent(db, tenant)
    assert await rows_of(db, tenant, "SELECT 1 FROM chunk") != []


@pytest.mark.parametrize(
    ("content", "fields", "status", "reason"),
    [
        ({"base64": ""}, {"mimeType": "application/pdf"}, "failed", "empty"),
        ({"base64": ""}, {"mimeType": "application/x-empty"}, "failed", "empty"),
        ({"base64": ""}, {}, "failed", "empty"),
        ({"base64": "JVBERi0xLjQKZ2FyYmFnZQ=="}, {"mimeType": "application/pdf"}, "failed", "damaged"),
        ("   \n ", {}, "skipped", "no_text"),
        ({"base64": "AAECAwQFBgcICQoLDA0ODw=="}, {"mimeType": "video/mp4"}, "skipped", "media"),
        # said to be something else than their first bytes show
        ({"base64": "JVBERi0xLjQKZ2FyYmFnZQ=="}, {"mimeType": "text/plain"}, "failed", "damaged"),
        ({"base64": "f0VMRgIBAQBhYmNkZWZnaA=="}, {"mimeType": "text/plain"}, "skipped", "executable"),
    ],
)
async def test_a_file_that_cannot_be_read_costs_that_file_and_says_why(
    db, tenant, bench, content, fields, status, reason
):
    [bad, good] = await bench.hand_in(
        tenant, ask(tenant, "bad", content, **fields), ask(tenant, "good", "A good text.")
    )
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        found = await facade.get_ingestion_status(session, bad.job_id)
        assert (found.status, found.reason) == (status, reason)
        assert (await facade.get_ingestion_status(session, good.job_id)).status == "indexed"


async def test_a_pdf_that_is_said_to_be_text_is_a_pdf(db, tenant, bench):
    page = io.BytesIO()
    sheet = Canvas(page)
    sheet.drawString(72, 700, "The weir holds the water.")
    sheet.save()
    pdf = b64encode(page.getvalue()).decode()
    await bench.hand_in(tenant, ask(tenant, "a", {"base64": pdf}, mimeType="text/plain"))
    await bench.drain(tenant)
    assert await rows_of(db, tenant, "SELECT mime_type, status FROM document") == [
        ("application/pdf", "indexed")
    ]
    [chunk] = await rows_of(db, tenant, "SELECT text, locator FROM chunk")
    assert chunk.text.strip() == "The weir holds the water."
    assert (chunk.locator["kind"], chunk.locator["page"]) == ("pdf", 1)


@pytest.mark.parametrize("kind", ["entry", "knowledge_piece"])
async def test_a_file_that_is_a_note_is_refused_while_it_holds_a_secret(db, tenant, bench, kind):
    for name, words in (("with", "token: ghp_" + "a1B2" * 9), ("without", "nothing to hide")):
        content = {"base64": b64encode(words.encode("utf-16")).decode()}
        await bench.hand_in(tenant, ask(tenant, name, content, sourceKind=kind, mimeType="text/plain"))
    await bench.drain(tenant)
    rows = await rows_of(db, tenant, "SELECT status, reason FROM document ORDER BY source_id")
    assert [tuple(row) for row in rows] == [("failed", "holds_secret"), ("indexed", None)]
    assert len(await rows_of(db, tenant, "SELECT 1 FROM chunk")) == 1


async def test_a_document_that_became_empty_is_found_no_more(db, tenant, bench):
    await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1)))
    await bench.drain(tenant)
    await bench.hand_in(tenant, ask(tenant, "a", ""))
    await bench.drain(tenant)
    for table in ("chunk", "text_vector", "posting", "segment"):
        assert await rows_of(db, tenant, f"SELECT 1 FROM {table}") == []


async def test_a_text_the_database_refuses_costs_that_document(db, tenant, bench):
    [bad, good] = await bench.hand_in(
        tenant, ask(tenant, "bad", "nul \x00 inside"), ask(tenant, "good", "A good text.")
    )
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        assert (await facade.get_ingestion_status(session, good.job_id)).status == "indexed"
        assert (await facade.get_ingestion_status(session, bad.job_id)).status in {"indexed", "failed"}


async def test_over_budget_work_waits_with_a_reason_and_resumes_when_the_budget_is_raised(db, tenant, bench):
    await rows_of(
        db, tenant, """UPDATE mandate SET policy = '{"budget": {"monthlyTokens": 10}}' RETURNING 1"""
    )
    [handle] = await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1, 2)))
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        waiting = await facade.get_ingestion_status(session, handle.job_id)
        assert (waiting.status, waiting.reason, waiting.attempts) == ("pending", "budget", 0)
    assert bench.embedded() == []
    await rows_of(db, tenant, """UPDATE mandate SET policy = '{}' RETURNING 1""")
    async with db.tenant_session(tenant.mandate_id) as session:
        assert await ledger.resume_waiting(session, "budget") == ["interactive"]
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        assert (await facade.get_ingestion_status(session, handle.job_id)).status == "indexed"
    [spent] = await rows_of(db, tenant, "SELECT texts, tokens FROM spend")
    assert spent.texts == len(bench.embedded())
    assert spent.tokens > 10


async def test_a_transient_error_is_tried_again_later_and_a_refusal_ends_at_once(
    db, tenant, bench, monkeypatch
):
    async def unavailable(texts):
        raise EmbedderUnavailable("down", retry_after=30)

    with monkeypatch.context() as patch:
        patch.setattr(bench.embedder, "embed", unavailable)
        await bench.hand_in(tenant, ask(tenant, "a", "Some text."))
        await bench.drain(tenant)
    [job] = await rows_of(db, tenant, "SELECT *, run_after - now() > interval '20 s' AS later FROM job")
    assert (job.status, job.reason, job.later) == ("pending", "embedder.unavailable", True)

    async def refused(texts):
        if any("forbidden" in text for text in texts):
            raise EmbedderRefused("no", [0])
        return await type(bench.embedder).embed(bench.embedder, texts)

    monkeypatch.setattr(bench.embedder, "embed", refused)
    [bad, good] = await bench.hand_in(
        tenant, ask(tenant, "b", "A forbidden text."), ask(tenant, "c", "A fine one.")
    )
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        ended = await facade.get_ingestion_status(session, bad.job_id)
        assert (ended.status, ended.reason) == ("failed", "embedder_refused")
        assert (await facade.get_ingestion_status(session, good.job_id)).status == "indexed"


async def test_tries_are_limited(db, tenant, bench, monkeypatch):
    async def broken(texts):
        raise ZeroDivisionError

    monkeypatch.setattr(bench.embedder, "embed", broken)
    monkeypatch.setattr(bench.runner, "_backoff", lambda attempts: 0.0)
    await bench.hand_in(tenant, ask(tenant, "a", "Some text."))
    await bench.drain(tenant)
    [job] = await rows_of(db, tenant, "SELECT status, reason, error, attempts FROM job")
    assert (job.status, job.reason, job.error) == ("failed", "attempts", "ZeroDivisionError")
    assert job.attempts == bench.settings.max_attempts


async def test_a_job_that_kills_its_process_is_set_aside(db, tenant, bench):
    await bench.hand_in(tenant, ask(tenant, "a", "Some text."))
    for _ in range(bench.settings.max_deaths + 1):
        async with db.tenant_session(tenant.mandate_id) as session:  # a worker takes it and dies
            await ledger.claim(session, "interactive", limit=1, lease_seconds=-1)
            await ledger.claim_orphans(session, "interactive", lease_seconds=-1)
    await bench.drain(tenant)
    [job] = await rows_of(db, tenant, "SELECT status, reason FROM job")
    assert (job.status, job.reason) == ("failed", "poison")


async def test_nothing_is_written_for_a_connection_revoked_in_flight(db, tenant, bench, monkeypatch):
    connection = new_id()
    async with db.tenant_session(tenant.mandate_id) as session:
        await connections.add(session, connection, "msft", tenant.user_id)
    embed = bench.embedder.embed

    async def revoke_meanwhile(texts):
        async with db.tenant_session(tenant.mandate_id) as session:
            await connections.revoke(session, connection)
        return await embed(texts)

    monkeypatch.setattr(bench.embedder, "embed", revoke_meanwhile)
    await bench.hand_in(
        tenant, ask(tenant, "f", paragraphs(1), sourceKind="sharepoint_item", connectionId=connection)
    )
    await bench.drain(tenant)
    assert await rows_of(db, tenant, "SELECT 1 FROM chunk") == []


async def test_a_newer_version_overtakes_one_in_flight_and_never_the_other_way_round(
    db, tenant, bench, monkeypatch
):
    embed = bench.embedder.embed
    overtaken = False

    async def overtake(texts):
        nonlocal overtaken
        if not overtaken:
            overtaken = True
            await bench.hand_in(tenant, ask(tenant, "a", paragraphs(7)))
            await bench.drain(tenant, bench.second_worker())
        return await embed(texts)

    monkeypatch.setattr(bench.embedder, "embed", overtake)
    [old] = await bench.hand_in(tenant, ask(tenant, "a", paragraphs(1)))
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        assert (await facade.get_ingestion_status(session, old.job_id)).status == "superseded"
    [kept] = await rows_of(db, tenant, "SELECT text FROM document_text")
    assert kept.text.strip() == paragraphs(7)
    await assert_consistent(db, tenant)


async def test_small_segments_are_merged_and_say_the_same(db, tenant, bench):
    for number in range(10):
        await bench.hand_in(tenant, ask(tenant, f"d{number}", paragraphs(number)))
        await bench.drain(tenant)
    before = await lexical_index(db, tenant)
    assert len(await rows_of(db, tenant, "SELECT 1 FROM segment")) == 10
    await Maintenance(db, bench.settings).tidy(tenant.mandate_id)
    assert len(await rows_of(db, tenant, "SELECT 1 FROM segment")) == 1
    assert await lexical_index(db, tenant) == before
    await assert_consistent(db, tenant)


async def test_a_secret_leaves_the_text_before_it_is_kept_and_only_its_kind_is_logged(
    db, tenant, bench, capsys
):
    secret = "ghp_" + "a1B2" * 9
    await bench.hand_in(tenant, ask(tenant, "a", f"The deploy token is {secret}, keep it safe."))
    await bench.drain(tenant)
    [kept] = await rows_of(db, tenant, "SELECT text FROM document_text")
    [chunk] = await rows_of(db, tenant, "SELECT text FROM chunk")
    terms = " ".join(row.term for row in await rows_of(db, tenant, "SELECT term FROM posting"))
    said = capsys.readouterr().out
    assert secret not in kept.text + chunk.text + terms + said
    assert "[secret:" in kept.text
    assert "ingestion.secret.removed" in said


async def test_personal_data_is_masked_when_asked(db, tenant, bench):
    text = "Write to jane.roe@example.org about the invoice."
    await bench.hand_in(tenant, ask(tenant, "plain", text), ask(tenant, "masked", text, neutralize=True))
    await bench.drain(tenant)
    kept = {
        row.source_id: row.text
        for row in await rows_of(
            db,
            tenant,
            "SELECT d.source_id, t.text FROM document d JOIN document_text t ON t.document_id = d.id",
        )
    }
    assert "jane.roe@example.org" in kept["plain"]
    assert "jane.roe@example.org" not in kept["masked"]
    assert "[email:" in kept["masked"]


async def test_an_original_that_is_gone_costs_its_document_and_nobody_elses_tries(
    db, tenant, bench, tmp_path
):
    large = {"base64": b64encode(b"words " * INLINE_LIMIT).decode()}
    await bench.hand_in(
        tenant, ask(tenant, "bad", large, mimeType="text/plain"), ask(tenant, "good", "A good text.")
    )
    for kept in (tmp_path / str(tenant.mandate_id)).iterdir():
        kept.unlink()
    await bench.drain(tenant)
    jobs = await rows_of(
        db,
        tenant,
        "SELECT d.source_id, j.status, j.attempts, j.reason FROM job j JOIN document d ON d.id = j.document_id",
    )
    assert {job.source_id: (job.status, job.attempts, job.reason) for job in jobs} == {
        "good": ("indexed", 1, None),
        "bad": ("pending", 1, "not_found"),
    }
