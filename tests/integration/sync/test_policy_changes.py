"""What a policy says counts for what is there already: the next sync lists anew what was listed under another word."""

import json

import pytest
from sqlalchemy import text

from gateway.connections.sync_service import enqueue_sync


def fill(world, count=10, **fields):
    for number in range(count):
        world.create(f"f{number}", f"File number {number}.", **fields)


async def listings(bank) -> int:
    return (await bank.source()).listing_generation


@pytest.mark.parametrize(
    ("policy", "listed"),
    [
        ({"fileTypes": ["txt"]}, 2),
        ({"mailTier": "snippet"}, 2),
        ({"mailWindowDays": 30}, 2),
        ({"maxFileBytes": 1000}, 2),
        ({"intervalSeconds": 60}, 1),
        ({"lossLimitPercent": 50}, 1),
        ({"maxItems": 100}, 1),
        ({}, 1),
    ],
)
async def test_the_next_sync_lists_anew_what_another_policy_listed(bank, policy, listed):
    fill(bank.world)
    await bank.sync()
    await bank.set_policy(**policy)
    await bank.sync()
    await bank.sync()
    assert await listings(bank) == listed
    assert await bank.corpus() == bank.world.truth()


async def test_a_word_of_the_mandate_reaches_a_connection_with_its_next_sync(bank):
    fill(bank.world)
    await bank.sync()
    await bank.rows(
        "UPDATE mandate SET policy = CAST(:policy AS jsonb) RETURNING 1",
        policy=json.dumps({"mail": {"tier": "metadata"}}),
    )
    await bank.sync()
    assert await listings(bank) == 2


async def test_a_policy_that_changes_in_the_middle_of_a_listing_counts_for_its_beginning_too(bank):
    fill(bank.world)
    stopped = []

    def stop():
        if bank.world.requests["pages"] == 3 and not stopped:
            stopped.append(True)
            bank.world.arm("throttle", at="pages", after=600)

    bank.world.during_page = stop
    await bank.sync()
    assert (await bank.source()).phase == "listing"
    await bank.set_policy(fileTypes=["txt"])
    await bank.wait_over()
    await bank.drain()
    assert await listings(bank) == 2
    assert await bank.corpus() == bank.world.truth()


async def test_who_wants_everything_listed_is_not_outvoted_by_who_asks_for_changes(bank):
    fill(bank.world)
    await bank.sync()
    [job] = await bank.rows("SELECT id FROM job WHERE kind = 'sync' AND finished_at IS NULL")
    async with bank.db.tenant_session(bank.tenant.mandate_id) as session:
        # Somebody is at work: whoever asks now is served when that is done.
        await session.execute(
            text("UPDATE job SET lease_until = now() + interval '1 minute' WHERE id = :id"), {"id": job.id}
        )
        await enqueue_sync(session, bank.source_id, mode="bootstrap", reason="policy changed")
        await enqueue_sync(session, bank.source_id, mode="delta", reason="asked")
    [job] = await bank.rows("SELECT payload FROM job WHERE id = :id", id=job.id)
    assert job.payload["again"] == {"mode": "bootstrap", "delay": 0}


async def test_what_policy_leaves_out_is_no_loss_and_nobody_is_asked(bank):
    fill(bank.world)
    await bank.sync()
    bank.world.left_out = {f"f{number}": "outside_window" for number in range(7)}
    await bank.sync("bootstrap")
    assert sorted(await bank.corpus()) == ["f7", "f8", "f9"]
    assert (await bank.source()).held is None
    item = await bank.item("f0")
    assert (item.state, item.reason, item.document_id) == ("skipped", "outside_window", None)
    bank.world.left_out = {}
    await bank.sync("bootstrap")
    assert await bank.corpus() == bank.world.truth()


async def test_a_loss_is_measured_by_what_policy_still_wants(bank):
    fill(bank.world, 20)
    await bank.sync()
    bank.world.left_out = {f"f{number}": "filtered" for number in range(14)}
    for name in ("f14", "f15", "f16"):  # 3 of 20, but half of the six that are wanted
        bank.world.vanish(name)
    await bank.sync("bootstrap")
    assert (await bank.source()).held["count"] == 3
    assert sorted(await bank.corpus()) == ["f14", "f15", "f16", "f17", "f18", "f19"]


async def test_a_container_that_policy_leaves_out_is_not_called_forbidden(bank):
    fill(bank.world, 3)
    bank.world.create("x", "In another pool.", pool="p2")
    await bank.sync()
    bank.world.excluded_pools = {"p2"}
    await bank.sync()
    item = await bank.item("x")
    assert (item.state, item.reason, item.document_id) == ("skipped", "filtered", None)
    assert sorted(await bank.corpus()) == ["f0", "f1", "f2"]


async def test_a_folder_that_is_renamed_takes_what_lies_in_it_along(bank):
    bank.world.create("box", "", kind="folder", name="Before")
    bank.world.create("inner", "", kind="folder", name="Inner", parent="box")
    bank.world.create("x", "In the inner box.", parent="inner")
    await bank.sync()
    assert (await bank.item("x")).path == "Before/Inner"
    bank.world.rename("box", "After")
    await bank.sync()
    assert (await bank.item("x")).path == "After/Inner"
    assert bank.world.downloads == {"x": 1}
    [document] = await bank.rows("SELECT metadata FROM document WHERE source_id = 'x'")
    assert document.metadata["path"] == "After/Inner"
    before = await listings(bank)
    bank.world.rename("x", "y.txt")
    await bank.sync()
    assert await listings(bank) == before, "a file's own name needs no listing"


async def test_what_must_be_masked_from_now_on_is_taken_in_again(bank):
    bank.world.create("x", "Write to heron@river.example about the weir.")
    await bank.sync()
    assert "heron@river.example" in (await bank.corpus())["x"]
    await bank.set_policy(neutralize=True)
    await bank.sync()
    assert "heron@river.example" not in (await bank.corpus())["x"]
    await bank.sync("bootstrap")
    assert bank.world.downloads == {"x": 2}, "once more, and then its version says that it is the same"
