"""The life of a connection: pending, active, needs_reauth, revoked.

Consent and vendor calls happen at the edges (`oauth_service`, `tokens`); here is what they mean for the rows. Every function
works in its caller's transaction.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from connectors.kit.contract import Account
from connectors.kit.policy import SyncPolicy
from gateway.connections import oauth_repository, purge_repository, repository, webhook_repository
from gateway.connections.schemas import (
    ConnectionIn,
    ConnectionOut,
    ConnectionPatch,
    SourceOut,
    chosen_surfaces,
    effective_policy,
    stored_policy,
)
from gateway.connections.sync_service import Mode, enqueue_sync
from gateway.connections.waiting import is_granted, waits_for
from gateway.corpus.erasure import begin_erasure, enqueue_erasure
from gateway.db import emit_on_commit, new_id
from gateway.errors import Conflict, FieldsInvalid, NotAllowed, NotFound, fields_invalid
from gateway.ingestion import repository as ingestion
from gateway.ingestion.events import record_event
from gateway.ingestion.facade import request_ingestion
from gateway.ingestion.schemas import IngestionRequest, TextContent
from gateway.tenancy import repository as tenancy
from gateway.tenancy.principal import Principal
from gateway.tenancy.schemas import Policy
from gateway.wire import API_PREFIX, merge

DELIVERIES_SECONDS = 3 * 24 * 3600.0  # vendors repeat a notification for hours
VENDOR_NAMES = {"msft": "Microsoft", "google": "Google", "clickup": "ClickUp"}


class OtherAccount(Conflict):
    """Consent came from another account."""

    code = "connection.other_account"


# -- making one


async def create(session: AsyncSession, wanted: ConnectionIn, principal: Principal) -> Row[Any]:
    """A pending connection: nothing flows before its user has given consent."""
    user_id = await _owner(session, wanted.user_id, principal)
    try:
        surfaces = wanted.chosen_surfaces()
    except ValueError as error:
        raise FieldsInvalid(f"surfaces: {error}.") from None
    connection_id = new_id()
    await repository.add(
        session,
        connection_id,
        wanted.authority,
        user_id,
        "pending",
        surfaces=surfaces,
        policy=stored_policy(wanted.policy),
        auto_start=wanted.auto_start,
    )
    return await _known(session, connection_id)


async def _owner(session: AsyncSession, wanted: UUID | None, principal: Principal) -> UUID:
    if wanted is not None and wanted != principal.user_id:
        if not (principal.is_admin or principal.service):
            raise NotAllowed("Only an admin or a service may connect an account for somebody else.")
        if await tenancy.member_role(session, wanted) is None:
            raise NotFound(f"{wanted} is no member here.")
        return wanted
    if principal.user_id is None:
        raise FieldsInvalid("userId: a service must say whose connection it is.")
    return principal.user_id


async def establish(
    session: AsyncSession,
    connection_id: UUID,
    account: Account,
    sealed: bytes,
    expires_at: Any,
    *,
    granted: Collection[str],
    registered_by: str | None = None,
) -> None:
    """Consent was given: tokens are kept, and what follows is for the consumer of events. `granted` are the surfaces they
    open. `registered_by` is a service that brought a credential; from then on it may look after the connection.
    """
    row = await repository.lock(session, connection_id)
    if row is None or row.state == "revoked":
        raise NotFound("The connection was removed while consent was given; connect again.")
    if row.account and row.account.get("id") != account.id:
        raise OtherAccount(
            "This is not the account that was connected before; sign in with that one, or connect the other as a new one."
        )
    kept: dict[str, Any] = {"id": account.id, "name": account.name, "email": account.email}
    kept["granted"] = list(granted)
    if registered_by := registered_by or row.account.get("registeredBy"):
        kept["registeredBy"] = registered_by
    await repository.establish(session, connection_id, sealed, expires_at, kept)
    await repository.cancel_grace(session, connection_id)
    await record_event(session, "ConnectionEstablished", {"connectionId": str(connection_id)})
    emit_on_commit(
        session,
        "ingestion.connection.established",
        connectionId=str(connection_id),
        authority=row.authority,
        mandateId=str(session.info["mandate_id"]),
        userId=str(row.user_id),
    )


async def welcome(session: AsyncSession, connection_id: UUID) -> None:
    """What `ConnectionEstablished` means: registry rows, a summary to be found by, and a sync for every surface."""
    await repository.share_lock(session, [connection_id])
    row = await repository.find(session, connection_id)
    if row is None or row.state != "active":
        raise NotFound("there is no active connection of this id")
    sources = await _register(session, row, row.surfaces)
    await request_ingestion(session, _summary(row, _scope(row.policy)))
    started = False
    for source in sources:
        if source.phase == "new" and not row.auto_start:
            continue
        mode = "bootstrap" if source.phase == "new" else "delta"
        started |= await enqueue_sync(session, source.id, mode=mode, reason="established") is not None
    if not started:
        emit_on_commit(
            session,
            "ingestion.connection.bootstrap.skipped",
            connectionId=str(connection_id),
            authority=row.authority,
            reason=_why_nothing_started(row),
        )


def _why_nothing_started(row: Row[Any]) -> str:
    if row.paused:
        return "paused"
    granted = any(is_granted(row.account, surface) for surface in row.surfaces)
    return "waits for the estimate to be accepted" if granted else "nothing was allowed"


async def ensure_sources(session: AsyncSession, row: Row[Any]) -> None:
    """Who asks about a connection may be faster than the event that welcomes it."""
    await repository.share_lock(session, [row.id])
    await _register(session, row, row.surfaces)


async def _register(session: AsyncSession, row: Row[Any], surfaces: Collection[str]) -> list[Row[Any]]:
    scope = _scope(row.policy)
    return await repository.add_sources(
        session,
        [
            {
                "id": new_id(),
                "connection_id": row.id,
                "user_id": row.user_id,
                "surface": surface,
                "adapter_kind": f"{row.authority}.{surface}",
                "external_root": "",
                "feature_code": "connections",
                "scope": scope,
            }
            for surface in surfaces
        ],
    )


def _scope(policy: dict[str, Any]) -> str:
    return "mandate" if SyncPolicy.model_validate(policy).share_into_mandate else "personal"


def _summary(row: Row[Any], scope: str) -> IngestionRequest:
    """Short, and nothing secret: so that "which mailbox is connected?" finds an answer."""
    vendor = VENDOR_NAMES.get(row.authority, row.authority)
    who = row.account.get("name") or row.account.get("email") or row.account.get("id", "")
    address = row.account.get("email", "")
    text = (
        f"{vendor} account of {who}{f' ({address})' if address and address != who else ''} is connected.\n"
        f"Indexed from it: {', '.join(surface.replace('_', ' ') for surface in row.surfaces)}."
    )
    return IngestionRequest.model_validate(
        {
            "source_kind": "connection_summary",
            "source_id": f"connection:{row.id}",
            "content": TextContent(text=text),
            "title": f"{vendor} connection: {who}"[:2000],
            "type": "reference",
            "scope": scope,
            "user_id": row.user_id,
            "connection_id": row.id,
        }
    )


# -- looking


async def visible(session: AsyncSession, connection_id: UUID, principal: Principal) -> Row[Any]:
    """One's own, for a service those it registered; for admins all. Somebody else's is not there."""
    row = await repository.find(session, connection_id)
    if row is None or not (principal.is_admin or _is_own(row, principal)):
        raise NotFound(f"There is no connection {connection_id} here.")
    return row


def _is_own(row: Row[Any], principal: Principal) -> bool:
    if principal.user_id is None:
        return row.account.get("registeredBy") == principal.name
    return row.user_id == principal.user_id


async def _known(session: AsyncSession, connection_id: UUID) -> Row[Any]:
    row = await repository.find(session, connection_id)
    if row is None:
        raise NotFound(f"There is no connection {connection_id} here.")
    return row


async def shown(session: AsyncSession, rows: Collection[Row[Any]], base_url: str) -> list[ConnectionOut]:
    sources: dict[UUID, list[SourceOut]] = {}
    connections = {row.id: row for row in rows}
    for source in await repository.sources_of(session, list(connections)):
        sources.setdefault(source.connection_id, []).append(
            _source_out(source, connections[source.connection_id])
        )
    ended = [row.id for row in rows if row.state == "revoked"]
    receipts = await repository.last_receipts(session, ended) if ended else {}
    return [connection_out(row, sources.get(row.id, []), receipts.get(row.id), base_url) for row in rows]


def _source_out(source: Row[Any], connection: Row[Any]) -> SourceOut:
    names = ("id", "surface", "phase", "items", "indexed", "failures", "last_sync_at", "last_error")
    waits = waits_for(source, account=connection.account, auto_start=connection.auto_start)
    return SourceOut(
        held=source.held is not None,
        waits_for=waits if connection.state == "active" else None,
        waits_until=source.waits_until if waits == "vendor" else None,
        **{name: getattr(source, name) for name in names},
    )


def connection_out(
    row: Row[Any], sources: list[SourceOut], receipt_id: UUID | None, base_url: str
) -> ConnectionOut:
    return ConnectionOut(
        receipt_id=receipt_id,
        status=row.state,
        account_name=row.account.get("name") or None,
        account_email=row.account.get("email") or None,
        not_granted=[name for name in row.surfaces if not is_granted(row.account, name)],
        sources=sources,
        authorize_url=None if row.state == "revoked" else authorize_url(row, base_url),
        **{
            name: getattr(row, name)
            for name in (
                *("id", "authority", "paused", "user_id", "surfaces", "policy", "auto_start", "reason"),
                *("created_at", "established_at", "reauth_since", "revoked_at", "purged_at"),
            )
        },
    )


def authorize_url(row: Row[Any], base_url: str) -> str:
    return f"{base_url.rstrip('/')}{API_PREFIX}/oauth/{row.authority}/start?connection={row.id}"


async def policy_of(session: AsyncSession, row: Row[Any]) -> SyncPolicy:
    """What applies to a connection now."""
    mandate = Policy.model_validate(await ingestion.mandate_policy(session))
    return effective_policy(row.policy, mandate)


# -- changing


async def change(
    session: AsyncSession, connection_id: UUID, patch: ConnectionPatch, principal: Principal
) -> Row[Any]:
    await visible(session, connection_id, principal)
    row = await repository.lock(session, connection_id)
    if row is None or row.state == "revoked":
        raise Conflict("The connection is revoked; connect again instead.")
    try:
        policy = SyncPolicy.model_validate(
            merge(row.policy, patch.policy or {}), by_alias=True, by_name=False
        )
        surfaces = chosen_surfaces(row.authority, patch.surfaces) if patch.surfaces else list(row.surfaces)
    except ValidationError as error:
        raise fields_invalid(error.errors()) from None
    except ValueError as error:
        raise FieldsInvalid(f"surfaces: {error}.") from None
    await repository.change(session, connection_id, surfaces, stored_policy(policy))
    changed = await _known(session, connection_id)
    if _scope(row.policy) != _scope(changed.policy):
        await repository.set_scope(session, connection_id, _scope(changed.policy))
    if row.state == "active" and (row.surfaces, row.policy) != (changed.surfaces, changed.policy):
        if row.surfaces != changed.surfaces:
            await request_ingestion(session, _summary(changed, _scope(changed.policy)))
        lists_anew = SyncPolicy.model_validate(row.policy).fingerprint() != policy.fingerprint()
        await _change_surfaces(session, changed, "bootstrap" if lists_anew else "delta")
    return changed


async def _change_surfaces(session: AsyncSession, row: Row[Any], mode: Mode) -> None:
    """A surface that is no longer wanted goes with all it brought; a new one begins; the others look again."""
    for source in await repository.sources_of(session, [row.id]):
        if source.surface not in row.surfaces:
            await purge_repository.drop_source(session, source.id)
            receipt_id = await begin_erasure(session, "source", str(source.id), "surface removed")
            await enqueue_erasure(session, receipt_id)
    for source in await _register(session, row, row.surfaces):
        if source.phase != "new":
            await enqueue_sync(session, source.id, mode=mode, reason="policy changed")
        elif row.auto_start:
            await enqueue_sync(session, source.id, mode="bootstrap", reason="surface added")


async def pause(
    session: AsyncSession, connection_id: UUID, principal: Principal, *, paused: bool
) -> Row[Any]:
    """Nothing is fetched while it is paused; what is there stays searchable."""
    await visible(session, connection_id, principal)
    row = await repository.lock(session, connection_id)
    if row is None or row.state == "revoked":
        raise Conflict("The connection is revoked; connect again instead.")
    await repository.set_paused(session, connection_id, paused=paused)
    if row.paused and not paused:
        for source in await repository.sources_of(session, [connection_id]):
            if source.phase != "new" or row.auto_start:
                await enqueue_sync(session, source.id, mode="delta", reason="resumed")
    return await _known(session, connection_id)


# -- ending


async def need_reauth(session: AsyncSession, connection_id: UUID, reason: str) -> bool:
    """The vendor no longer knows the grant. Content is withheld from this commit on, and purged after the days of grace
    unless the user gives consent again. False if the connection was not active.
    """
    row = await repository.need_reauth(session, connection_id, reason)
    if row is None:
        return False
    policy = Policy.model_validate(await ingestion.mandate_policy(session))
    await repository.schedule_grace(session, new_id(), connection_id, row.generation, policy.grace_days)
    if policy.grace_days == 0:
        await ingestion.ring_on_commit(session, [{"id": new_id(), "topic": "bell", "lane": "interactive"}])
    emit_on_commit(
        session,
        "ingestion.connection.reauth.needed",
        connectionId=str(connection_id),
        authority=row.authority,
        reason=reason,
    )
    return True


async def revoke(session: AsyncSession, row: Row[Any], reason: str) -> UUID:
    """Closes the fence and says what happened; the consumer has everything erased. The receipt's id comes back."""
    known = await repository.last_receipts(session, [row.id]) if row.state == "revoked" else {}
    if row.id in known:
        return known[row.id]
    receipt_id = await begin_erasure(session, "connection", str(row.id), f"{reason}:{row.authority}")
    payload = {"connectionId": str(row.id), "authority": row.authority, "reason": reason}
    await record_event(session, "ConnectionRevoked", payload)
    return receipt_id


async def tidy(session: AsyncSession) -> None:
    """Sign-ins nobody came back from, notifications nobody repeats any more, and what a legal hold kept from its end."""
    await oauth_repository.forget_expired(session)
    await webhook_repository.forget_deliveries(session, DELIVERIES_SECONDS)
    if Policy.model_validate(await ingestion.mandate_policy(session)).legal_hold:
        return
    for row in await repository.left_behind(session):
        await begin_erasure(session, "connection", str(row.id), f"hold lifted:{row.authority}")
        payload = {"connectionId": str(row.id), "reason": "hold lifted"}
        await record_event(session, "ConnectionRevoked", payload)
