"""Tokens are renewed once per expiry, survive races and crashes, and a dead grant is noticed once."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from connectors.kit.contract import AuthRevoked, Throttled, Tokens
from gateway.connections import repository
from gateway.connections import tokens as tokens_module
from gateway.connections.tokens import Kept, VaultTokens, seal_tokens
from gateway.connections.vault import Vault
from gateway.db import Database, new_id
from tests.fixtures.processes import REPOSITORY
from tests.fixtures.tenants import TestMandate
from tests.integration.connections.conftest import SECRET_KEY
from tests.integration.connections.refresher import BEGINNING, expiry
from tests.integration.connections.vendor import Vendor


async def keep(db: Database, vault: Vault, mandate: TestMandate, kept: Kept) -> Any:
    connection_id = new_id()
    async with db.tenant_session(mandate.id) as session:
        await repository.add(session, connection_id, "msft", mandate.users["member"], "pending")
        sealed = seal_tokens(vault, mandate.id, connection_id, kept)
        await repository.establish(session, connection_id, sealed, kept.tokens.expires_at, {"id": "a"})
    return connection_id


async def state_of(db: Database, mandate: TestMandate) -> str:
    async with db.tenant_session(mandate.id) as session:
        return str(await session.scalar(text("SELECT state FROM connection")))


class Server:
    """A token endpoint: refresh token n counts once and leads to n + 1."""

    def __init__(self) -> None:
        self.calls = self.current = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        given = (await reader.readexactly(length)).decode()
        self.calls += 1
        if given == f"refresh-{self.current}":
            self.current += 1
            body, status = f"refresh-{self.current}", "200 OK"
        else:
            body, status = "invalid_grant", "400 Bad Request"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
        )
        await writer.drain()
        writer.close()


@pytest.fixture
async def endpoint() -> AsyncIterator[tuple[Server, str]]:
    made = Server()
    listening = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        yield made, f"http://127.0.0.1:{port}/token"


async def run_refreshers(database_urls, mandate, connection_id, url, *, processes, tasks, expiries, **env):
    wanted = {
        "endpoint": url,
        "secretKey": SECRET_KEY,
        "databaseUrl": database_urls.runtime_url,
        "mandateId": str(mandate.id),
        "connectionId": str(connection_id),
        "tasks": tasks,
        "expiries": expiries,
    }
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.connections.refresher",
            cwd=REPOSITORY,
            env={"PATH": os.environ["PATH"], "REFRESHER": json.dumps(wanted), **env},
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(processes)
    ]
    outputs = await asyncio.gather(*(process.communicate() for process in running))
    return [
        (process.returncode, json.loads(out.splitlines()[-1]) if out else None)
        for process, (out, _) in zip(running, outputs, strict=True)
    ]


FIRST = Kept(
    Tokens(access_token="access-0", refresh_token="refresh-0", expires_at=expiry(0)), obtained_at=BEGINNING
)


async def test_two_processes_of_twenty_tasks_renew_once_per_expiry(
    db, database_urls, vault, mandate, endpoint
):
    server, url = endpoint
    connection_id = await keep(db, vault, mandate, FIRST)
    ends = await run_refreshers(
        database_urls, mandate, connection_id, url, processes=2, tasks=20, expiries=50
    )
    assert ends == [(0, [50] * 20)] * 2
    assert server.calls == 50
    assert await state_of(db, mandate) == "active"


async def test_without_the_second_look_they_would_renew_again_and_again(
    db, vault, settings, mandate, vendor: Vendor, monkeypatch
):
    """Shows that the lock and the look after it are what the test above sees: without the lock two ask at once."""

    async def no_lock(session, connection_id):
        return None

    for patched, calls in ((False, 1), (True, 2)):
        kept = Kept(vendor.issue("ada"), datetime.now(UTC) - timedelta(hours=1))
        connection_id = await keep(db, vault, mandate, kept)
        vendor.refreshes = 0
        asked = asyncio.Event()
        refresh = Vendor.refresh

        async def slow(self, client, tokens, asked=asked, refresh=refresh):
            first = not asked.is_set()
            asked.set()
            if first:
                # gives the other one every chance to ask as well
                for _ in range(200):
                    await asyncio.sleep(0.005)  # there is nothing to wait on: it must not happen
                    if self.refreshes:
                        break
            return await refresh(self, client, tokens)

        with monkeypatch.context() as patch:
            patch.setattr(Vendor, "refresh", slow)
            if patched:
                patch.setattr(repository, "lock_tokens", no_lock)
            stale = kept.tokens.access_token
            # as if in two processes: each with a turn of its own
            one = VaultTokens(db, vault, settings, mandate.id, connection_id)
            first = asyncio.create_task(one.renew(stale))
            await asked.wait()
            tokens_module._turns.clear()
            other = VaultTokens(db, vault, settings, mandate.id, connection_id)
            second = asyncio.create_task(other.renew(stale))
            await asyncio.gather(first, second, return_exceptions=True)
        assert vendor.refreshes == calls


async def test_a_crash_after_the_vendor_rotated_ends_in_needs_reauth_within_a_cycle(
    db, database_urls, vault, mandate, endpoint
):
    server, url = endpoint
    connection_id = await keep(db, vault, mandate, FIRST)
    [(code, _)] = await run_refreshers(
        database_urls,
        mandate,
        connection_id,
        url,
        processes=1,
        tasks=1,
        expiries=1,
        CATCHMENT_CRASH_POINTS="token.after_rotation",
    )
    assert code == -signal.SIGKILL
    assert (server.calls, await state_of(db, mandate)) == (1, "active")
    [(code, ends)] = await run_refreshers(
        database_urls, mandate, connection_id, url, processes=1, tasks=3, expiries=1
    )
    assert (code, ends) == (0, ["AuthRevoked"] * 3)
    # this vendor knows no mercy: what we still have is used up. The user is asked, once.
    assert (server.calls, await state_of(db, mandate)) == (2, "needs_reauth")


async def test_a_crash_at_a_merciful_vendor_ends_in_working_tokens(
    db, database_urls, vault, mandate, endpoint
):
    server, url = endpoint
    connection_id = await keep(db, vault, mandate, FIRST)
    crash = {"CATCHMENT_CRASH_POINTS": "token.after_rotation"}
    await run_refreshers(
        database_urls, mandate, connection_id, url, processes=1, tasks=1, expiries=1, **crash
    )
    server.current = 0  # the old one still counts, as Microsoft's do
    [(code, ends)] = await run_refreshers(
        database_urls, mandate, connection_id, url, processes=1, tasks=3, expiries=1
    )
    assert (code, ends) == (0, [1, 1, 1])
    assert await state_of(db, mandate) == "active"


async def test_a_token_is_renewed_a_few_minutes_early(db, vault, settings, mandate, vendor: Vendor):
    obtained = datetime.now(UTC)
    kept = Kept(vendor.issue("ada"), obtained)
    connection_id = await keep(db, vault, mandate, kept)
    assert kept.tokens.expires_at is not None
    for before_end, fresh in ((301, True), (299, False)):
        now = kept.tokens.expires_at - timedelta(seconds=before_end)
        source = VaultTokens(db, vault, settings, mandate.id, connection_id, clock=lambda now=now: now)
        assert (await source.token() == kept.tokens.access_token) == fresh
    # a short life is not all early
    short = Kept(Tokens(access_token="a", expires_at=obtained + timedelta(seconds=60)), obtained_at=obtained)
    assert short.is_fresh(obtained + timedelta(seconds=47))
    assert not short.is_fresh(obtained + timedelta(seconds=49))
    assert Kept(Tokens(access_token="for ever")).is_fresh(obtained)


async def test_a_refused_token_is_renewed_unless_somebody_did(db, vault, settings, mandate, vendor: Vendor):
    kept = Kept(vendor.issue("ada"), datetime.now(UTC))
    connection_id = await keep(db, vault, mandate, kept)
    one = VaultTokens(db, vault, settings, mandate.id, connection_id)
    other = VaultTokens(db, vault, settings, mandate.id, connection_id)
    stale = await one.token()
    renewed = await one.renew(stale)
    assert (renewed != stale, await other.renew(stale)) == (True, renewed)
    assert vendor.refreshes == 1


async def test_a_dead_grant_needs_its_user_and_trouble_does_not(db, vault, settings, mandate, vendor: Vendor):
    kept = Kept(vendor.issue("ada"), datetime.now(UTC))
    connection_id = await keep(db, vault, mandate, kept)
    source = VaultTokens(db, vault, settings, mandate.id, connection_id)
    vendor.answers["refresh"] = Throttled(3)
    with pytest.raises(Throttled):
        await source.renew(kept.tokens.access_token)
    assert await state_of(db, mandate) == "active"
    vendor.answers.clear()
    vendor.grants.clear()
    with pytest.raises(AuthRevoked):
        await source.renew(kept.tokens.access_token)
    assert await state_of(db, mandate) == "needs_reauth"
    asked = vendor.refreshes
    with pytest.raises(AuthRevoked):
        await source.renew(kept.tokens.access_token)
    assert vendor.refreshes == asked, "nobody asks for a dead grant again"


async def test_a_token_without_refresh_that_is_refused_is_dead(db, vault, settings, mandate, vendor: Vendor):
    connection_id = await keep(db, vault, mandate, Kept(Tokens(access_token="personal")))
    source = VaultTokens(db, vault, settings, mandate.id, connection_id)
    assert await source.token() == "personal"
    with pytest.raises(AuthRevoked):
        await source.renew("personal")
    assert (vendor.refreshes, await state_of(db, mandate)) == (0, "needs_reauth")


async def test_consent_given_while_the_vendor_refuses_the_old_grant_wins(
    db, vault, settings, mandate, vendor: Vendor, monkeypatch
):
    kept = Kept(vendor.issue("ada"), datetime.now(UTC))
    connection_id = await keep(db, vault, mandate, kept)
    renewed = vendor.issue("ada")
    sealed = seal_tokens(vault, mandate.id, connection_id, Kept(renewed, datetime.now(UTC)))

    async def refuse(client, tokens):
        async with db.tenant_session(mandate.id) as session:
            await repository.establish(session, connection_id, sealed, renewed.expires_at, {"id": "a"})
        raise AuthRevoked("invalid_grant")

    monkeypatch.setattr(vendor, "refresh", refuse)
    source = VaultTokens(db, vault, settings, mandate.id, connection_id)
    assert await source.renew(kept.tokens.access_token) == renewed.access_token
    assert await state_of(db, mandate) == "active"


async def test_tokens_that_came_after_a_revocation_are_given_back(
    db, vault, settings, mandate, vendor: Vendor, monkeypatch
):
    kept = Kept(vendor.issue("ada"), datetime.now(UTC))
    connection_id = await keep(db, vault, mandate, kept)
    late = vendor.issue("ada")

    async def answer_late(client, tokens):
        async with db.tenant_session(mandate.id) as session:
            await repository.revoke(session, connection_id)
        return late

    monkeypatch.setattr(vendor, "refresh", answer_late)
    with pytest.raises(AuthRevoked):
        await VaultTokens(db, vault, settings, mandate.id, connection_id).renew(kept.tokens.access_token)
    assert vendor.taken_back == [late.refresh_token]
    async with db.tenant_session(mandate.id) as session:
        row = await repository.find(session, connection_id)
    assert row is not None
    assert row.sealed_tokens != late
