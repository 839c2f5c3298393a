"""From consent to the end: what each step leaves in the rows, and who may take it."""

import re
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from connectors.kit.contract import VendorUnavailable
from gateway.connections import service
from gateway.connections.schemas import effective_policy
from gateway.corpus.erasure import finish_erasure
from gateway.db import Database, new_id
from gateway.ingestion.consumer import KnowledgeIngestionConsumer
from gateway.ingestion.events import record_event
from gateway.tenancy.schemas import Policy
from tests.fixtures.corpus import Tenant, ask
from tests.fixtures.tenants import TestMandate
from tests.fixtures.worker import Bench
from tests.integration.connections.conftest import SECRET_KEY
from tests.integration.connections.vendor import Vendor
from workers.maintenance import Maintenance


@pytest.fixture
def lines():
    import structlog

    from gateway.logs import configure_logs

    shown: list[str] = []
    configure_logs(show=shown.append)
    yield shown
    structlog.reset_defaults()


async def consume(db: Database, mandate_id: UUID) -> None:
    """What the relay does with a mandate's events."""
    async with db.tenant_session(mandate_id) as session:
        ids = list(await session.scalars(text("SELECT id FROM outbox WHERE topic = 'event' ORDER BY id")))
    await KnowledgeIngestionConsumer(db).consume(mandate_id, ids)


async def rows(db: Database, mandate_id: UUID, sql: str, **values):
    async with db.tenant_session(mandate_id) as session:
        return list(await session.execute(text(sql), values))


@pytest.fixture
def kept_here(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The consumer hands in with the blob store of its process."""
    from gateway.ingestion import facade

    bench.settings = bench.settings.model_copy(update={"secret_key": SecretStr(SECRET_KEY)})
    bench.runner.settings = bench.settings
    monkeypatch.setattr(facade, "default_blob_store", lambda: bench.blobs)
    return bench


def tenant_of(mandate: TestMandate, who="member") -> Tenant:
    return Tenant(mandate.id, mandate.users[who], mandate.keys[who])


async def test_establishing_registers_surfaces_summarises_and_starts(db, mandate, connect, kept_here, lines):
    made = await connect(mandate, policy={"shareIntoMandate": True})
    await consume(db, mandate.id)
    sources = await rows(db, mandate.id, "SELECT * FROM data_source ORDER BY surface")
    assert [
        (s.connection_id, s.user_id, s.scope, s.external_root, s.adapter_kind, s.feature_code)
        for s in sources
    ] == [
        (made["uuid"], mandate.users["member"], "mandate", "", f"msft.{surface}", "connections")
        for surface in ("outlook", "sharepoint")
    ]
    [summary] = await rows(db, mandate.id, "SELECT * FROM document")
    assert (summary.source_kind, summary.connection_id, summary.scope) == (
        "connection_summary",
        made["uuid"],
        "mandate",
    )
    jobs = await rows(db, mandate.id, "SELECT * FROM job WHERE kind = 'sync'")
    assert {job.payload["dataSourceId"] for job in jobs} == {str(source.id) for source in sources}
    assert {(job.payload["mode"], job.lane) for job in jobs} == {("bootstrap", "backfill")}
    events = [line for line in lines if "ingestion.connection" in line]
    assert sum("connection.established" in line for line in events) == 1
    assert sum("bootstrap.queued" in line for line in events) == 2
    # again: nothing doubles
    async with db.tenant_session(mandate.id) as session:
        await record_event(session, "ConnectionEstablished", {"connectionId": made["id"]})
    await consume(db, mandate.id)
    assert len(await rows(db, mandate.id, "SELECT FROM data_source")) == 2
    assert len(await rows(db, mandate.id, "SELECT FROM document")) == 1
    assert len(await rows(db, mandate.id, "SELECT FROM job WHERE kind = 'sync'")) == 2


async def test_without_auto_start_it_waits_for_the_estimate(db, mandate, connect, kept_here, lines):
    await connect(mandate, autoStart=False)
    await consume(db, mandate.id)
    assert len(await rows(db, mandate.id, "SELECT FROM data_source")) == 2
    assert await rows(db, mandate.id, "SELECT FROM job WHERE kind = 'sync'") == []
    assert sum("bootstrap.skipped" in line for line in lines) == 1


async def test_only_who_accepts_the_estimate_begins_what_waits_for_it(
    client, mandate, connect, db, kept_here, vendor
):
    made = await connect(mandate, autoStart=False)
    path, who, page = (
        f"/v1/connections/{made['id']}",
        mandate.auth("member"),
        f"/connections/{made['id']}",
    )
    for _ in range(2):  # before its surfaces are registered, and after
        refused = await client.post(f"{path}/sync", headers=who)
        assert (refused.status_code, refused.json()["code"]) == (409, "connection.not_accepted")
        await consume(db, mandate.id)
    assert await rows(db, mandate.id, "SELECT FROM job WHERE kind = 'sync'") == []
    shown = (await client.get(path, headers=who)).json()
    assert [one["waitsFor"] for one in shown["sources"]] == ["acceptance", "acceptance"]
    asking = (await made["browser"].get(page)).text
    assert f'action="{page}/start"' in asking
    assert f'action="{page}/sync"' not in asking
    assert "data-progress" not in asking
    home = (await made["browser"].get("/")).text
    assert "ada@vendor.example: the estimate waits for your answer" in home
    assert "Syncing now" not in home

    accepted = await client.post(f"{path}/sync", json={"mode": "bootstrap"}, headers=who)
    assert accepted.status_code == 202
    assert all(job["jobId"] for job in accepted.json()["jobs"])
    begun = (await made["browser"].get(page)).text
    assert f'action="{page}/start"' not in begun
    assert f'action="{page}/sync"' in begun
    assert (await client.post(f"{path}/sync", headers=who)).status_code == 202


async def consent_again(made, vendor: Vendor) -> None:
    left = await made["browser"].get(made["authorizeUrl"])
    answer = vendor.consent(left.headers["location"])
    back = await made["browser"].get("/v1/oauth/msft/callback", params=answer)
    assert "connected=1" in back.headers["location"]


async def test_a_surface_that_was_not_allowed_is_said_and_not_asked_for(
    client, mandate, connect, vendor: Vendor, db, kept_here, sign_in
):
    vendor.unticked = {"outlook"}
    made = await connect(mandate)
    assert (made["status"], made["notGranted"]) == ("active", ["outlook"])
    await consume(db, mandate.id)
    path, who = f"/v1/connections/{made['id']}", mandate.auth("member")
    shown = (await client.get(path, headers=who)).json()
    assert {one["surface"]: one["waitsFor"] for one in shown["sources"]} == {
        "outlook": "consent",
        "sharepoint": None,
    }
    told = (await client.get(f"{path}/progress", headers=who)).json()["surfaces"]
    assert {one["surface"]: (one["waitsFor"], one["done"]) for one in told} == {
        "outlook": ("consent", True),  # nobody need watch it
        "sharepoint": (None, False),
    }
    asked = (await client.post(f"{path}/sync", headers=who)).json()["jobs"]
    assert {one["surface"]: one["jobId"] is None for one in asked} == {"outlook": True, "sharepoint": False}
    page = (await made["browser"].get(f"/connections/{made['id']}")).text
    assert "Outlook mail: you have not allowed this yet" in page
    assert "you have not allowed this yet" in page.partition("<tbody>")[2]
    home = (await made["browser"].get("/")).text
    attention, _, syncing = home.partition("Syncing now")
    assert "Outlook mail – you have not allowed this yet." in attention
    assert "SharePoint ·" in syncing
    assert "Outlook mail ·" not in syncing

    admin = await sign_in(mandate.id, mandate.users["admin"])  # who cannot consent in the member's place
    assert "you have not allowed" not in (await admin.get("/")).text

    vendor.unticked = set()
    await consent_again(made, vendor)
    await consume(db, mandate.id)
    assert (await client.get(path, headers=who)).json()["notGranted"] == []
    jobs = await rows(db, mandate.id, "SELECT payload FROM job WHERE kind = 'sync'")
    assert [job.payload["mode"] for job in jobs] == ["bootstrap", "bootstrap"]


async def test_a_surface_that_is_added_asks_for_consent(
    client, mandate, connect, vendor: Vendor, db, kept_here
):
    vendor.unticked = {"teams"}  # nobody asked for it, so nobody granted it
    made = await connect(mandate)
    await consume(db, mandate.id)
    browser, page = made["browser"], f"/connections/{made['id']}"
    form = {"csrf_token": re.findall(r'name="csrf_token" value="([^"]+)"', (await browser.get(page)).text)[0]}
    none = await browser.post(f"{page}/surfaces", data=form)
    assert (none.status_code, "Choose at least one." in none.text) == (422, True)
    some = form | {"surfaces": ["sharepoint", "teams"]}
    sent = await browser.post(f"{page}/surfaces", data=some)
    assert (sent.status_code, sent.headers["location"]) == (303, f"{page}/consent")
    path, who = f"/v1{page}", mandate.auth("member")
    told = (await client.patch(path, json={"surfaces": some["surfaces"]}, headers=who)).json()
    assert told["notGranted"] == ["teams"]
    assert {one["surface"]: one["waitsFor"] for one in told["sources"]} == {
        "sharepoint": None,
        "teams": "consent",
    }
    assert "Teams: you have not allowed this yet" in (await browser.get(page)).text

    vendor.unticked = set()
    await consent_again(made, vendor)
    await consume(db, mandate.id)
    sources = (await client.get(path, headers=who)).json()["sources"]
    assert [one["waitsFor"] for one in sources] == [None, None]
    jobs = await rows(db, mandate.id, "SELECT payload FROM job WHERE kind = 'sync'")
    assert {job.payload["dataSourceId"] for job in jobs} == {one["id"] for one in sources}
    fewer = await browser.post(f"{page}/surfaces", data=form | {"surfaces": ["teams"]})
    assert fewer.headers["location"] == f"{page}?saved=surfaces"
    assert (await client.get(path, headers=who)).json()["surfaces"] == ["teams"]


@pytest.mark.parametrize("payload", [{}, {"connectionId": ""}, {"connectionId": str(new_id())}])
@pytest.mark.parametrize("event", ["ConnectionEstablished", "ConnectionRevoked"])
async def test_an_event_without_a_known_id_is_ignored_and_logged(db, mandate, lines, payload, event):
    async with db.tenant_session(mandate.id) as session:
        await record_event(session, event, payload)
    await consume(db, mandate.id)
    assert sum("ingestion.event.ignored" in line for line in lines) == 1
    assert await rows(db, mandate.id, "SELECT FROM receipt") == []


async def test_a_member_sees_their_own_an_admin_all(
    client: httpx.AsyncClient, mandate, other_mandate, connect
):
    own = await connect(mandate, "member")
    other = await connect(mandate, "owner", account="bob")
    path = f"/v1/connections/{other['id']}"
    for method, where in (("GET", path), ("PATCH", path), ("DELETE", path), ("POST", f"{path}/pause")):
        answer = await client.request(
            method, where, headers=mandate.auth("member"), json={} if method == "PATCH" else None
        )
        assert answer.status_code == 404, (method, where)
    listed = (await client.get("/v1/connections", headers=mandate.auth("member"))).json()["items"]
    assert [one["id"] for one in listed] == [own["id"]]
    listed = (await client.get("/v1/connections", headers=mandate.auth("admin"))).json()["items"]
    assert [one["id"] for one in listed] == [other["id"], own["id"]]
    page = (await client.get("/v1/connections?limit=1", headers=mandate.auth("admin"))).json()
    rest = await client.get(
        f"/v1/connections?limit=1&cursor={page['nextCursor']}", headers=mandate.auth("admin")
    )
    assert [one["id"] for one in rest.json()["items"]] == [own["id"]]
    assert (await client.get("/v1/connections", headers=other_mandate.auth())).json()["items"] == []
    assert (await client.get("/v1/connections", headers=mandate.auth("service"))).json()["items"] == []


async def test_a_credential_is_believed_when_the_vendor_answered_with_it(client, mandate, vendor: Vendor, db):
    tokens = vendor.issue("ada")

    async def hand_in(who="admin", **credential):
        body = {"authority": "msft", "credential": credential, "userId": str(mandate.users["member"])}
        return await client.post("/v1/connections", json=body, headers=mandate.auth(who))

    made = await hand_in(accessToken=tokens.access_token)
    assert (made.status_code, made.json()["status"], made.json()["userId"]) == (
        201,
        "active",
        str(mandate.users["member"]),
    )
    assert (await hand_in(who="service", accessToken=tokens.access_token)).status_code == 201
    assert (await hand_in(refreshToken=tokens.refresh_token)).status_code == 201
    for answer, status in (
        (await hand_in(accessToken="canary-made-up"), 422),
        (await hand_in(refreshToken="canary-made-up"), 422),
        (await hand_in(), 422),
        (await hand_in(who="member", accessToken=tokens.access_token), 403),
    ):
        assert answer.status_code == status
        assert "canary" not in answer.text
    vendor.answers["refresh"] = VendorUnavailable("away")
    assert (await hand_in(refreshToken="canary-x")).status_code == 503
    assert len(await rows(db, mandate.id, "SELECT FROM connection")) == 3


async def test_a_service_looks_after_what_it_registered_and_after_nothing_else(
    client, mandate, connect, vendor: Vendor, db
):
    theirs = (await connect(mandate))["id"]
    body = {
        "authority": "msft",
        "credential": {"accessToken": vendor.issue("ada").access_token},
        "userId": str(mandate.users["member"]),
    }
    service = mandate.auth("service")
    made = (await client.post("/v1/connections", json=body, headers=service)).json()["id"]
    listed = (await client.get("/v1/connections", headers=service)).json()["items"]
    assert [one["id"] for one in listed] == [made]
    for path in ("", "/progress", "/items", "/failures"):
        assert (await client.get(f"/v1/connections/{made}{path}", headers=service)).status_code == 200
        assert (await client.get(f"/v1/connections/{theirs}{path}", headers=service)).status_code == 404
    assert (await client.post(f"/v1/connections/{made}/sync", headers=service)).status_code == 202
    assert (await client.delete(f"/v1/connections/{theirs}", headers=service)).status_code == 404
    assert (await client.delete(f"/v1/connections/{made}", headers=service)).status_code in {200, 202}


async def test_what_cannot_be_connected_is_said(client, mandate, vendor):
    async def ask_for(**body):
        return await client.post("/v1/connections", json=body, headers=mandate.auth("member"))

    assert (await ask_for(authority="fax")).status_code == 404
    assert (await ask_for(authority="google")).json()["code"] == "connection.not_configured"
    wrong = await ask_for(authority="msft", surfaces=["gmail"])
    assert (wrong.status_code, "no surface gmail" in wrong.text) == (422, True)
    assert (await ask_for(authority="msft", policy={"mailTier": "all"})).status_code == 422
    other = await ask_for(authority="msft", userId=str(mandate.users["owner"]))
    assert other.status_code == 403


async def test_a_policy_is_patched_and_a_surface_taken_out(client, mandate, connect, db, kept_here):
    made = await connect(mandate, policy={"mailTier": "snippet"})
    await consume(db, mandate.id)
    [outlook] = await rows(db, mandate.id, "SELECT id FROM data_source WHERE surface = 'outlook'")
    await kept_here.hand_in(
        tenant_of(mandate),
        ask(
            tenant_of(mandate),
            "m",
            "A mail.",
            sourceKind="outlook_message",
            connectionId=made["id"],
            dataSourceId=str(outlook.id),
        ),
    )
    path = f"/v1/connections/{made['id']}"
    patched = await client.patch(
        path,
        json={"policy": {"mailTier": None, "sites": ["HR"]}, "surfaces": ["sharepoint", "teams"]},
        headers=mandate.auth("member"),
    )
    assert patched.json()["policy"] == {"sites": ["HR"]}
    assert sorted(source["surface"] for source in patched.json()["sources"]) == ["sharepoint", "teams"]
    assert {
        job.payload["dataSourceId"]
        for job in await rows(db, mandate.id, "SELECT payload FROM job WHERE kind = 'sync'")
    } == {source["id"] for source in patched.json()["sources"]}
    [receipt] = await rows(db, mandate.id, "SELECT id FROM receipt")
    await finish_erasure(db, kept_here.blobs, mandate.id, receipt.id)
    kinds = await rows(db, mandate.id, "SELECT source_kind FROM document")
    assert [row.source_kind for row in kinds] == ["connection_summary"]
    wrong = await client.patch(path, json={"policy": {"sites": 1}}, headers=mandate.auth("member"))
    assert wrong.status_code == 422


@pytest.mark.parametrize(
    ("policy", "modes"),
    [
        ({}, set()),
        ({"mailTier": "snippet"}, set()),  # as it was
        ({"intervalSeconds": 60}, {"delta"}),
        ({"mailTier": "metadata"}, {"bootstrap"}),
    ],
)
async def test_a_patch_lists_anew_only_if_that_could_bring_something_else(
    client, mandate, connect, db, kept_here, policy, modes
):
    made = await connect(mandate, policy={"mailTier": "snippet"})
    await consume(db, mandate.id)
    await rows(db, mandate.id, "DELETE FROM job RETURNING 1")
    await rows(db, mandate.id, "UPDATE data_source SET phase = 'delta', cursor = 'c' RETURNING 1")
    answer = await client.patch(
        f"/v1/connections/{made['id']}", json={"policy": policy}, headers=mandate.auth("member")
    )
    assert answer.status_code == 200
    jobs = await rows(db, mandate.id, "SELECT payload FROM job WHERE kind = 'sync'")
    assert {job.payload["mode"] for job in jobs} == modes


async def test_the_summary_says_what_is_indexed_now(client, mandate, connect, db, kept_here):
    made = await connect(mandate)
    await consume(db, mandate.id)
    await client.patch(
        f"/v1/connections/{made['id']}", json={"surfaces": ["sharepoint"]}, headers=mandate.auth("member")
    )
    await rows(db, mandate.id, "DELETE FROM job WHERE kind <> 'ingest' RETURNING 1")
    await kept_here.drain(tenant_of(mandate))
    [summary] = await rows(
        db,
        mandate.id,
        "SELECT t.text FROM document d JOIN document_text t ON t.document_id = d.id "
        "WHERE d.source_kind = 'connection_summary'",
    )
    assert "sharepoint" in summary.text
    assert "outlook" not in summary.text


@pytest.mark.parametrize(
    "policy",
    [
        {"calendarPastDays": 10**9},
        {"calendarFutureDays": 10**9},
        {"chatWindowDays": 10**9},
        {"intervalSeconds": 10**15},
        {"maxFileBytes": 10**30},
        {"maxAttachmentBytes": 10**30},
        {"maxItems": 10**30},
    ],
)
async def test_a_policy_nobody_could_keep_is_refused(client, mandate, policy):
    asked = {"authority": "msft", "policy": policy}
    answer = await client.post("/v1/connections", json=asked, headers=mandate.auth("member"))
    assert answer.status_code == 422


async def test_sharing_reaches_what_is_there_already(client, mandate, connect, db, kept_here):
    made = await connect(mandate)
    await consume(db, mandate.id)
    await client.patch(
        f"/v1/connections/{made['id']}",
        json={"policy": {"shareIntoMandate": True}},
        headers=mandate.auth("member"),
    )
    scopes = await rows(db, mandate.id, "SELECT scope FROM document UNION ALL SELECT scope FROM data_source")
    assert {row.scope for row in scopes} == {"mandate"}


async def test_a_paused_connection_asks_for_nothing_until_it_is_resumed(
    client, mandate, connect, db, kept_here
):
    made = await connect(mandate)
    path = f"/v1/connections/{made['id']}"
    assert (await client.post(f"{path}/pause", headers=mandate.auth("member"))).json()["paused"]
    await consume(db, mandate.id)
    assert await rows(db, mandate.id, "SELECT FROM job WHERE kind = 'sync'") == []
    assert not (await client.post(f"{path}/resume", headers=mandate.auth("member"))).json()["paused"]
    assert len(await rows(db, mandate.id, "SELECT FROM job WHERE kind = 'sync'")) == 2


# -- the end


@pytest.mark.parametrize(("grace", "purged"), [(0, True), (7, False)])
async def test_a_dead_grant_withholds_at_once_and_purges_after_the_grace(
    client, mandate, connect, db, kept_here, lines, grace, purged
):
    made = await connect(mandate)
    await consume(db, mandate.id)
    tenant = tenant_of(mandate)
    await rows(db, mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    await kept_here.drain(tenant)
    await client.patch("/v1/policy", json={"graceDays": grace}, headers=mandate.auth())
    search = {"q": "connected account", "limit": 5}

    async def hits():
        found = await client.get("/v1/search", params=search, headers=mandate.auth("member"))
        return len(found.json()["hits"])

    assert await hits() == 1
    async with db.tenant_session(mandate.id) as session:
        assert await service.need_reauth(session, made["uuid"], "invalid_grant")
        assert not await service.need_reauth(session, made["uuid"], "invalid_grant")
    assert await hits() == 0
    assert sum("connection.reauth.needed" in line for line in lines) == 1
    await kept_here.drain(tenant)
    await consume(db, mandate.id)
    await kept_here.drain(tenant)
    [row] = await rows(db, mandate.id, "SELECT state, user_id, purged_at FROM connection")
    assert (row.state, row.purged_at is not None) == (
        ("revoked", True) if purged else ("needs_reauth", False)
    )
    assert len(await rows(db, mandate.id, "SELECT FROM document")) == (0 if purged else 1)


async def test_consent_given_again_ends_the_grace(client, mandate, connect, db, kept_here, vendor):
    made = await connect(mandate)
    await consume(db, mandate.id)
    async with db.tenant_session(mandate.id) as session:
        await service.need_reauth(session, made["uuid"], "invalid_grant")
    assert len(await rows(db, mandate.id, "SELECT FROM job WHERE kind = 'grace'")) == 1
    left = await made["browser"].get(made["authorizeUrl"])
    await made["browser"].get("/v1/oauth/msft/callback", params=vendor.consent(left.headers["location"]))
    assert await rows(db, mandate.id, "SELECT FROM job WHERE kind = 'grace'") == []
    [row] = await rows(db, mandate.id, "SELECT state, reauth_since, reason FROM connection")
    assert (row.state, row.reauth_since, row.reason) == ("active", None, None)


async def test_a_more_patient_policy_is_heeded(client, mandate, connect, db, kept_here):
    made = await connect(mandate)
    async with db.tenant_session(mandate.id) as session:
        await service.need_reauth(session, made["uuid"], "invalid_grant")
    await client.patch("/v1/policy", json={"graceDays": 30}, headers=mandate.auth())
    await rows(db, mandate.id, "UPDATE job SET run_after = now() WHERE kind = 'grace' RETURNING 1")
    await kept_here.runner.answer("interactive", mandate.id)
    [job] = await rows(
        db,
        mandate.id,
        "SELECT status, run_after > now() + interval '29 days' AS later FROM job WHERE kind = 'grace'",
    )
    assert (job.status, job.later) == ("pending", True)


@pytest.mark.parametrize(("days", "state"), [(1, "revoked"), (6, "needs_reauth")])
async def test_a_less_patient_policy_reaches_a_grace_that_runs(
    client, mandate, connect, db, kept_here, days, state
):
    made = await connect(mandate)
    async with db.tenant_session(mandate.id) as session:
        await service.need_reauth(session, made["uuid"], "invalid_grant")
    since = "UPDATE connection SET reauth_since = now() - interval '2 days' RETURNING 1"
    await rows(db, mandate.id, since)
    await client.patch("/v1/policy", json={"graceDays": days}, headers=mandate.auth())
    await kept_here.drain(tenant_of(mandate))
    [row] = await rows(db, mandate.id, "SELECT state FROM connection")
    assert row.state == state
    [job] = await rows(
        db,
        mandate.id,
        "SELECT status, run_after > now() + interval '3 days' AS later FROM job WHERE kind = 'grace'",
    )
    assert (job.status, job.later) == (("pending", True) if state == "needs_reauth" else ("indexed", False))


async def test_who_leaves_takes_their_connections_along(client, mandate, connect, db, kept_here, vendor):
    mine, other = await connect(mandate, "member"), await connect(mandate, "owner", account="bob")
    await consume(db, mandate.id)
    await client.delete(f"/v1/members/{mandate.users['member']}", headers=mandate.auth())
    await consume(db, mandate.id)
    await rows(db, mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    await kept_here.drain(tenant_of(mandate))
    states = {row.id: row.state for row in await rows(db, mandate.id, "SELECT id, state FROM connection")}
    assert states == {mine["uuid"]: "revoked", other["uuid"]: "active"}
    assert len(vendor.taken_back) == 1, "the vendor was told"


async def test_under_a_legal_hold_a_leaving_member_is_fenced_but_nothing_is_erased(
    client, mandate, connect, db, kept_here
):
    made = await connect(mandate)
    await consume(db, mandate.id)
    await client.patch("/v1/policy", json={"legalHold": True}, headers=mandate.auth())
    await client.delete(f"/v1/members/{mandate.users['member']}", headers=mandate.auth())
    await consume(db, mandate.id)
    [row] = await rows(db, mandate.id, "SELECT state FROM connection")
    assert row.state == "revoked"
    assert len(await rows(db, mandate.id, "SELECT FROM document")) == 1
    answer = await client.delete(f"/v1/connections/{made['id']}", headers=mandate.auth())
    assert (answer.status_code, answer.json()["code"]) == (409, "erasure.held")
    # when the hold is lifted, what was kept from its end comes to it
    maintenance = Maintenance(db, kept_here.settings)
    await maintenance.tidy(mandate.id)
    assert len(await rows(db, mandate.id, "SELECT FROM document")) == 1
    await client.patch("/v1/policy", json={"legalHold": False}, headers=mandate.auth())
    await maintenance.tidy(mandate.id)
    await consume(db, mandate.id)
    await rows(db, mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    await kept_here.drain(tenant_of(mandate))
    assert await rows(db, mandate.id, "SELECT FROM document") == []
    await maintenance.tidy(mandate.id)
    assert len(await rows(db, mandate.id, "SELECT FROM receipt")) == 1


async def test_revoking_twice_answers_with_the_same_receipt(client, mandate, connect, db, kept_here, vendor):
    made = await connect(mandate)
    await consume(db, mandate.id)
    first = await client.delete(f"/v1/connections/{made['id']}", headers=mandate.auth("member"))
    assert first.status_code == 202, "nobody works here yet"
    await consume(db, mandate.id)
    await rows(db, mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    await kept_here.drain(tenant_of(mandate))
    done = await client.delete(f"/v1/connections/{made['id']}", headers=mandate.auth("admin"))
    assert (done.status_code, done.json()["id"]) == (200, first.json()["receiptId"])
    assert (done.json()["counts"]["token"], done.json()["counts"]["data_source"]) == (1, 2)
    assert vendor.taken_back


async def test_a_vendor_that_does_not_answer_keeps_no_purge_waiting(
    client, mandate, connect, db, kept_here, vendor, lines
):
    made = await connect(mandate)
    await consume(db, mandate.id)
    vendor.answers["revoke"] = VendorUnavailable("away")
    await client.delete(f"/v1/connections/{made['id']}", headers=mandate.auth("member"))
    await consume(db, mandate.id)
    await rows(db, mandate.id, "DELETE FROM job WHERE kind = 'sync' RETURNING 1")
    await kept_here.drain(tenant_of(mandate))
    [row] = await rows(db, mandate.id, "SELECT sealed_tokens, purged_at FROM connection")
    assert (row.sealed_tokens, row.purged_at is None) == (None, False)
    assert any("vendor.told" in line and "VendorUnavailable" in line for line in lines)


# -- policy


@pytest.mark.parametrize(
    ("own", "mandate_says", "tier", "days"),
    [
        ({}, {}, "body", 365),
        ({"mailTier": "attachments", "mailWindowDays": 1000}, {}, "attachments", 1000),
        ({}, {"mail": {"tier": "metadata", "windowDays": 30}}, "metadata", 30),
        (
            {"mailTier": "attachments", "mailWindowDays": 1000},
            {"mail": {"tier": "snippet", "windowDays": 90}},
            "snippet",
            90,
        ),
        (
            {"mailTier": "metadata", "mailWindowDays": 5},
            {"mail": {"tier": "snippet", "windowDays": 90}},
            "metadata",
            5,
        ),
    ],
)
def test_a_connections_word_within_the_mandates(own, mandate_says, tier, days):
    policy = effective_policy(own, Policy.model_validate(mandate_says))
    assert (policy.mail_tier, policy.mail_window_days) == (tier, days)


def test_quotas_of_the_mandate_bound_a_connection():
    mandate = Policy.model_validate({"quotas": {"documentBytes": 1000, "documents": 7}})
    policy = effective_policy({"maxItems": 100}, mandate)
    assert (policy.max_file_bytes, policy.max_attachment_bytes, policy.max_items) == (1000, 1000, 7)
    assert (policy.mail_window_days, policy.calendar_past_days, policy.chat_window_days) == (365, 180, 90)
    mandate = Policy.model_validate({"quotas": {"days": 100}, "mail": {"windowDays": 200}})
    policy = effective_policy({"calendarPastDays": 30}, mandate)
    assert (policy.mail_window_days, policy.calendar_past_days, policy.chat_window_days) == (100, 30, 90)
