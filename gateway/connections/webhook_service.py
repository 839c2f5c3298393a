"""What a vendor's notification leads to: at most the same delta job everybody else asks for, sooner.

A notification is a hint, never the truth. Its sender is believed when it shows the secret of the subscription it names;
which mandate that is stands in our own table. A replay does nothing, and an unknown or unproven one learns nothing.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors import registry
from connectors.kit.contract import Delivery, Notice, Watch
from gateway.connections import repository, webhook_repository
from gateway.connections.sync_service import hasten_sync
from gateway.connections.vault import Vault, watch_place
from gateway.db import Database, emit_on_commit, enter_tenant, new_id
from gateway.logs import emit


async def receive(
    db: Database, vault: Vault, authority: str, notices: Sequence[Notice], delivery: Delivery
) -> None:
    by_route: dict[str, list[Notice]] = {}
    for notice in notices:
        by_route.setdefault(notice.route, []).append(notice)
    for route, named in by_route.items():
        async with db.routing_session() as session:
            found = await webhook_repository.find_route(session, authority, route)
            if found is None:
                emit("webhook.rejected", authority=authority, reason="unknown")
                continue
            mandate_id, watch_id = found
            await enter_tenant(session, mandate_id)
            await _take(session, vault, authority, watch_id, named, delivery)


async def _take(
    session: AsyncSession,
    vault: Vault,
    authority: str,
    watch_id: UUID,
    notices: Sequence[Notice],
    delivery: Delivery,
) -> None:
    watch = await webhook_repository.find_watch(session, watch_id)
    if watch is None or watch.authority != authority:
        emit("webhook.rejected", authority=authority, reason="unknown")
        return
    mandate_id = session.info["mandate_id"]
    secret = vault.open(watch.sealed_secret, watch_place(mandate_id, watch.id)).decode()
    verify = registry.webhooks(authority).verify
    proven = [notice for notice in notices if verify(notice, secret, delivery)]
    if len(proven) < len(notices):
        emit("webhook.rejected", authority=authority, reason="unproven")
    # First of all the connection's lock: after a revocation nothing may be written for it, not even that this came.
    states = await repository.share_lock(session, [watch.connection_id])
    state = states.get(watch.connection_id)
    if not proven or state is None or state.state != "active":
        return
    fresh = [
        notice
        for notice in proven
        if notice.delivery_id is None
        or await webhook_repository.note_delivery(
            session, authority, notice.delivery_id, watch.data_source_id
        )
    ]
    kinds = {notice.kind for notice in fresh}
    if kinds & {"removed", "reauthorize"}:
        # The next sync finds it out of date and renews it, or makes it anew.
        await webhook_repository.expire_watch(session, watch.id)
    if fresh:
        await hasten_sync(session, watch.data_source_id, reason="webhook")
    emit_on_commit(
        session,
        "webhook.accepted",
        authority=authority,
        connectionId=str(watch.connection_id),
        part=watch.surface,
        notices=len(fresh),
        repeated=len(proven) - len(fresh),
    )


# -- the subscriptions themselves


def open_watch(vault: Vault, mandate_id: UUID, row: Row[Any]) -> Watch:
    return Watch(
        vendor_id=row.vendor_id,
        resource=row.resource,
        expires_at=row.expires_at,
        secret=vault.open(row.sealed_secret, watch_place(mandate_id, row.id)).decode(),
        details=row.details,
    )


async def known_watches(session: AsyncSession, vault: Vault, data_source_id: UUID) -> list[Watch]:
    """What a surface is told when it is asked to renew them."""
    rows = await webhook_repository.watches_of_source(session, data_source_id)
    return [open_watch(vault, session.info["mandate_id"], row) for row in rows]


async def keep_watches(
    session: AsyncSession, vault: Vault, authority: str, data_source_id: UUID, watches: Sequence[Watch]
) -> None:
    """The subscriptions that exist now, each with its secret sealed and its route; others are forgotten."""
    mandate_id = session.info["mandate_id"]
    known = {
        row.vendor_id: row.id for row in await webhook_repository.watches_of_source(session, data_source_id)
    }
    for watch in watches:
        watch_id = known.pop(watch.vendor_id, None) or new_id()
        await webhook_repository.save_watch(
            session,
            watch_id,
            authority=authority,
            data_source_id=data_source_id,
            vendor_id=watch.vendor_id,
            resource=watch.resource,
            sealed_secret=vault.seal(watch.secret.encode(), watch_place(mandate_id, watch_id)),
            details=watch.details,
            expires_at=watch.expires_at,
        )
    for watch_id in known.values():
        await webhook_repository.drop_watch(session, watch_id)
