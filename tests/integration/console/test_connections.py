"""A connection's pages: what is asked of a vendor, what waits for a person, and who is told about it."""

import re
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from gateway.connections import repository, sync_repository
from gateway.connections.sync_service import enqueue_sync
from gateway.console import connections_routes
from gateway.corpus.erasure import begin_erasure
from gateway.db import Database, new_id
from tests.fixtures.tenants import SignIn, TestMandate
from tests.integration.console.conftest import Seen
from tests.integration.console.test_rules import connection_of, token_of


async def surfaces_of(db: Database, mandate: TestMandate, made: UUID, *names: str) -> dict[str, UUID]:
    """Registers surfaces of a connection, as its welcome does."""
    ids = {name: new_id() for name in names}
    common = {"connection_id": made, "user_id": mandate.users["member"], "feature_code": "connections"}
    common |= {"external_root": "", "scope": "personal"}
    async with db.tenant_session(mandate.id) as session:
        await repository.add_sources(
            session,
            [common | {"id": ids[name], "surface": name, "adapter_kind": f"msft.{name}"} for name in names],
        )
    return ids


pytestmark = pytest.mark.usefixtures("app")


async def test_who_unticks_every_surface_is_asked_for_one_and_nothing_is_connected(
    sign_in: SignIn, db: Database, mandate: TestMandate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.console.connections_routes.is_configured", lambda *_: True)
    browser = await sign_in(mandate.id, mandate.users["member"])
    token = token_of(await browser.get("/connections"))
    sent = {"csrf_token": token, "authority": "google", "estimate": "1"}
    refused = await browser.post("/connections", data=sent, headers={"Accept-Language": "de"})
    assert refused.status_code == 422
    form = refused.text.partition('value="google"')[2].partition("</form>")[0]
    assert "Wählen Sie mindestens eines." in form
    assert 'name="estimate" value="1" checked' in form
    assert 'name="surfaces" value="gmail">' in form
    assert refused.text.count('role="alert"') == 1
    assert (await browser.get("/v1/connections")).json()["items"] == []


async def test_a_disconnected_account_says_when_and_leads_to_its_receipt(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate)
    async with db.tenant_session(mandate.id) as session:
        values = {"id": made}
        await session.execute(
            text("UPDATE connection SET established_at = '2026-01-02T10:00Z' WHERE id = :id"), values
        )
        receipt_id = await begin_erasure(session, "connection", str(made), "revoked:msft")
        await session.execute(
            text("UPDATE connection SET revoked_at = '2026-03-04T10:00Z' WHERE id = :id"), values
        )
    browser = await sign_in(mandate.id, mandate.users["admin"])
    for path in ("/connections", f"/connections/{made}"):
        page = (await browser.get(path)).text
        assert "2026-03-04 10:00" in page, path
        assert "2026-01-02" not in page, path
        assert f'href="/receipts/{receipt_id}"' in page, path
        assert (await browser.get(f"/receipts/{receipt_id}")).status_code == 200
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("""UPDATE mandate SET policy = '{"legalHold": true}'"""))
    assert "A legal hold keeps what is left" in (await browser.get(f"/receipts/{receipt_id}")).text
    assert (await browser.get(f"/v1/connections/{made}")).json()["receiptId"] == str(receipt_id)


@pytest.mark.parametrize(
    ("state", "says"), [("active", "Connected since"), ("needs_reauth", "Refused since")]
)
async def test_the_date_beside_the_state_says_what_it_is_the_date_of(
    sign_in: SignIn, db: Database, mandate: TestMandate, state: str, says: str
) -> None:
    made = await connection_of(db, mandate, state=state)
    async with db.tenant_session(mandate.id) as session:
        await session.execute(
            text("UPDATE connection SET established_at = now(), reauth_since = now() WHERE id = :id"),
            {"id": made},
        )
    page = await (await sign_in(mandate.id, mandate.users["member"])).get(f"/connections/{made}")
    assert re.search(rf"{says}: <time", page.text)


async def test_home_calls_out_what_cannot_be_read_and_does_not_call_it_syncing(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, auto_start=True)
    ids = await surfaces_of(db, mandate, made, "sharepoint", "outlook", "teams", "onedrive")
    async with db.tenant_session(mandate.id) as session:
        await sync_repository.note_error(session, ids["onedrive"], "no_onedrive")  # nobody could mend it
        await sync_repository.note_error(session, ids["outlook"], "forbidden")
        await sync_repository.note_error(session, ids["teams"], "KeyError")
    browser = await sign_in(mandate.id, mandate.users["member"])
    attention, _, syncing = (await browser.get("/")).text.partition("Syncing now")
    assert "Outlook mail – no access." in attention
    assert "Teams – something unexpected happened" in attention
    assert f'href="/connections/{made}">Look at it' in attention
    assert "OneDrive" not in attention + syncing
    assert "SharePoint ·" in syncing
    assert "Outlook" not in syncing
    assert "Teams" not in syncing
    page = (await browser.get(f"/connections/{made}")).text
    assert "KeyError" not in re.sub(r"<[^>]*>", "", page)


async def test_home_names_the_account_and_counts_a_failed_file_once(
    sign_in: SignIn, db: Database, mandate: TestMandate, hostile: Seen
) -> None:
    for address, state in (("ada@demo.example", "active"), ("ada@other.example", "needs_reauth")):
        made = await connection_of(db, mandate, "owner", state=state)
        ids = await surfaces_of(db, mandate, made, "sharepoint")
        async with db.tenant_session(mandate.id) as session:
            await session.execute(
                text(
                    "UPDATE connection SET account = jsonb_build_object('email', CAST(:email AS text)) WHERE id = :id"
                ),
                {"id": made, "email": address},
            )
            if state == "active":
                await session.execute(
                    text(
                        "UPDATE document SET connection_id = :made, data_source_id = :source, status = 'failed' "
                        "WHERE id = :id"
                    ),
                    {"made": made, "source": ids["sharepoint"], "id": hostile.document_id},
                )
    home = (await (await sign_in(mandate.id, mandate.users["owner"])).get("/")).text
    assert "Microsoft · ada@demo.example: 1 item could not be read." in home
    assert "Microsoft · ada@other.example needs to be connected again" in home
    assert "could not be indexed" not in home


async def test_a_vendor_that_asks_for_patience_is_named_with_the_time(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, auto_start=True)
    ids = await surfaces_of(db, mandate, made, "sharepoint", "outlook", "teams")
    waits = {"sharepoint": "4 hours", "outlook": "-1 seconds", "teams": "1 minute"}
    async with db.tenant_session(mandate.id) as session:
        await session.execute(text("UPDATE data_source SET phase = 'delta'"))
        for name, wait in waits.items():
            reason = "unavailable" if name == "teams" else "throttled"
            job = await enqueue_sync(session, ids[name])
            await session.execute(
                text(
                    "UPDATE job SET reason = :reason, run_after = now() + CAST(:wait AS interval) WHERE id = :id"
                ),
                {"reason": reason, "wait": wait, "id": job},
            )
    browser = await sign_in(mandate.id, mandate.users["member"])
    [shown] = (await browser.get("/v1/connections")).json()["items"]
    told = (await browser.get(f"/v1/connections/{made}/progress")).json()["surfaces"]
    for surfaces in (shown["sources"], told):
        assert {one["surface"]: one["waitsFor"] for one in surfaces} == {
            "sharepoint": "vendor",
            "outlook": None,
            "teams": None,
        }
    # only Outlook's sync is due: nobody need watch those that wait
    assert {one["surface"]: one["done"] for one in told} == {
        "sharepoint": True,
        "outlook": False,
        "teams": True,
    }
    [until] = [one["waitsUntil"] for one in told if one["waitsFor"]]
    said = f'Microsoft asked us to wait until <time datetime="{datetime.fromisoformat(until).isoformat()}"'
    for path in ("/", f"/connections/{made}"):
        page = (await browser.get(path)).text
        assert page.count("asked us to wait until") == page.count(said) == 1, path


async def test_held_deletions_are_counted_can_be_kept_and_are_approved_one_surface_at_a_time(
    sign_in: SignIn, db: Database, mandate: TestMandate
) -> None:
    made = await connection_of(db, mandate, auto_start=True)
    ids = await surfaces_of(db, mandate, made, "sharepoint", "outlook")
    told = {"count": 4, "known": 9, "percent": 44.4, "since": "2026-01-02T10:00:00+00:00"}
    async with db.tenant_session(mandate.id) as session:
        for source in ids.values():
            await sync_repository.save_held(session, source, told)
            await session.execute(
                text(
                    "INSERT INTO remote_item (mandate_id, data_source_id, external_id, connection_id, source_kind, name, "
                    "container_id, state, generation) VALUES (:mandate, :source, 'x', :made, 'sharepoint_item', 'x', "
                    "'drive', 'held', 1)"
                ),
                {"mandate": mandate.id, "source": source, "made": made},
            )
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = await browser.get(f"/connections/{made}")
    assert page.text.count("data-held>1</td>") == 2
    assert "To keep them, do nothing" in page.text
    approve = f"/connections/{made}/approve?surface=outlook"
    assert f'action="{approve}"' in page.text
    sent = await browser.post(approve, data={"csrf_token": token_of(page)})
    after = await browser.get(sent.headers["location"])
    assert "What was held is being deleted here, too." in after.text
    assert "Held deletions: SharePoint" in after.text
    assert "Held deletions: Outlook mail" not in after.text


async def test_what_was_skipped_is_listed_with_its_reason_and_is_as_much_as_was_counted(
    sign_in: SignIn, db: Database, mandate: TestMandate, hostile: Seen
) -> None:
    """Left where it is by a rule, or downloaded and found to hold nothing to read."""
    made = await connection_of(db, mandate, auto_start=True)
    source = (await surfaces_of(db, mandate, made, "sharepoint"))["sharepoint"]
    values = {"mandate": mandate.id, "source": source, "made": made, "document": hostile.document_id}
    async with db.tenant_session(mandate.id) as session:
        await session.execute(
            text(
                "UPDATE document SET status = 'skipped', reason = 'media', user_id = :member, connection_id = :made, "
                "data_source_id = :source WHERE id = :document"
            ),
            values | {"member": mandate.users["member"]},
        )
        for item in (
            {"name": "film.mp4", "state": "handed", "reason": None, "document": hostile.document_id},
            {"name": "huge.iso", "state": "skipped", "reason": "too_large", "document": None},
            {"name": "waiting.txt", "state": "pending", "reason": None, "document": None},
        ):
            await session.execute(
                text(
                    "INSERT INTO remote_item (mandate_id, data_source_id, external_id, connection_id, source_kind, name, "
                    "container_id, state, reason, document_id, generation) VALUES (:mandate, :source, :name, :made, "
                    "'sharepoint_item', :name, 'drive', :state, :reason, :document, 1)"
                ),
                values | item,
            )
    browser = await sign_in(mandate.id, mandate.users["member"])
    page = (await browser.get(f"/connections/{made}")).text
    assert "data-skipped>2</td>" in page
    assert "film.mp4" not in page
    assert f"/connections/{made}?skipped=true#why" in page
    listed = (await browser.get(f"/connections/{made}?skipped=true")).text
    for said in (
        "film.mp4",
        "Its format cannot be read. (media)",
        "huge.iso",
        "It is larger than the policy allows.",
    ):
        assert said in listed
    assert "waiting.txt" not in listed
    told = await browser.get(f"/v1/connections/{made}/items?state=skipped")
    assert {one["name"] for one in told.json()["items"]} == {"film.mp4", "huge.iso"}


async def test_a_page_made_while_its_surfaces_appear_asks_about_the_estimate(
    sign_in: SignIn, db: Database, mandate: TestMandate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after the consent they may be registered between two looks at them."""
    made = await connection_of(db, mandate)
    look = connections_routes.connections.get_connection

    async def look_and_register(*arguments: Any) -> Any:
        found = await look(*arguments)
        await surfaces_of(db, mandate, made, "outlook")
        return found

    monkeypatch.setattr(connections_routes.connections, "get_connection", look_and_register)
    page = (await (await sign_in(mandate.id, mandate.users["member"])).get(f"/connections/{made}")).text
    assert f'action="/connections/{made}/start"' in page
    assert f'action="/connections/{made}/sync"' not in page
