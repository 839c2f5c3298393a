"""One bad item costs one item; it has a schedule of its own and never holds the cursor."""

import pytest

from gateway.connections import sync_repository


async def test_a_download_that_fails_comes_back_by_itself(bank):
    bank.world.create("bad", "Unreadable today.")
    bank.world.create("good", "Fine.")
    bank.world.broken["bad"] = "locked"
    await bank.sync()
    assert await bank.corpus() == {"good": "Fine."}
    [failure] = await bank.rows("SELECT * FROM item_failure")
    assert (failure.external_id, failure.reason, failure.attempts) == ("bad", "locked", 1)
    assert (await bank.source()).phase == "delta"  # the cursor went on
    del bank.world.broken["bad"]
    await bank.sync()  # too early
    assert "bad" not in await bank.corpus()
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert await bank.rows("SELECT 1 FROM item_failure") == []


async def test_each_further_failure_doubles_the_wait(bank):
    bank.world.create("bad", "Never.")
    bank.world.broken["bad"] = "locked"
    await bank.sync()
    waits = []
    for _ in range(3):
        [failure] = await bank.rows("SELECT retry_at, last_at, attempts FROM item_failure")
        waits.append((failure.retry_at - failure.last_at).total_seconds())
        await bank.wait_over()
        await bank.drain()
    assert waits == [60, 120, 240]


async def test_what_will_not_change_is_skipped_and_not_downloaded_again(bank):
    bank.world.create("bad", "A format nobody reads.")
    bank.world.broken["bad"] = "unsupported"
    await bank.sync()
    item = await bank.item("bad")
    assert (item.state, item.reason) == ("skipped", "unsupported")
    asked = bank.world.requests["fetch"]
    await bank.sync("bootstrap")
    assert bank.world.requests["fetch"] == asked
    del bank.world.broken["bad"]
    bank.world.edit("bad", "Now it is text.")
    await bank.sync()
    assert await bank.corpus() == {"bad": "Now it is text."}


async def test_a_bug_in_a_surface_costs_one_item(bank):
    bank.world.create("bad", "It trips the adapter.")
    bank.world.create("good", "Fine.")
    bank.world.broken["bad"] = "bug"
    await bank.sync()
    assert await bank.corpus() == {"good": "Fine."}
    [failure] = await bank.rows("SELECT reason, detail FROM item_failure")
    assert (failure.reason, failure.detail) == ("error", "KeyError")


async def test_an_item_that_cannot_be_listed_is_listed_again_later(bank):
    bank.world.create("odd", "It cannot be listed.")
    bank.world.create("good", "Fine.")
    bank.world.unlistable = {"odd"}
    await bank.sync()
    assert await bank.corpus() == {"good": "Fine."}
    assert (await bank.item("odd")).state == "failed"
    bank.world.unlistable = set()
    await bank.sync()  # a delta does not name it
    assert "odd" not in await bank.corpus()
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert await bank.rows("SELECT 1 FROM item_failure") == []


async def test_a_change_that_could_not_be_listed_is_not_lost(bank):
    bank.world.create("odd", "Before.", kind="note")
    await bank.sync()
    bank.world.edit("odd", "After.")
    bank.world.unlistable = {"odd"}
    await bank.sync()
    assert await bank.corpus() == {"odd": "Before."}
    bank.world.unlistable = set()
    await bank.wait_over()
    await bank.drain()
    assert await bank.corpus() == {"odd": "After."}


async def test_a_failed_item_survives_a_listing(bank):
    bank.world.create("odd", "It was here before.")
    for number in range(9):
        bank.world.create(f"f{number}", f"File {number}.")
    await bank.sync()
    bank.world.unlistable = {"odd"}
    bank.world.forget_feed()
    bank.world.edit("f1", "Edited.")
    await bank.sync()
    assert "odd" in await bank.corpus()


async def test_an_outage_is_not_the_items_fault(bank):
    for number in range(4):
        bank.world.create(f"f{number}", f"File {number}.")
    bank.world.arm("unavailable", at="fetch", times=4)
    await bank.sync()
    for _ in range(20):
        await bank.wait_over()
        await bank.drain()
    assert await bank.rows("SELECT 1 FROM item_failure") == []
    assert await bank.corpus() == bank.world.truth()


async def test_a_vendor_that_is_down_for_long_never_ends_the_schedule(bank, capsys):
    bank.world.create("f", "One.")
    bank.world.arm("unavailable", at="pages", times=20)
    await bank.ask()
    for _ in range(30):
        await bank.wait_over()
        await bank.drain()
    assert await bank.corpus() == bank.world.truth()
    assert "ingestion.connection.bootstrap.failed" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["file", "note"])
async def test_a_quota_keeps_out_and_lets_in_when_it_is_raised(bank, kind):
    await bank.set_policy(maxItems=3)
    for number in range(5):
        bank.world.create(f"f{number}", f"File {number}.", kind=kind)
    await bank.sync()
    assert len(await bank.corpus()) == 3
    skipped = await bank.rows("SELECT reason FROM remote_item WHERE state = 'skipped'")
    assert [row.reason for row in skipped] == ["quota", "quota"]
    await bank.set_policy(maxItems=10)
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_the_mandates_quota_counts_too(bank):
    await bank.rows('UPDATE mandate SET policy = \'{"quotas": {"documents": 2}}\' RETURNING 1')
    for number in range(5):
        bank.world.create(f"f{number}", f"File {number}.")
    await bank.sync()
    assert len(await bank.corpus()) == 2
    asked = bank.world.requests["fetch"]
    await bank.sync()
    assert bank.world.requests["fetch"] == asked  # nothing is downloaded only to be refused
    await bank.rows("UPDATE mandate SET policy = '{}' RETURNING 1")
    await bank.sync()
    assert await bank.corpus() == bank.world.truth()


async def test_names_no_store_can_hold_are_cleaned(bank):
    bank.world.create("f", "Fine.", name="nul\x00 and half a pair \ud800.txt")
    await bank.sync()
    [row] = await bank.rows("SELECT title FROM document")
    assert row.title == "nul and half a pair ?.txt"


async def test_a_person_can_have_it_tried_now(bank):
    bank.world.create("bad", "Soon.")
    bank.world.broken["bad"] = "locked"
    await bank.sync()
    bank.world.broken.clear()
    [failure] = await bank.rows("SELECT id FROM item_failure")
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        found = await sync_repository.hasten_failure(session, bank.connection_id, failure.id)
        assert found is not None
    bank.time[0] = bank.time[0].replace(year=bank.time[0].year + 1)
    await bank.rows(
        "UPDATE job SET run_after = now() WHERE kind = 'fetch' AND finished_at IS NULL RETURNING 1"
    )
    await bank.drain()
    assert await bank.corpus() == bank.world.truth()


async def test_the_failure_of_an_item_that_is_gone_goes_with_it(bank):
    bank.world.create("bad", "Never read.")
    bank.world.create("good", "Fine.")
    bank.world.broken["bad"] = "locked"
    await bank.sync()
    bank.world.vanish("bad")
    bank.world.forget_feed()
    await bank.sync()
    assert await bank.rows("SELECT 1 FROM item_failure") == []


async def test_a_vendor_that_leads_in_a_circle_is_left_alone(bank):
    """Each page leads to itself, for ever: a round ends, is tried again later, and goes on when the vendor does."""
    bank.world.create("one", "There all along.")
    bank.world.arm("empty_page", times=1_000_000)
    await bank.sync()
    assert bank.world.requests["pages"] < 200
    [job] = await bank.rows("SELECT status, reason FROM job WHERE kind = 'sync' ORDER BY id DESC LIMIT 1")
    assert (job.status, job.reason) == ("pending", "unavailable")
    bank.world.faults.clear()
    await bank.settle(rounds=2)
    assert await bank.corpus() == bank.world.truth()
