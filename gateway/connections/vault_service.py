"""Changing the key of the house: every sealed value is opened with the key it names and sealed with the current one.

It runs beside everything else. Reads never wait, because both keys are known to every process while it runs; a value that
somebody renews meanwhile is newer, and theirs counts.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from gateway.connections import vault_repository as repository
from gateway.connections.vault import Place, Vault, flow_place, tokens_place, watch_place
from gateway.db import Database
from gateway.tenancy import repository as tenancy

BATCH = 200  # rows in one transaction: who writes for one of these connections waits that long

_PLACES: dict[str, Callable[[UUID, Any], Place]] = {
    "connection": tokens_place,
    "watch": watch_place,
    "oauth_state": flow_place,
}


async def rotate(db: Database, vault: Vault, progress: Callable[[int], None] = lambda _: None) -> int:
    """Re-seals what another key sealed, mandate by mandate; safe to run again, and at any time. How many it were."""
    async with db.routing_session() as session:
        mandates = await tenancy.all_mandate_ids(session)
    renewed = 0
    for mandate_id in mandates:
        for table in _PLACES:
            while rows := await _batch(db, vault, mandate_id, table):
                renewed += len(rows)
                progress(renewed)
    return renewed


async def _batch(db: Database, vault: Vault, mandate_id: UUID, table: str) -> list[Row[Any]]:
    async with db.tenant_session(mandate_id) as session:
        rows = await repository.sealed_with_others(session, table, vault.key_id, BATCH)
        renewed = [
            (row.name, row.sealed, vault.reseal(row.sealed, _PLACES[table](mandate_id, row.name)))
            for row in rows
        ]
        if renewed:
            await repository.swap_sealed(session, table, renewed)
    return rows
