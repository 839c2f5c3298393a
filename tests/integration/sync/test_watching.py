"""Push subscriptions are made once, kept sealed, and never worth failing a round for."""

import pytest

from workers.sync import watching


@pytest.fixture
def public(bank, monkeypatch):
    public = {"public_url": "https://catchment.example", "secret_key": "k" * 32}
    bank.bench.settings = bank.bench.settings.model_validate({**bank.bench.settings.model_dump(), **public})
    bank.bench.runner.settings = bank.bench.settings
    monkeypatch.setattr(watching, "_looked", {})
    return bank


async def test_a_round_subscribes_once(public):
    public.world.create("f", "One.")
    await public.sync()
    await public.sync()
    assert public.world.requests["watch"] == 1
    [row] = await public.rows(
        "SELECT w.*, r.authority FROM watch w JOIN webhook_route r ON r.watch_id = w.id"
    )
    assert (row.vendor_id, row.authority) == ("w1", "msft")
    assert b"s3cret" not in bytes(row.sealed_secret)


async def test_what_is_about_to_end_is_renewed(public):
    public.world.create("f", "One.")
    await public.sync()
    asked = public.world.requests["watch"]
    await public.rows("UPDATE watch SET expires_at = now() + interval '1 hour' RETURNING 1")
    await public.sync()
    assert public.world.requests["watch"] == asked + 1


async def test_a_refused_subscription_costs_nothing(public, capsys):
    public.world.create("f", "One.")
    public.world.arm("unavailable", at="watch")
    await public.sync()
    assert await public.corpus() == public.world.truth()
    assert "ingestion.connection.watch.failed" in capsys.readouterr().out


async def test_vendors_may_have_an_address_of_their_own_to_push_to(public, bank):
    bank.bench.runner.settings = bank.bench.settings.model_copy(
        update={"public_url": None, "push_url": "http://127.0.0.1:1"}
    )
    public.world.create("f", "One.")
    await public.sync()
    assert public.world.requests["watch"] == 1


async def test_without_a_public_address_nobody_subscribes(bank):
    bank.world.create("f", "One.")
    await bank.sync()
    assert bank.world.requests["watch"] == 0
