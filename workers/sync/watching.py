"""Push subscriptions at the vendors: made and renewed at the end of a round, by the one job a data source has.

A notification only makes the next sync earlier, so nothing here is worth failing a round for. Without a public address
there is nowhere to push to.
"""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from connectors.kit.contract import ConnectorError, Surface
from gateway.connections.vault import Vault
from gateway.connections.webhook_service import keep_watches, known_watches
from gateway.db import Database
from gateway.logs import emit
from gateway.settings import Settings
from gateway.wire import API_PREFIX
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
    reached_at = settings.push_url or settings.public_url
    if not reached_at or settings.secret_key is None:
        return
    vault = Vault.of(settings)
    async with db.tenant_session(mandate_id) as session:
        known = await known_watches(session, vault, source.id)
    rested = time.monotonic() - _looked.get(source.id, -LOOK_SECONDS) < LOOK_SECONDS
    if rested and all(watch.expires_at - now > SOON for watch in known):
        return
    _looked[source.id] = time.monotonic()
    url = f"{reached_at.rstrip('/')}{API_PREFIX}/webhooks/{source.authority}"
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
    async with fenced(db, mandate_id, job) as (session, _):
        await keep_watches(session, vault, source.authority, source.id, wanted)
