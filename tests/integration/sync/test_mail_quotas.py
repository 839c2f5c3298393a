"""Gmail and Outlook under the same quotas: the same mails come in, the same ones stay outside, for the same reason.

The rest of the table – cleaning, tiers, windows, folders – needs no engine: `tests/contract/test_mail_surfaces.py`.
"""

import json
from datetime import UTC, datetime, timedelta

import pytest

from connectors.sandbox.server import start
from gateway.ingestion import facade
from tests.conformance.brook import Brook
from tests.conformance.stages import ADA, raised
from tests.fixtures.worker import Bench
from tests.integration.sync.conftest import open_bank
from tests.integration.sync.histories import StagePlaces

NEWEST_THREE = {"Mail 4", "Mail 3", "Mail 2"}
EVERY = NEWEST_THREE | {"Mail 1", "Mail 0"}
WORDS = "The pump was inspected and found to be in order. " * 200  # about ten thousand bytes


class Post:
    """One vendor's mailbox with five mails of equal length, followed by the engine."""

    def __init__(self, bank, stage):
        self.bank, self.stage = bank, stage
        for number in range(5):
            at = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=10 - number)
            written = {"user": ADA, "subject": f"Mail {number}", "text": f"{number}. {WORDS}"}
            if stage.authority == "google":
                written |= {"at": at.isoformat(), "labels": ["INBOX"]}
            else:
                written |= {"receivedAt": at.isoformat().replace("+00:00", "Z")}
            stage.control.create("message", **written)

    async def allow(self, **quotas):
        policy = json.dumps({"quotas": quotas})
        await self.bank.rows("UPDATE mandate SET policy = CAST(:policy AS jsonb) RETURNING 1", policy=policy)

    async def requests_of_a_delta(self):
        before = self.stage.asked()
        await self.bank.sync()
        return self.stage.asked() - before

    async def inside(self):
        kept = "SELECT title FROM document WHERE source_kind <> 'connection_summary'"
        return {row.title for row in await self.bank.rows(kept)}

    async def outside(self):
        out = "SELECT name, reason FROM remote_item WHERE state = 'skipped'"
        return {(row.name, row.reason) for row in await self.bank.rows(out)}


@pytest.fixture(scope="module")
def sandboxes():
    running = {name: start(name) for name in ("google", "msft")}
    yield running
    for one in running.values():
        one.stop()


@pytest.fixture(params=["google.gmail", "msft.outlook"])
async def post(request, db, pool, tmp_path, monkeypatch, sandboxes):
    bench = Bench(db, pool, tmp_path, retry_base_seconds=0.01)
    monkeypatch.setattr(facade, "get_settings", lambda: bench.settings)
    async with raised(request.param, sandboxes.__getitem__) as stage:
        yield Post(await open_bank(bench, StagePlaces(stage), Brook()), stage)


QUOTAS = [
    pytest.param({"documents": 3}, {"documents": 50}, id="documents"),
    pytest.param({"bytes": 35_000}, {"bytes": 1_000_000}, id="bytes"),
]


@pytest.mark.parametrize(("narrow", "wide"), QUOTAS)
async def test_the_mandates_quota_keeps_the_oldest_outside_until_it_is_raised(post, narrow, wide):
    await post.allow(**narrow)
    await post.bank.sync()
    assert await post.inside() == NEWEST_THREE
    assert await post.outside() == {("Mail 1", "quota"), ("Mail 0", "quota")}
    full = await post.requests_of_a_delta()
    assert await post.inside() == NEWEST_THREE
    await post.allow(**wide)
    await post.bank.sync()
    assert (await post.inside(), await post.outside()) == (EVERY, set())
    assert await post.requests_of_a_delta() == full, "nothing is read again only to be refused again"


async def test_the_connections_own_limit_does_the_same(post):
    await post.bank.set_policy(maxItems=3)
    await post.bank.sync()
    assert (await post.inside(), len(await post.outside())) == (NEWEST_THREE, 2)
    await post.bank.set_policy(maxItems=4)
    await post.bank.sync()
    assert (await post.inside(), await post.outside()) == (NEWEST_THREE | {"Mail 1"}, {("Mail 0", "quota")})


async def test_a_mail_that_ends_makes_room_for_the_next(post):
    await post.allow(documents=3)
    await post.bank.sync()
    [newest] = await post.bank.rows("SELECT external_id FROM remote_item WHERE name = 'Mail 4'")
    post.stage.control.delete(newest.external_id)
    await post.bank.sync()  # brings the end of it,
    await post.bank.sync()  # and what there is room for now
    assert await post.inside() == {"Mail 3", "Mail 2", "Mail 1"}


async def test_one_mail_larger_than_a_document_may_be(post):
    await post.allow(documentBytes=1000)
    post.stage.control.create("message", user=ADA, subject="Short", text="Short.")
    await post.bank.sync()
    assert await post.inside() == {"Short"}
    assert {reason for _, reason in await post.outside()} == {"too_large"}
