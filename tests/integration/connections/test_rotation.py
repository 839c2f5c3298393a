"""The key of the house is changed while everybody reads: not one read fails."""

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from connectors.kit.contract import Tokens
from gateway.connections import repository
from gateway.connections.tokens import Kept, open_tokens, seal_tokens
from gateway.connections.vault import SealBroken, Vault
from gateway.connections.vault_service import rotate
from gateway.db import new_id
from tests.fixtures import preloaded
from tests.integration.connections.conftest import SECRET_KEY

ROWS = 10_000
NEW_KEY = "the key of tomorrow, of many characters"


async def fill(db, vault, mandate, count):
    kept = Kept(Tokens(access_token="canary-access", refresh_token="canary-refresh"), datetime.now(UTC))
    ids = [new_id() for _ in range(count)]
    sealed = [seal_tokens(vault, mandate.id, one, kept) for one in ids]
    async with db.tenant_session(mandate.id) as session:
        await session.execute(
            text(
                "INSERT INTO connection (mandate_id, id, authority, user_id, state, sealed_tokens) "
                "SELECT :mandate, id, 'msft', :user, 'active', sealed "
                "FROM unnest(CAST(:ids AS uuid[]), CAST(:sealed AS bytea[])) AS t(id, sealed)"
            ),
            {"mandate": mandate.id, "user": mandate.users["member"], "ids": ids, "sealed": sealed},
        )
    return ids


async def test_ten_thousand_rows_under_load_without_a_failed_read(db, mandate, other_mandate):
    old, both, new = Vault(SECRET_KEY), Vault(NEW_KEY, [SECRET_KEY]), Vault(NEW_KEY)
    ids = await fill(db, old, mandate, ROWS)
    [elsewhere] = await fill(db, old, other_mandate, 1)
    rotated = asyncio.create_task(rotate(db, both))
    reads = 0

    async def read(offset: int) -> None:
        nonlocal reads
        while not rotated.done():
            connection_id = ids[(reads * 37 + offset) % len(ids)]
            async with db.tenant_session(mandate.id) as session:
                await repository.share_lock(session, [connection_id])
                row = await repository.find(session, connection_id)
            assert row is not None
            assert (
                open_tokens(both, mandate.id, connection_id, row.sealed_tokens).tokens.access_token
                == "canary-access"
            )
            reads += 1

    await asyncio.gather(*(read(offset) for offset in range(4)))
    assert await rotated == ROWS + 1
    assert reads > 100
    async with db.tenant_session(mandate.id) as session:
        found = list(await session.execute(text("SELECT id, sealed_tokens FROM connection")))
    for row in found:
        open_tokens(new, mandate.id, row.id, row.sealed_tokens)
        with pytest.raises(SealBroken):
            open_tokens(old, mandate.id, row.id, row.sealed_tokens)
    async with db.tenant_session(other_mandate.id) as session:
        row = await repository.find(session, elsewhere)
    assert row is not None
    open_tokens(new, other_mandate.id, elsewhere, row.sealed_tokens)
    assert await rotate(db, both) == 0


@pytest.mark.parametrize("kept", [False, True], ids=["in the environment", "in the data folder"])
async def test_the_command_rotates(scratch, tmp_path, kept):
    from gateway.db import Database
    from tests.fixtures.tenants import make_mandate

    db = Database(scratch.runtime_url, pool_size=2)
    try:
        mandate = await make_mandate(db)
        [connection_id] = await fill(db, Vault(SECRET_KEY), mandate, 1)
        where = {
            "CATCHMENT_DATABASE_URL": scratch.runtime_url,
            "CATCHMENT_SECRET_KEY": "" if kept else NEW_KEY,
            "CATCHMENT_PREVIOUS_SECRET_KEYS": SECRET_KEY,
            "CATCHMENT_DATA_DIR": str(tmp_path),
        }
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "secret_key").write_text(NEW_KEY if kept else "a key that is not used here")
        options = ("secrets", "rotate", "--data-dir", str(tmp_path))
        done = await asyncio.to_thread(preloaded.run, *options, **where)
        assert done.returncode == 0, done.stderr
        assert "1 values are sealed with the current key now." in done.stdout
        async with db.tenant_session(mandate.id) as session:
            row = await repository.find(session, connection_id)
        assert row is not None
        open_tokens(Vault(NEW_KEY), mandate.id, connection_id, row.sealed_tokens)
    finally:
        await db.dispose()


async def test_a_ciphertext_moved_to_another_row_or_mandate_does_not_open(db, mandate, other_mandate):
    vault = Vault(SECRET_KEY)
    first, second = await fill(db, vault, mandate, 2)
    [foreign] = await fill(db, vault, other_mandate, 1)
    async with db.tenant_session(mandate.id) as session:
        row = await repository.find(session, first)
    assert row is not None
    open_tokens(vault, mandate.id, first, row.sealed_tokens)
    for mandate_id, connection_id in (
        (mandate.id, second),
        (other_mandate.id, foreign),
        (other_mandate.id, first),
    ):
        with pytest.raises(SealBroken):
            open_tokens(vault, mandate_id, connection_id, row.sealed_tokens)
