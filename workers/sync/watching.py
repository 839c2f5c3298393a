"""Push subscriptions at the vendors: made and renewed at the end of a round, by the one job a data source has.

A notification only makes the next sync earlier, so nothing here is worth failing a round for. Without a public address
there is nowhere to push to.
"""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from connectors.kit.contract import ConnectorError, Surface, Watch
from gateway.connections import webhook_repository as repository
from gateway.connections.vault import Vault, watch_place
from gateway.db import Database, new_id
from gateway.http import API_PREFIX
from gateway.logs import emit
from gateway.settings import Settings
from workers.sync.fence import fenced

LOOK_SECONDS = 3600.0
SOON = timedelta(hours=2)

# When this process last asked for a source's subscriptions; a restart asks once more, which is harmless.
_looked: dict[UUID, float] = {}


async def renew(
    db: Database,
    settings: Settings,
    mandate_id: UUID,
    job: Row[Any],
    source: Row[Any],
    surface: Surface,
    now: Any,
) -> None:
    if not settings.public_url or settings.secret_key is None:
        return
    vault = Vault.of(settings)
    async with db.tenant_session(mandate_id) as session:
        rows = await repository.watches_of_source(session, source.id)
    rested = time.monotonic() - _looked.get(source.id, -LOOK_SECONDS) < LOOK_SECONDS
    if rested and all(row.expires_at - now > SOON for row in rows):
        return
    _looked[source.id] = time.monotonic()
    known = [_watch(vault, mandate_id, row) for row in rows]
    url = f"{settings.public_url.rstrip('/')}{API_PREFIX}/webhooks/{source.authority}"
    try:
        wanted = await surface.watch(url, known)
    except ConnectorError as error:
        emit(
            "ingestion.connection.watch.failed",
            connectionId=str(source.connection_id),
            part=source.surface,
            error=type(error).__name__,
        )
        return
    ids = {row.vendor_id: row.id for row in rows}
    async with fenced(db, mandate_id, job) as (session, _):
        for watch in wanted:
            watch_id = ids.get(watch.vendor_id) or new_id()
            await repository.save_watch(
                session,
                watch_id,
                authority=source.authority,
                data_source_id=source.id,
                vendor_id=watch.vendor_id,
                resource=watch.resource,
                sealed_secret=vault.seal(watch.secret.encode(), watch_place(mandate_id, watch_id)),
                details=watch.details,
                expires_at=watch.expires_at,
            )
        for vendor_id, watch_id in ids.items():
            if vendor_id not in {watch.vendor_id for watch in wanted}:
                await repository.drop_watch(session, watch_id)


def _watch(vault: Vault, mandate_id: UUID, row: Row[Any]) -> Watch:
    return Watch(
        vendor_id=row.vendor_id,
        resource=row.resource,
        expires_at=row.expires_at,
        secret=vault.open(row.sealed_secret, watch_place(mandate_id, row.id)).decode(),
        details=row.details,
    )
