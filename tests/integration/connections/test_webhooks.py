"""The door for notifications: who proves itself hastens a delta, everybody else learns nothing."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text

from connectors.kit.contract import Watch
from gateway.connections import webhook_repository
from gateway.connections.vault import SealBroken, Vault
from gateway.connections.webhook_service import keep_watches, known_watches
from gateway.db import Database
from tests.fixtures.tenants import TestMandate
from tests.integration.connections.test_lifecycle import consume, kept_here, lines, rows

__all__ = ["kept_here", "lines"]
DOOR = "/v1/webhooks/msft"


@dataclass
class Watched:
    mandate: TestMandate
    connection: dict[str, Any]
    source: UUID
    secret: str = "canary-watch-secret"
    vendor_id: str = "sub-1"

    def body(self, delivery: str = "", kind: str = "change", proof: str | None = None) -> str:
        return f"{self.vendor_id}|{self.secret if proof is None else proof}|{delivery}|{kind}"


@pytest.fixture
async def watched(db: Database, mandate, connect, kept_here, vault: Vault) -> Watched:
    """A connection whose first sync is over and whose mailbox is watched."""
    made = await connect(mandate)
    await consume(db, mandate.id)
    await rows(db, mandate.id, "DELETE FROM job RETURNING 1")
    [source] = await rows(db, mandate.id, "SELECT id FROM data_source WHERE surface = 'outlook'")
    found = Watched(mandate, made, source.id, vendor_id=f"sub-{source.id}")
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE data_source SET phase = 'delta', cursor = 'c'"))
        await keep_watches(session, vault, "msft", source.id, [watch_of(found)])
    return found


def watch_of(watched: Watched, **changes: Any) -> Watch:
    fields = {
        "vendor_id": watched.vendor_id,
        "resource": "/me/messages",
        "expires_at": datetime.now(UTC) + timedelta(days=2),
        "secret": watched.secret,
        "details": {"kind": "mail"},
    }
    return Watch(**(fields | changes))


async def syncs(db: Database, watched: Watched) -> list[Any]:
    return await rows(db, watched.mandate.id, "SELECT * FROM job WHERE kind = 'sync'")


async def test_a_handshake_is_answered_as_text(client: httpx.AsyncClient, vendor):
    got = await client.post(DOOR, params={"validationToken": "<script>1</script>"})
    assert (got.status_code, got.text) == (200, "<script>1</script>")
    assert got.headers["content-type"].startswith("text/plain")
    assert got.headers["x-content-type-options"] == "nosniff"


async def test_a_proven_notice_hastens_one_delta(client, db, watched, lines):
    for delivery in ("d1", "d2", ""):
        got = await client.post(DOOR, content=watched.body(delivery))
        assert (got.status_code, got.content) == (202, b"")
    [job] = await syncs(db, watched)
    assert (job.payload["dataSourceId"], job.payload["mode"], job.lane) == (
        str(watched.source),
        "delta",
        "delta",
    )
    assert sum("webhook.accepted" in line for line in lines) == 3
    assert "canary" not in "".join(lines)


async def test_a_replay_does_nothing(client, db, watched):
    await client.post(DOOR, content=watched.body("d1"))
    await rows(db, watched.mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    for _ in range(3):
        assert (await client.post(DOOR, content=watched.body("d1"))).status_code == 202
    assert await syncs(db, watched) == []


@pytest.mark.parametrize("proof", ["", "wrong", "canary-watch-secreT"])
async def test_unproven_and_unknown_are_answered_like_everybody(client, db, watched, lines, proof):
    unproven = await client.post(DOOR, content=watched.body("d1", proof=proof))
    unknown = await client.post(DOOR, content=f"nobody|{watched.secret}|d1|change")
    good = await client.post(DOOR, content=watched.body("d9"))
    assert {(one.status_code, one.content) for one in (unproven, unknown, good)} == {(202, b"")}
    assert len(await syncs(db, watched)) == 1, "the good one's"
    assert [line for line in lines if "webhook.rejected" in line and "unproven" in line]
    assert [line for line in lines if "webhook.rejected" in line and "unknown" in line]
    deliveries = await rows(db, watched.mandate.id, "SELECT delivery_id FROM webhook_delivery")
    assert [row.delivery_id for row in deliveries] == ["d9"]


async def test_what_is_no_notification_proves_nothing(client, watched, vendor):
    for body in ("gibberish", b"\xff\xfe", f"{watched.vendor_id}\x00|x|d|change", watched.body("d\x00")):
        answer = await client.post(DOOR, content=body)
        assert (answer.status_code, answer.json()["code"]) == (401, "auth.required"), body
    assert (await client.post(DOOR, content=b"x" * (1024 * 1024 + 1))).status_code == 413
    assert (await client.post("/v1/webhooks/fax", content="x")).status_code == 401
    assert (await client.get(DOOR)).status_code == 401  # only what a vendor sends needs no key


async def test_a_route_leads_to_its_own_vendor_only(client, db, watched, vendor):
    assert (await client.post("/v1/webhooks/google", content=watched.body())).status_code == 202
    assert await syncs(db, watched) == []


async def test_a_body_of_many_notices_is_judged_one_by_one(client, db, watched, lines):
    body = "\n".join(
        [watched.body("a"), watched.body("b", proof="wrong"), "nobody|x|c|change", watched.body("a")]
    )
    assert (await client.post(DOOR, content=body)).status_code == 202
    assert len(await syncs(db, watched)) == 1
    deliveries = await rows(db, watched.mandate.id, "SELECT delivery_id FROM webhook_delivery")
    assert [row.delivery_id for row in deliveries] == ["a"]


@pytest.mark.parametrize("kind", ["removed", "reauthorize"])
async def test_a_subscription_the_vendor_ends_is_out_of_date_and_made_anew(client, db, watched, kind):
    await client.post(DOOR, content=watched.body("d1", kind))
    [watch] = await rows(db, watched.mandate.id, "SELECT expires_at <= now() AS due FROM watch")
    assert watch.due
    assert len(await syncs(db, watched)) == 1


async def test_missed_notices_are_a_delta_too(client, db, watched):
    await client.post(DOOR, content=watched.body("d1", "missed"))
    assert len(await syncs(db, watched)) == 1


@pytest.mark.parametrize("state", ["needs_reauth", "revoked"])
async def test_nothing_is_written_for_a_connection_that_is_not_active(client, db, watched, state):
    await rows(db, watched.mandate.id, "UPDATE connection SET state = :state RETURNING 1", state=state)
    assert (await client.post(DOOR, content=watched.body("d1"))).status_code == 202
    assert await syncs(db, watched) == []
    assert await rows(db, watched.mandate.id, "SELECT FROM webhook_delivery") == []


async def test_subscriptions_are_renewed_under_the_id_they_have(db, watched, vault):
    async with db.tenant_session(watched.mandate.id) as session:
        [before] = await known_watches(session, vault, watched.source)
        again = [
            watch_of(watched, secret="canary-second"),
            watch_of(watched, vendor_id=f"{watched.vendor_id}-b"),
        ]
        await keep_watches(session, vault, "msft", watched.source, again)
        after = await known_watches(session, vault, watched.source)
    assert before.secret == watched.secret
    assert [watch.secret for watch in after] == ["canary-second", watched.secret]
    async with db.tenant_session(watched.mandate.id) as session:
        await keep_watches(session, vault, "msft", watched.source, after[1:])
        [left] = await known_watches(session, vault, watched.source)
    assert left.vendor_id == f"{watched.vendor_id}-b"
    async with db.routing_session() as session:
        assert await webhook_repository.find_route(session, "msft", watched.vendor_id) is None


async def test_a_secret_moved_to_another_watch_does_not_open(db, watched, vault):
    async with db.tenant_session(watched.mandate.id) as session:
        await keep_watches(
            session,
            vault,
            "msft",
            watched.source,
            [watch_of(watched), watch_of(watched, vendor_id="other-x")],
        )
        await session.execute(
            text("UPDATE watch SET sealed_secret = (SELECT sealed_secret FROM watch LIMIT 1)")
        )
        with pytest.raises(SealBroken):
            await known_watches(session, vault, watched.source)
