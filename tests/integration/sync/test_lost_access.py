"""A container that refuses: one word ends nothing, access that is lost is honoured in the end."""

from datetime import timedelta

import pytest


async def grown(bank, *, beside=9):
    """A pool that will refuse, and others."""
    for number in range(beside):
        bank.world.create(f"f{number}", f"File number {number}.")
    bank.world.create("x", "In the other pool.", pool="p2")
    await bank.sync()
    return await bank.corpus()


async def later(bank, **time):
    bank.time[0] += timedelta(**time)
    await bank.sync()


async def test_one_refusal_ends_nothing_and_is_told(bank):
    everything = await grown(bank)
    bank.world.refusing = {"p2": "forbidden"}
    await bank.sync()
    await bank.sync()  # asked again at once, it proves no more
    assert await bank.corpus() == everything
    assert (await bank.source()).last_error == "forbidden"
    bank.world.refusing = {}
    await later(bank, hours=1)
    assert await bank.corpus() == everything
    source = await bank.source()
    assert (source.last_error, source.listing.get("doubted")) == (None, None)
    bank.world.refusing = {"p2": "forbidden"}
    await later(bank, hours=1)  # a new doubt begins anew
    assert await bank.corpus() == everything


async def test_a_second_refusal_after_a_while_is_believed(bank):
    await grown(bank)
    bank.world.refusing = {"p2": "forbidden"}
    await bank.sync()
    await later(bank, minutes=15)
    assert "x" not in await bank.corpus()
    assert len(await bank.corpus()) == 9
    item = await bank.item("x")
    assert (item.state, item.reason) == ("deleted", "container_gone")
    await later(bank, minutes=15)
    assert (await bank.source()).last_error is None, "nothing of it is here any more"


async def test_access_that_comes_back_brings_everything_again(bank):
    everything = await grown(bank)
    bank.world.refusing = {"p2": "forbidden"}
    await bank.sync()
    await later(bank, minutes=15)
    bank.world.refusing = {}
    await later(bank, minutes=15)
    assert await bank.corpus() == everything


@pytest.mark.parametrize("word", ["not_enabled", "admin_policy", "not_granted", "refused", "quota"])
async def test_what_others_decided_ends_nothing_however_long(bank, word):
    everything = await grown(bank)
    bank.world.refusing = {"p1": word, "p2": word}
    for _ in range(3):
        await later(bank, days=10)
    assert await bank.corpus() == everything
    assert (await bank.source()).last_error == word
    bank.world.refusing = {}
    await later(bank, days=1)
    assert (await bank.source()).last_error is None


async def test_a_large_loss_is_held_and_ends_when_nobody_answers(bank, capsys):
    everything = await grown(bank)
    bank.world.refusing = {"p1": "forbidden"}
    await bank.sync()
    await later(bank, minutes=15)
    assert await bank.corpus() == everything
    held = (await bank.source()).held
    assert (held["count"], held["known"], held["percent"]) == (9, 10, 90.0)
    assert "reason=access_lost" in capsys.readouterr().out
    assert (await bank.source()).last_error == "forbidden"
    await later(bank, days=5)
    assert await bank.corpus() == everything
    await later(bank, days=3)  # the mandate's seven days of grace are over
    assert await bank.corpus() == {"x": "In the other pool."}
    assert (await bank.source()).held is None


async def test_a_held_pool_that_can_be_read_again_is_released(bank):
    everything = await grown(bank)
    bank.world.refusing = {"p1": "forbidden"}
    await bank.sync()
    await later(bank, minutes=15)
    assert (await bank.source()).held["count"] == 9
    bank.world.refusing = {}
    await later(bank, minutes=15)
    assert await bank.corpus() == everything
    assert (await bank.source()).held is None
    assert set(bank.world.downloads.values()) == {1}


async def test_what_is_lost_leaves_no_gap_in_a_listing(bank):
    """A container that was never readable would otherwise keep a listing from ever being complete."""
    for number in range(9):
        bank.world.create(f"f{number}", f"File number {number}.")
    bank.world.create("x", "Nobody may read it.", pool="p2")
    bank.world.refusing = {"p2": "forbidden"}
    await bank.sync()
    source = await bank.source()
    assert (source.listing["incomplete"], source.last_error) == (1, None)
    bank.world.vanish("f1")
    bank.time[0] += timedelta(minutes=15)
    await bank.sync("bootstrap")
    assert "incomplete" not in (await bank.source()).listing
    assert "f1" not in await bank.corpus()


async def test_a_doubt_outlives_a_listing_of_everything(bank):
    await grown(bank)
    bank.world.refusing = {"p2": "forbidden"}
    await bank.sync()
    bank.time[0] += timedelta(minutes=15)
    await bank.sync("bootstrap")
    assert "x" not in await bank.corpus()
    assert len(await bank.corpus()) == 9


async def test_an_account_that_never_had_it_is_done_and_says_so(bank):
    bank.world.refusing = {"own": "no_onedrive"}
    await bank.sync()
    source = await bank.source()
    assert (source.phase, source.last_error, "incomplete" in source.listing) == (
        "delta",
        "no_onedrive",
        False,
    )


async def test_what_an_account_does_not_have_any_more_is_held_first(bank):
    everything = await grown(bank)
    bank.world.refusing = {"own": "no_onedrive", "p1": "forbidden", "p2": "forbidden"}
    await bank.sync()
    assert await bank.corpus() == everything
    await later(bank, minutes=15)
    source = await bank.source()
    assert (await bank.corpus(), source.held["count"], source.last_error) == (everything, 10, "no_onedrive")
    await later(bank, days=8)
    assert await bank.corpus() == {}
