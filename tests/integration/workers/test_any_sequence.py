"""Whatever happens in whatever order – ingest, edit, delete, crash – exactly the expected chunks and vectors remain."""

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.corpus import erasure
from gateway.ingestion import hashing
from tests.fixtures.corpus import ask, make_tenant, rows_of
from tests.integration.workers.test_ingest import assert_consistent, paragraphs
from workers import ingest
from workers.pipeline import embed, store

CRASHES = ("embed.before_commit", "embed.after_commit", "store.inside", "store.after_commit")

hand_in = st.tuples(
    st.just("ingest"), st.sampled_from("abc"), st.lists(st.integers(0, 5), min_size=0, max_size=5)
)
delete = st.tuples(st.just("delete"), st.sampled_from("abc"), st.just([]))
crash = st.tuples(st.just("crash"), st.sampled_from(CRASHES), st.just([]))
run = st.tuples(st.just("run"), st.just(""), st.just([]))


class Killed(BaseException):
    """Stands in for SIGKILL: nothing below may catch it."""


async def die_at(point: str, bench, tenant, monkeypatch) -> None:
    """Runs until the crash point, then leaves everything as a dead process would: leases and claims held, in time gone."""

    def dies(name: str) -> None:
        if name == point:
            raise Killed

    with monkeypatch.context() as patch:
        for module in (embed, store, ingest):
            patch.setattr(module, "crash_point", dies)
        # a dead process hands nothing back
        patch.setattr(ingest.vectors, "release_claims", _nothing)
        try:
            await bench.drain(tenant, bench.second_worker())
        except BaseExceptionGroup as group:
            assert group.split(Killed)[1] is None  # noqa: PT017 - nothing else went wrong
        except Killed:
            pass
    await rows_of(
        bench.db,
        tenant,
        # nobody here dies of a job, so none is set aside for the deaths around it
        "UPDATE job SET lease_until = now() - interval '1 s', deaths = 0 WHERE lease_until > now() RETURNING 1",
    )
    await rows_of(
        bench.db, tenant, "UPDATE vector_claim SET claimed_until = now() - interval '1 s' RETURNING 1"
    )


async def _nothing(*_arguments) -> None:
    return None


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(hand_in | delete | crash | run, min_size=1, max_size=8))
async def test_any_sequence_of_ingest_edit_delete_and_crash_leaves_exactly_the_expected(
    steps, db, bench, monkeypatch
):
    tenant = await make_tenant(db)
    expected: dict[str, str] = {}
    for action, name, numbers in steps:
        if action == "ingest":
            expected[name] = paragraphs(*numbers)
            await bench.hand_in(tenant, ask(tenant, name, expected[name]))
        elif action == "delete":
            expected.pop(name, None)
            for row in await rows_of(db, tenant, "SELECT id FROM document WHERE source_id = :s", s=name):
                async with db.tenant_session(tenant.mandate_id) as session:
                    receipt = await erasure.begin_erasure(session, "document", str(row.id), "test")
                await erasure.finish_erasure(db, bench.blobs, tenant.mandate_id, receipt)
        elif action == "crash":
            await die_at(name, bench, tenant, monkeypatch)
        else:
            await bench.drain(tenant)
    await rows_of(db, tenant, "UPDATE job SET run_after = now() WHERE finished_at IS NULL RETURNING 1")
    await bench.drain(tenant)
    async with db.tenant_session(tenant.mandate_id) as session:
        await ingest.vectors.collect(session, None)
    found = Counter(
        (row.source_id, row.text)
        for row in await rows_of(
            db,
            tenant,
            "SELECT d.source_id, string_agg(c.text, E'\\n\\n' ORDER BY c.ordinal) AS text "
            "FROM document d JOIN chunk c ON c.document_id = d.id GROUP BY d.source_id",
        )
    )
    assert {name: squeezed(text) for name, text in found} == {
        name: squeezed(text) for name, text in expected.items() if text
    }
    await assert_consistent(db, tenant)
    await_blobs = {row.sha256 for row in await rows_of(db, tenant, "SELECT sha256 FROM blob")}
    assert {hashing.byte_hash(text.encode()) for text in expected.values()} <= await_blobs


def squeezed(text: str) -> str:
    return "".join(text.split())
