"""Nothing is deleted by a half-finished listing, and no large loss without a person's word."""

import pytest

from gateway.connections import sync_service
from gateway.errors import LegalHold


def fill(world, count=10):
    for number in range(count):
        world.create(f"f{number}", f"File number {number}.")


async def lose(bank, *names):
    """Things vanish without a word, and the feed is forgotten."""
    for name in names:
        bank.world.vanish(name)
    bank.world.forget_feed()


async def test_a_lost_cursor_ends_in_a_reconciled_listing(bank, capsys):
    fill(bank.world)
    await bank.sync()
    bank.world.edit("f3", "Edited while the feed was lost.")
    await lose(bank, "f1")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()
    assert bank.world.downloads == {f"f{n}": 2 if n == 3 else 1 for n in range(10)}
    out = capsys.readouterr().out
    assert out.count("ingestion.connection.cursor.lost") == 1
    source = await bank.source()
    assert (source.phase, source.listing_generation) == ("delta", 2)


async def test_a_large_loss_is_held_until_a_person_says_yes(bank, capsys):
    fill(bank.world)
    await bank.sync()
    everything = await bank.corpus()
    await lose(bank, "f1", "f2", "f3")  # 30 %
    await bank.sync()
    assert await bank.corpus() == everything
    assert "ingestion.connection.deletions.held" in capsys.readouterr().out
    assert (await bank.source()).held["count"] == 3
    assert {(await bank.item(name)).state for name in ("f1", "f2", "f3")} == {"held"}
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        assert await sync_service.approve_held(session, bank.connection_id) == 3
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert (await bank.source()).held is None


async def test_a_held_item_that_is_seen_again_is_released(bank):
    fill(bank.world)
    await bank.sync()
    await lose(bank, "f1", "f2", "f3")
    await bank.sync()
    bank.world.restore("f1")
    await bank.sync()
    assert (await bank.item("f1")).state == "handed"
    assert bank.world.downloads["f1"] == 1
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        assert await sync_service.approve_held(session, bank.connection_id) == 2
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def test_how_many_are_held_is_counted_anew_with_every_round(bank):
    fill(bank.world)
    await bank.sync()
    await lose(bank, "f1", "f2", "f3")
    await bank.sync()
    bank.world.restore("f1")
    await bank.sync()
    held = (await bank.source()).held
    assert (held["count"], held["known"], held["percent"]) == (2, 10, 20.0)
    await lose(bank, "f4", "f5", "f6")
    await bank.sync()
    assert (await bank.source()).held["count"] == 5
    for name in ("f2", "f3", "f4", "f5", "f6"):
        bank.world.restore(name)
    await bank.sync()
    assert (await bank.source()).held is None
    assert await bank.corpus() == bank.world.truth()


@pytest.mark.parametrize("limit", [0, 30, 100])
async def test_the_limit_is_the_policys(bank, limit):
    await bank.set_policy(lossLimitPercent=limit)
    fill(bank.world)
    await bank.sync()
    await lose(bank, "f1", "f2", "f3")
    await bank.sync()
    assert ((await bank.source()).held is not None) == (limit < 30)


@pytest.mark.parametrize(
    ("known", "lost", "limit", "held"),
    [
        (4, 1, 20, False),  # a quarter, and still only one
        (4, 2, 20, False),
        (4, 3, 20, True),
        (2, 1, 20, False),
        (1, 1, 20, True),  # all there was: so looks a vendor's bad day
        (2, 2, 20, True),
        (4, 1, 0, True),  # who allows none is asked for each
    ],
)
async def test_one_or_two_of_a_small_account_end_without_a_question(bank, known, lost, limit, held):
    await bank.set_policy(lossLimitPercent=limit)
    fill(bank.world, known)
    await bank.sync()
    everything = await bank.corpus()
    await lose(bank, *(f"f{number}" for number in range(lost)))
    await bank.sync()
    assert await bank.corpus() == (everything if held else bank.world.truth())
    assert ((await bank.source()).held is not None) == held


async def test_a_listing_that_missed_a_container_deletes_nothing_and_is_repeated(bank):
    fill(bank.world)
    bank.world.create("x", "In another pool.", pool="p2")
    await bank.sync()
    everything = await bank.corpus()
    bank.world.dark_pools = {"p2"}
    await lose(bank, "f1")
    await bank.sync()
    assert await bank.corpus() == everything
    bank.world.dark_pools = set()
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def test_a_listing_that_broke_off_deletes_nothing(bank):
    fill(bank.world)
    await bank.sync()
    everything = await bank.corpus()
    await lose(bank, "f1")
    bank.world.arm("throttle", at="pages", after=600, times=1)
    asked = 0

    def after_two_pages():
        nonlocal asked
        asked += 1
        if asked == 3:
            bank.world.arm("unavailable", at="pages", times=100)

    bank.world.during_page = after_two_pages
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == everything
    bank.world.faults.clear()
    bank.world.during_page = None
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def test_a_folder_takes_along_what_lies_in_it(bank):
    world = bank.world
    world.create("top", "", kind="folder")
    world.create("inner", "", kind="folder", parent="top")
    world.create("deep", "Deep inside.", parent="inner")
    world.create("beside", "Beside it.")
    await bank.sync()
    world.delete("top")
    await bank.sync()
    assert await bank.corpus() == {"beside": "Beside it."}
    assert (await bank.item("deep")).reason == "parent_gone"


async def test_what_was_moved_out_of_a_folder_survives_it(bank):
    world = bank.world
    world.page_size = 1
    world.create("top", "", kind="folder")
    world.create("f", "Moved out in time.", parent="top")
    await bank.sync()
    world.move("f", "p1", parent=None)
    world.delete("top")
    await bank.sync()
    assert await bank.corpus() == {"f": "Moved out in time."}
    assert world.downloads["f"] == 1


async def test_a_container_that_is_gone_takes_its_items_along(bank):
    fill(bank.world, 3)
    bank.world.create("x", "In the other pool.", pool="p2")
    await bank.sync()
    bank.world.closed_pools = {"p2"}
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()
    assert "x" not in await bank.corpus()


async def test_an_item_gone_between_listing_and_download_is_deleted(bank):
    bank.world.create("f", "First.")
    await bank.sync()
    bank.world.edit("f", "Second.")
    real = bank.world.take

    def gone(where, *kinds, subject=None):
        if where == "fetch" and "f" in bank.world.things:
            bank.world.vanish("f")
        return real(where, *kinds, subject=subject)

    bank.world.take = gone
    await bank.sync()
    assert await bank.corpus() == {}
    assert (await bank.item("f")).state == "deleted"


async def test_what_a_person_erased_here_does_not_come_back(bank):
    from gateway.corpus import erasure

    bank.world.create("f", "Take this out.")
    await bank.sync()
    [row] = await bank.rows("SELECT id FROM document")
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        receipt = await erasure.begin_erasure(session, "document", str(row.id), "asked")
    await erasure.finish_erasure(bank.db, bank.bench.blobs, bank.tenant.mandate_id, receipt)
    await bank.sync("bootstrap")
    bank.world.edit("f", "Edited.")
    await bank.sync()
    assert await bank.corpus() == {}
    item = await bank.item("f")
    assert (item.state, item.reason, item.name) == ("skipped", "erased", "")


async def test_under_legal_hold_ended_documents_stay_until_it_is_lifted(bank):
    bank.world.create("f", "Evidence.")
    await bank.sync()
    await bank.rows("UPDATE mandate SET policy = '{\"legalHold\": true}' RETURNING 1")
    bank.world.delete("f")
    await bank.sync()
    assert await bank.corpus() == {"f": "Evidence."}
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        with pytest.raises(LegalHold):
            await sync_service.approve_held(session, bank.connection_id)
    await bank.rows("UPDATE mandate SET policy = '{}' RETURNING 1")
    await bank.sync()
    assert await bank.corpus() == {}


async def test_deleting_thousands_goes_in_batches(bank, monkeypatch):
    from workers.sync import reconcile

    monkeypatch.setattr(reconcile, "BATCH", 3)
    bank.world.create("top", "", kind="folder")
    for number in range(8):
        bank.world.create(f"f{number}", f"File {number}.", parent="top")
    await bank.sync()
    bank.world.delete("top")
    await bank.sync()
    assert await bank.corpus() == {}
    [left] = await bank.rows("SELECT (SELECT count(*) FROM chunk) + (SELECT count(*) FROM text_vector) AS n")
    assert left.n == 0


@pytest.mark.parametrize("announced", [False, True])
async def test_what_was_erased_here_with_its_source_does_not_come_back(bank, announced):
    """The connection lives on, and so does the source: what it listed was to go."""
    from gateway.corpus import erasure

    bank.world.create("f", "Take this out.")
    await bank.sync()
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        receipt = await erasure.begin_erasure(session, "source", str(bank.source_id), "asked")
    await erasure.finish_erasure(bank.db, bank.bench.blobs, bank.tenant.mandate_id, receipt)
    if announced:
        bank.world.edit("f", "Edited.")
    await bank.sync()
    bank.world.forget_feed()
    await bank.sync()
    await bank.sync("bootstrap")
    assert await bank.corpus() == {}
    bank.world.create("g", "New since.")
    await bank.sync()
    assert await bank.corpus() == {"g": "New since."}
