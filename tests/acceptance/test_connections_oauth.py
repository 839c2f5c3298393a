"""Consent, sealed tokens and revocation, shown on real processes against the Microsoft sandbox. Figures are printed.

`CATCHMENT_ACCEPTANCE=full` runs the same tests with the full numbers.
"""

import asyncio
import json
import os
import re
import time
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from redis.asyncio import Redis
from sqlalchemy import text

from connectors.sandbox import server
from connectors.sandbox.server import RunningSandbox
from gateway.connections import repository
from gateway.connections.tokens import open_tokens
from gateway.connections.vault import Vault
from gateway.corpus.blobs import BlobStore
from gateway.db import Database, new_id
from gateway.ingestion import facade
from gateway.settings import Settings
from tests.fixtures import preloaded
from tests.fixtures.corpus import Tenant, ask, make_tenant, rows_of
from tests.fixtures.processes import Door, House, until

FULL = os.environ.get("CATCHMENT_ACCEPTANCE") == "full"
REVOCATIONS = 100 if FULL else 6


@pytest.fixture
def sandbox():
    running = server.start("msft", seed="demo")
    yield running
    running.stop()


@pytest.fixture
async def house(database_urls, redis_url, tmp_path, sandbox):
    async with Redis.from_url(redis_url) as redis:
        await redis.flushdb()
    house = House(
        database_urls.runtime_url,
        redis_url,
        tmp_path,
        CATCHMENT_MSFT_CLIENT_ID=sandbox.client_id,
        CATCHMENT_MSFT_CLIENT_SECRET=sandbox.client_secret,
        CATCHMENT_MSFT_ENDPOINTS=json.dumps(sandbox.endpoints),
    )
    yield house
    house.stop()


class Browser:
    """A person with a session, who follows what a page asks for; every secret that passes by is remembered."""

    def __init__(self, door: Door, sandbox: RunningSandbox) -> None:
        self.door, self.sandbox = door, sandbox
        self.http = httpx.AsyncClient(verify=False, base_url=door.url, timeout=60)
        self.secrets: list[str] = [sandbox.client_secret]

    async def sign_in(self, key: str) -> None:
        async with self.door.client(key) as api:
            link = (await api.post("/v1/login-links", json={})).json()["url"]
        self.secrets.append(httpx.URL(link).params["token"])
        answer = await self.http.get(link)
        assert answer.status_code == 303

    async def leave(self, authorize_url: str) -> str:
        answer = await self.http.get(authorize_url)
        assert answer.status_code == 303, answer.text
        for cookie in self.http.cookies.jar:
            self.secrets.append(cookie.value or "")
        self.secrets.append(httpx.URL(answer.headers["location"]).params["state"])
        return answer.headers["location"]

    async def consent(self, url: str, decision: str = "accept") -> httpx.URL:
        """Clicks through the vendor's page; where it sends the browser back to."""
        async with httpx.AsyncClient(verify=False, timeout=60) as vendor:
            page = await vendor.get(url)
            user = re.search(r'name="user" value="([^"]+)"', page.text)
            assert user, page.text
            answer = await vendor.post(url, data={"user": user[1], "decision": decision})
        assert answer.status_code == 302, answer.text
        back = httpx.URL(answer.headers["location"])
        if "code" in back.params:
            self.secrets.append(back.params["code"])
        return back

    async def connect(self, key: str, **wanted: Any) -> UUID:
        async with self.door.client(key) as api:
            made = (await api.post("/v1/connections", json={"authority": "msft", **wanted})).json()
        back = await self.consent(await self.leave(made["authorizeUrl"]))
        answer = await self.http.get(back)
        assert answer.headers["location"].endswith("connected=1"), answer.headers["location"]
        return UUID(made["id"])


@pytest.fixture
async def browser(house, sandbox):
    door = await house.start_gateway()
    browser = Browser(door, sandbox)
    yield browser
    await browser.http.aclose()


async def status_of(browser: Browser, tenant: Tenant, connection_id: Any) -> dict[str, Any]:
    async with browser.door.client(tenant.key) as api:
        return (await api.get(f"/v1/connections/{connection_id}")).json()


def vault_of(house: House) -> Vault:
    return Vault(house.env["CATCHMENT_SECRET_KEY"])


async def kept_tokens(db: Database, house: House, tenant: Tenant, connection_id: UUID) -> list[str]:
    async with db.tenant_session(tenant.mandate_id) as session:
        row = await repository.find(session, connection_id)
    assert row is not None
    kept = open_tokens(vault_of(house), tenant.mandate_id, connection_id, row.sealed_tokens)
    return [kept.tokens.access_token, kept.tokens.refresh_token or kept.tokens.access_token]


async def test_the_matrix_at_the_sandbox(db, house, browser, sandbox):
    """What only the vendor can notice: a verifier or redirect that is not the one begun with, a code used before."""
    tenant = await make_tenant(db)
    await browser.sign_in(tenant.key)
    async with browser.door.client(tenant.key) as api:
        made = (await api.post("/v1/connections", json={"authority": "msft"})).json()
    accepted: list[str] = []

    async def attempt(name: str, back: httpx.URL) -> None:
        answer = await browser.http.get(back)
        assert answer.status_code in {303, 400}, name
        if answer.status_code == 303 and "connected" in answer.headers["location"]:
            accepted.append(name)

    declined = await browser.consent(await browser.leave(made["authorizeUrl"]), "decline")
    await attempt("declined", declined)
    # the code of one flow with the state of another: its verifier does not fit
    first, second = [await browser.consent(await browser.leave(made["authorizeUrl"])) for _ in range(2)]
    await attempt("wrong verifier", first.copy_set_param("code", second.params["code"]))
    await attempt("replayed state", first)
    # a code that was given out for another address
    asked = httpx.URL(await browser.leave(made["authorizeUrl"]))
    moved = await browser.consent(str(asked.copy_set_param("redirect_uri", f"{browser.door.url}/elsewhere")))
    await attempt("wrong redirect", moved.copy_with(path="/v1/oauth/msft/callback"))
    await attempt(
        "made-up code",
        (await browser.consent(await browser.leave(made["authorizeUrl"]))).copy_set_param("code", "x"),
    )
    assert accepted == []
    assert (await status_of(browser, tenant, made["id"]))["status"] == "pending"
    back = await browser.consent(await browser.leave(made["authorizeUrl"]))
    got = await asyncio.gather(*(browser.http.get(back) for _ in range(50)))
    assert sorted(one.status_code for one in got) == [303] + [400] * 49
    shown = await status_of(browser, tenant, made["id"])
    assert (shown["status"], bool(shown["accountEmail"])) == ("active", True)
    print("\nOAuth matrix: 5 attempts at the vendor, 0 accepted; 50 concurrent callbacks, 1 accepted")


async def everything_written(house: House, database_urls, redis_url: str) -> dict[str, str]:
    """All that is kept anywhere: logs, what the processes printed, Redis, every row of every table."""
    found = {"output": house.output()}
    for file in sorted((house.data_dir / "logs").glob("*")):
        found[file.name] = file.read_text(errors="replace")
    async with Redis.from_url(redis_url) as redis:
        dump: list[str] = []
        async for key in redis.scan_iter("*"):
            dump += [repr(key), repr(await redis.dump(key))]
        found["redis"] = "\n".join(dump)
    with psycopg.connect(database_urls.superuser_url) as connection:
        for (table,) in connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        ).fetchall():
            rows = connection.execute(f'SELECT t::text FROM "{table}" t').fetchall()  # type: ignore[arg-type]
            found[f"table {table}"] = "\n".join(row[0] for row in rows)
    return found


@pytest.mark.timeout(900)
async def test_no_token_code_or_secret_is_anywhere(db, house, browser, sandbox, database_urls, redis_url):
    tenant = await make_tenant(db)
    await browser.sign_in(tenant.key)
    house.start_worker()
    connection_id = await browser.connect(tenant.key, surfaces=["outlook"])
    secrets = await kept_tokens(db, house, tenant, connection_id)

    async def synced() -> bool:
        shown = await status_of(browser, tenant, connection_id)
        return bool(shown["sources"]) and all(s["lastSyncAt"] and s["indexed"] for s in shown["sources"])

    await until(synced, 180, f"the mailbox is indexed: {house.output()[-1500:]}")
    # trouble of every kind: a dead grant, a refused consent, a made-up callback, a bad credential
    again = await browser.consent(
        await browser.leave((await status_of(browser, tenant, connection_id))["authorizeUrl"])
    )
    await browser.http.get(again)
    secrets += await kept_tokens(db, house, tenant, connection_id)
    async with httpx.AsyncClient(verify=False) as control:
        await control.post(f"{sandbox.control_url}/revoke", json={})
    async with browser.door.client(tenant.key) as api:
        await api.post(f"/v1/connections/{connection_id}/sync", json={})
        bad = await api.post(
            "/v1/connections",
            json={"authority": "msft", "credential": {"refreshToken": "canary-handed-in-4711"}},
        )
        assert bad.status_code == 422, bad.text
        assert "canary" not in bad.text

    async def noticed() -> bool:
        return (await status_of(browser, tenant, connection_id))["status"] == "needs_reauth"

    await until(noticed, 120, f"the dead grant is noticed: {house.output()[-1500:]}")
    refused = await browser.http.get(
        "/v1/oauth/msft/callback", params={"state": "canary-state", "code": "canary-code"}
    )
    assert refused.status_code == 400
    looked_for = {*secrets, *browser.secrets, "canary-handed-in-4711", "canary-state", "canary-code"}
    looked_for |= {house.env["CATCHMENT_SECRET_KEY"], tenant.key}
    assert all(len(one) >= 11 for one in looked_for)
    written = await everything_written(house, database_urls, redis_url)
    # a CSRF token stands in its session's row: it is no credential without the cookie
    leaks = [(where, one[:12]) for where, content in written.items() for one in looked_for if one in content]
    assert leaks == []
    size = sum(map(len, written.values()))
    print(f"\n{len(looked_for)} secrets looked for in {size:,} characters of {len(written)} stores: 0 found")


@pytest.mark.timeout(1800)
async def test_revocations_while_somebody_writes(db, house, browser, tmp_path, monkeypatch):
    """A worker process indexes what a writer hands in; each connection is revoked over HTTP in the middle of it."""
    tenant = await make_tenant(db)
    house.start_worker()
    settings = Settings(data_dir=tmp_path, embedder="lookup:64")
    monkeypatch.setattr(facade, "get_settings", lambda: settings)
    blobs = BlobStore.of(settings)
    took: list[float] = []
    ids: list[UUID] = []
    for number in range(REVOCATIONS):
        connection_id = new_id()
        ids.append(connection_id)
        async with db.tenant_session(tenant.mandate_id) as session:
            await repository.add(session, connection_id, "msft", tenant.user_id)
        stopped = asyncio.Event()

        async def write(connection_id=connection_id, stopped=stopped, number=number) -> int:
            refused = 0
            for part in range(100_000):
                if stopped.is_set():
                    break
                wanted = ask(
                    tenant,
                    f"m-{part}",
                    f"Letter {number} {part}",
                    sourceKind="outlook_message",
                    connectionId=str(connection_id),
                )
                async with db.tenant_session(tenant.mandate_id) as session:
                    handle = await facade.request_ingestion(session, wanted, blobs=blobs)
                refused += handle.reason == "revoked"
            return refused

        async def begun(connection_id=connection_id) -> bool:
            sql = "SELECT count(*) AS n FROM document WHERE connection_id = :id"
            [row] = await rows_of(db, tenant, sql, id=connection_id)
            return row.n >= 5

        writer = asyncio.create_task(write())
        await until(begun, 60, "the writer has begun")
        at = time.monotonic()
        async with browser.door.client(tenant.key) as api:
            answer = await api.delete(f"/v1/connections/{connection_id}")
            receipt = answer.json()
            while receipt["status"] != "done":
                receipt = (await api.get(f"/v1/receipts/{receipt.get('receiptId') or receipt['id']}")).json()
        took.append(time.monotonic() - at)
        stopped.set()
        refused = await writer
        assert receipt["counts"]["document"] >= 5
        assert refused >= 0
    for table in ("document", "job", "remote_item", "data_source"):
        left = await rows_of(
            db, tenant, f"SELECT count(*) AS n FROM {table} WHERE connection_id = ANY(:ids)", ids=ids
        )
        assert left[0].n == 0, table
    chunks = await rows_of(db, tenant, "SELECT count(*) AS n FROM chunk")
    assert chunks[0].n == 0
    print(f"\n{REVOCATIONS} revocations against a writer: 0 rows left; slowest receipt {max(took):.1f} s")


@pytest.mark.timeout(900)
async def test_connections_on_the_command_line(db, house, browser):
    tenant = await make_tenant(db)
    await browser.sign_in(tenant.key)
    house.start_worker()
    connection_id = await browser.connect(tenant.key, surfaces=["outlook"])

    async def run(*words: str) -> str:
        where = {"CATCHMENT_URL": browser.door.url, "CATCHMENT_API_KEY": tenant.key}
        done = await asyncio.to_thread(
            preloaded.run, "connections", *words, timeout=300, **(house.env | where)
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def registered() -> bool:
        return bool((await status_of(browser, tenant, connection_id))["sources"])

    await until(registered, 60, "the surfaces are registered")
    synced = json.loads(await run("sync", str(connection_id), "--wait", "--json"))
    assert [one["surface"] for one in synced] == ["outlook"]
    assert synced[0]["indexed"] > 0
    listed = await run("list")
    assert str(connection_id) in listed
    assert "active" in listed
    receipt = json.loads(await run("revoke", str(connection_id), "--json"))
    assert receipt["counts"]["document"] == synced[0]["indexed"] + 1  # and the summary
    async with db.tenant_session(tenant.mandate_id) as session:
        assert not await session.scalar(text("SELECT count(*) FROM document"))
