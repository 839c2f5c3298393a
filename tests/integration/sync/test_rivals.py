"""Defects found in the source of other products, one test each: what happened there does not happen here.

What concerns one vendor's adapter alone (ids of deleted mails, subtasks, cursors that grow) is shown for every surface by
tests/conformance; here is the engine's part.
"""

from tests.integration.sync.crashing import die_at
from workers.sync import listing


def fill(world, count=9, **fields):
    for number in range(count):
        world.create(f"f{number}", f"File number {number}.", **fields)


async def test_1_changes_during_a_long_first_listing_are_not_lost(bank):
    fill(bank.world)

    def late():
        if bank.world.requests["pages"] == 3:
            bank.world.create("z-late", "Created behind the listing's back.")
            bank.world.edit("f8", "Edited after it was listed.")

    bank.world.during_page = late
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_1_the_gap_of_an_expired_cursor_is_listed_again(bank):
    fill(bank.world)
    await bank.sync()
    bank.world.create("in the gap", "It happened while the cursor expired.")
    bank.world.forget_feed()
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_2_an_expired_history_falls_back_to_a_listing(bank):
    fill(bank.world, kind="note")
    await bank.sync()
    bank.world.arm("cursor_lost", at="pages")
    bank.world.edit("f1", "After the loss.")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_3_a_container_that_cannot_be_listed_is_not_purged(bank):
    fill(bank.world)
    fill(bank.world, 3)
    bank.world.create("x", "In a pool that goes dark.", pool="p2")
    await bank.sync()
    embedded = bank.bench.embedded()
    bank.world.dark_pools = {"p2"}
    await bank.sync("bootstrap")
    assert "x" in await bank.corpus()
    bank.world.dark_pools = set()
    await bank.sync("bootstrap")
    assert bank.bench.embedded() == embedded  # not purged and embedded again


async def test_4_a_bootstrap_that_died_late_does_not_begin_anew(bank):
    fill(bank.world, 30)
    await bank.ask()
    assert await die_at("sync.after_page_commit", bank, 7)
    asked = bank.world.requests["pages"]
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert bank.world.requests["pages"] - asked == 3  # the two pages left, and a delta
    assert max(bank.world.downloads.values()) == 1


async def test_5_a_cursor_does_not_grow_with_the_account(bank):
    fill(bank.world, 40)
    await bank.sync()
    assert len((await bank.source()).cursor) < 200


async def test_6_a_partial_failure_does_not_move_the_cursor_past_changes(bank):
    fill(bank.world)
    await bank.sync()
    before = (await bank.source()).cursor
    bank.world.edit("f1", "A change the vendor could not tell.")
    bank.world.arm("unavailable", at="pages", times=1)
    await bank.ask()
    await bank.bench.runner.answer("delta", bank.tenant.mandate_id)
    assert (await bank.source()).cursor == before
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def test_7_an_empty_page_is_followed_and_an_error_keeps_the_cursor(bank):
    fill(bank.world)
    bank.world.arm("empty_page", times=3)
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()
    generation = (await bank.source()).listing_generation
    bank.world.delete("f2")
    bank.world.arm("unavailable", at="pages", times=2)
    await bank.sync()
    for _ in range(2):  # refused tries
        await bank.wait_over()
        await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert (await bank.source()).listing_generation == generation  # no full enumeration


async def test_8_a_deleted_mail_is_found_by_the_id_it_was_stored_with(bank):
    bank.world.create("AAMk-immutable", "A mail.", kind="note")
    await bank.sync()
    bank.world.delete("AAMk-immutable")
    await bank.sync()
    assert await bank.corpus() == {}


async def test_9_a_failed_item_is_tried_again_without_changing(bank):
    bank.world.create("bad", "Locked for a while.")
    bank.world.broken["bad"] = "locked"
    await bank.sync()
    bank.world.broken.clear()
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def test_10_deletions_during_a_lost_cursor_are_reconciled(bank):
    fill(bank.world, 10)
    await bank.sync()
    bank.world.delete("f3")
    bank.world.forget_feed()
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_11_a_file_restored_or_moved_with_an_old_time_is_indexed(bank):
    fill(bank.world, 3)
    bank.world.create("old", "Much older than the last sync.")
    bank.world.delete("old")
    await bank.sync()
    bank.world.restore("old")
    # the vendor keeps the time it had
    bank.world.things["old"] = type(bank.world.things["old"])(
        **{**vars(bank.world.things["old"]), "touched": 0}
    )
    bank.world.move("f1", "p2")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_12_a_listing_that_lost_most_of_it_deletes_nothing_by_itself(bank):
    fill(bank.world, 10)
    await bank.sync()
    for number in range(8):
        bank.world.vanish(f"f{number}")
    bank.world.forget_feed()
    await bank.sync()
    assert len(await bank.corpus()) == 10
    assert (await bank.source()).held["percent"] == 80.0


async def test_13_what_hangs_on_an_item_comes_with_it(bank):
    bank.world.create("task", "A task.")
    bank.world.create("subtask", "A subtask.", parent="task")
    bank.world.hidden["task"] = {"paper.txt": "An attachment of the task."}
    await bank.sync()
    assert await bank.corpus() == bank.world.truth() | bank.world.hidden["task"]


async def test_14_a_wide_tree_loses_no_branch(bank, monkeypatch):
    monkeypatch.setattr(listing, "SLICE_SECONDS", 0.5)
    bank.world.page_size = 50
    for number in range(150):
        bank.world.create(f"dir{number:03}", "", kind="folder")
        bank.world.create(f"file{number:03}", f"In folder {number}.", kind="note", parent=f"dir{number:03}")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()
