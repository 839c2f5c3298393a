"""A first listing, then rounds: whatever happens at the vendor's, one delta later the corpus is the same."""

import json

import pytest

from gateway.connections import sync_service
from tests.fixtures.corpus import rows_of
from workers.sync import listing


def fill(world, count=8):
    for number in range(count):
        world.create(f"f{number}", f"File number {number}.")
    world.create("n1", "A note came with its content.", kind="note")


async def test_a_first_listing_brings_everything(bank):
    fill(bank.world)
    bank.world.create("folder", "", kind="folder")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()
    source = await bank.source()
    assert (source.phase, source.listing_generation, source.last_error) == ("delta", 1, None)


async def test_create_edit_move_rename_delete_and_restore_are_one_delta_away(bank):
    fill(bank.world)
    await bank.sync()
    world = bank.world
    world.create("new", "A new file.")
    world.edit("f1", "File number one, edited.")
    world.move("f2", "p2")
    world.rename("f3", "renamed.txt")
    world.delete("f4")
    world.delete("n1")
    await bank.sync()
    assert await bank.corpus() == world.truth()
    [renamed] = await bank.rows("SELECT title, metadata FROM document WHERE source_id = 'f3'")
    assert renamed.title == "renamed.txt"
    [moved] = await bank.rows("SELECT metadata FROM document WHERE source_id = 'f2'")
    assert moved.metadata["container"] == "p2"
    assert (await bank.item("f4")).state == "deleted"
    world.restore("f4")
    world.restore("n1")
    await bank.sync()
    assert await bank.corpus() == world.truth()


async def test_a_second_bootstrap_downloads_and_embeds_nothing(bank, capsys):
    fill(bank.world)
    await bank.sync()
    downloads, embedded = dict(bank.world.downloads), list(bank.bench.embedded())
    capsys.readouterr()
    await bank.sync("bootstrap")
    assert (await bank.source()).listing_generation == 2
    assert dict(bank.world.downloads) == downloads
    assert bank.bench.embedded() == embedded
    assert capsys.readouterr().out.count("ingestion.skipped.duplicate") == len(bank.world.truth())


@pytest.mark.parametrize("gone_first", [True, False])
async def test_a_move_between_containers_is_no_deletion_in_either_order(bank, gone_first):
    bank.world.page_size = 1  # each half on a page of its own
    bank.world.gone_first = gone_first
    bank.world.create("f", "It moves.")
    await bank.sync()
    [before] = await bank.rows("SELECT id FROM document")
    embedded = bank.bench.embedded()
    bank.world.move("f", "p2")
    await bank.sync()
    [after] = await bank.rows("SELECT id FROM document")
    assert (after.id, bank.bench.embedded()) == (before.id, embedded)
    assert (await bank.item("f")).container_id == "p2"


async def test_a_renamed_file_is_described_without_a_download(bank):
    bank.world.create("f", "The same bytes.")
    await bank.sync()
    bank.world.rename("f", "other.txt")
    await bank.sync()
    assert bank.world.downloads["f"] == 1
    [row] = await bank.rows("SELECT title, revision FROM document")
    assert (row.title, row.revision) == ("other.txt", 1)


async def test_what_a_delta_found_is_fetched_before_the_backfill_and_newest_first(bank, monkeypatch):
    fetched = []
    for number in range(6):
        bank.world.create(f"f{number}", f"File {number}.")
    order = []
    from workers.sync import fetching

    real = fetching.Load._download

    async def note(self, surface, group):
        order.append([row.external_id for row in group])
        return await real(self, surface, group)

    monkeypatch.setattr(fetching.Load, "_download", note)
    await bank.sync()
    fetched = [name for group in order for name in group]
    assert fetched == ["f5", "f4", "f3", "f2", "f1", "f0"]
    rows = await bank.rows(
        "UPDATE remote_item SET state = 'pending', fetched_version = NULL WHERE external_id IN ('f5', 'f0') RETURNING 1"
    )
    assert len(rows) == 2
    await bank.rows("UPDATE remote_item SET urgent = true WHERE external_id = 'f0' RETURNING 1")
    order.clear()
    await bank.sync()
    assert order[0] == ["f0", "f5"]


async def test_a_long_listing_steps_aside_and_goes_on_from_its_cursor(bank, monkeypatch):
    monkeypatch.setattr(listing, "SLICE_SECONDS", -1.0)  # after every page
    fill(bank.world, 10)
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()
    [job] = await bank.rows(
        "SELECT attempts, fence FROM job WHERE kind = 'sync' AND reason = 'synced' ORDER BY id LIMIT 1"
    )
    assert (job.attempts, job.fence) == (1, 4)  # four pages, one turn each; only the last counts as a try


async def test_asking_again_never_makes_a_second_job(bank):
    first = await bank.ask()
    assert await bank.ask() == first
    await bank.drain()
    live = await bank.rows(
        "SELECT id, run_after > now() AS later FROM job WHERE kind = 'sync' AND finished_at IS NULL"
    )
    assert [row.later for row in live] == [True]  # the schedule
    hurried = await bank.ask()
    assert hurried == live[0].id
    [row] = await bank.rows("SELECT run_after <= now() AS now FROM job WHERE id = :id", id=hurried)
    assert row.now


async def test_who_asks_during_a_run_gets_another_run(bank):
    bank.world.create("f", "One.")
    await bank.sync()
    runs = bank.world.requests["pages"]
    asked = []

    def during():
        bank.world.during_page = None
        asked.append(1)

    bank.world.during_page = during
    await bank.ask()
    # as a webhook would, while the job holds its lease
    await rows_of(
        bank.db,
        bank.tenant,
        "UPDATE job SET payload = payload || CAST(:again AS jsonb) WHERE kind = 'sync' AND finished_at IS NULL RETURNING 1",
        again=json.dumps({"again": {"mode": "delta", "delay": 0}}),
    )
    await bank.drain()
    assert bank.world.requests["pages"] == runs + 2
    assert asked


async def test_who_asks_in_the_middle_of_a_round_gets_another_round(bank):
    """A round that stepped aside goes on behind what it has seen; a change there needs another one."""
    bank.world.create("f", "One.")
    await bank.sync()
    runs = bank.world.requests["pages"]
    await bank.rows(
        "UPDATE data_source SET listing = listing || CAST('{\"open\": true}' AS jsonb) RETURNING 1"
    )
    await bank.ask()
    await bank.drain()
    assert bank.world.requests["pages"] == runs + 2


async def hasten(bank):
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        await sync_service.hasten_sync(session, bank.source_id, reason="webhook")
    [job] = await bank.rows(
        "SELECT *, xmin::text AS written FROM job WHERE kind = 'sync' AND finished_at IS NULL"
    )
    return job


@pytest.mark.parametrize("state", ["scheduled", "due", "throttled", "midway", "running"])
async def test_a_hurry_is_written_down_once(bank, state):
    """Every state a live job can be in: the first who asks gets a round that begins later, all others find it."""
    bank.world.create("f", "One.")
    await bank.sync()
    live = "kind = 'sync' AND finished_at IS NULL RETURNING 1"
    if state in {"due", "midway", "running"}:
        await bank.rows(f"UPDATE job SET run_after = now() WHERE {live}")
    if state == "midway":
        await bank.rows("UPDATE data_source SET listing = CAST('{\"open\": true}' AS jsonb) RETURNING 1")
    if state == "running":
        await bank.rows(f"UPDATE job SET lease_until = now() + interval '1 hour' WHERE {live}")
    if state == "throttled":
        await bank.rows(f"UPDATE job SET reason = 'throttled' WHERE {live}")
    [before] = await bank.rows(
        "SELECT xmin::text AS written FROM job WHERE kind = 'sync' AND finished_at IS NULL"
    )
    first = await hasten(bank)
    assert (first.written == before.written) == (state in {"due", "throttled"})
    assert ("again" in first.payload) == (state in {"midway", "running"})
    assert (await hasten(bank)).written == first.written
    if state == "running":
        await bank.rows(f"UPDATE job SET lease_until = NULL WHERE {live}")
    await bank.wait_over()
    runs = bank.world.requests["pages"]
    await bank.drain()
    assert bank.world.requests["pages"] - runs == (2 if state in {"midway", "running"} else 1)


async def test_a_throttled_job_is_not_hurried(bank):
    bank.world.create("f", "One.")
    bank.world.arm("throttle", at="pages", after=600)
    await bank.sync()
    [job] = await bank.rows(
        "SELECT reason, attempts, run_after - now() > interval '9 minutes' AS waits FROM job"
    )
    assert (job.reason, job.attempts, job.waits) == ("throttled", 0, True)
    await bank.ask()
    [job] = await bank.rows("SELECT run_after - now() > interval '9 minutes' AS waits FROM job")
    assert job.waits
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def test_a_throttled_download_waits_and_the_others_are_kept(bank):
    fill(bank.world, 6)
    bank.world.arm("throttle", at="fetch", subject="f2", after=300)
    await bank.sync()
    assert len(await bank.corpus()) < 7
    [job] = await bank.rows("SELECT reason FROM job WHERE kind = 'fetch' AND finished_at IS NULL")
    assert job.reason == "throttled"
    asked = bank.world.requests["fetch"]
    await bank.drain()
    assert bank.world.requests["fetch"] == asked  # no storm
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert max(bank.world.downloads.values()) == 1


async def test_empty_and_repeated_pages_lose_and_double_nothing(bank):
    fill(bank.world)
    bank.world.arm("empty_page", times=2)
    bank.world.arm("repeat_page", times=2)
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()
    assert max(bank.world.downloads.values()) == 1
    bank.world.edit("f1", "Edited.")
    bank.world.arm("empty_page")
    bank.world.arm("repeat_page")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_a_paused_connection_does_nothing(bank):
    bank.world.create("f", "One.")
    await bank.ask()
    await bank.rows("UPDATE connection SET paused = true RETURNING 1")
    await bank.drain()
    assert bank.world.requests["pages"] == 0
    assert await bank.ask() is None
    await bank.rows("UPDATE connection SET paused = false RETURNING 1")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_a_dead_grant_makes_the_connection_wait_for_its_user(bank):
    bank.world.create("f", "One.")
    await bank.sync()
    bank.world.revoked = True
    await bank.sync()
    [connection] = await bank.rows("SELECT state FROM connection")
    assert connection.state == "needs_reauth"
    assert await bank.ask() is None


async def test_an_attachment_names_its_parent(bank):
    bank.world.create("mail", "A mail.", kind="note")
    bank.world.create("paper", "Its attachment.", parent="mail")
    await bank.sync()
    [row] = await bank.rows(
        "SELECT p.source_id FROM document d JOIN document p ON p.id = d.parent_document_id WHERE d.source_id = 'paper'"
    )
    assert row.source_id == "mail"
    bank.world.delete("mail")
    await bank.sync()
    assert await bank.corpus() == {}


async def test_documents_belong_to_the_connections_user_unless_shared(bank):
    bank.world.create("a", "Private.")
    await bank.sync()
    [row] = await bank.rows("SELECT scope, user_id FROM document")
    assert (row.scope, row.user_id) == ("personal", bank.tenant.user_id)
    await bank.set_policy(shareIntoMandate=True)
    bank.world.create("b", "Shared.")
    await bank.sync()
    [row] = await bank.rows("SELECT scope FROM document WHERE source_id = 'b'")
    assert row.scope == "mandate"


async def test_two_connections_to_one_file_embed_it_once(bank):
    from tests.integration.sync.conftest import open_bank

    bank.world.create("f", "Both see this file, and it is read once.")
    other = await open_bank(bank.bench, bank.places, bank.world, bank.tenant)
    await bank.sync()
    await other.sync()
    assert len(bank.bench.embedded()) == 1
    assert len(await bank.corpus()) == len(await other.corpus()) == 1


async def test_a_source_without_a_job_is_scheduled_again(bank):
    bank.world.create("f", "One.")
    await bank.sync()
    await bank.rows("DELETE FROM job WHERE kind = 'sync' AND finished_at IS NULL RETURNING 1")
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        assert await sync_service.revive_schedules(session) == 1
    assert len(await bank.rows("SELECT 1 FROM job WHERE kind = 'sync' AND finished_at IS NULL")) == 1


async def test_what_a_download_shows_is_fetched_and_ends_with_it(bank):
    world = bank.world
    world.create("task", "A task.")
    world.hidden["task"] = {"one.txt": "First attachment.", "two.txt": "Second attachment."}
    await bank.sync()
    assert await bank.corpus() == world.truth() | world.hidden["task"]
    [row] = await bank.rows(
        "SELECT p.source_id FROM document d JOIN document p ON p.id = d.parent_document_id WHERE d.source_id = 'one.txt'"
    )
    assert row.source_id == "task"
    await bank.sync("bootstrap")  # no listing names them, and still they are there
    assert await bank.corpus() == world.truth() | world.hidden["task"]
    assert world.downloads["one.txt"] == 1
    del world.hidden["task"]["two.txt"]
    world.edit("task", "The task, with one attachment less.")
    await bank.sync()
    assert await bank.corpus() == world.truth() | world.hidden["task"]
    world.vanish("task")
    world.forget_feed()
    await bank.set_policy(lossLimitPercent=100)
    await bank.sync()
    assert await bank.corpus() == {}
