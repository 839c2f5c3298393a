"""Consent: a browser is sent to the vendor, and what it brings back counts once, in time, and only for who began it.

Three things must meet at the callback: the state the vendor hands back, the cookie this browser was given when it left,
and a session of the user the connection belongs to. The state is kept as a hash and used up by one statement, before the
vendor is asked to redeem the code.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from connectors import registry
from connectors.kit.contract import Account, AuthRevoked, ConsentRefused, Throttled, Tokens, VendorUnavailable
from gateway.connections import oauth_repository, repository, service
from gateway.connections.schemas import Credential
from gateway.connections.tokens import Kept, seal_tokens
from gateway.connections.vault import Vault, flow_place
from gateway.connections.vendors import VendorAway, client_of, require_client
from gateway.db import Database
from gateway.errors import FieldsInvalid, InvalidRequest, NotAllowed, NotFound
from gateway.settings import Settings
from gateway.tenancy.principal import Principal, token_hash
from gateway.wire import API_PREFIX

STATE_SECONDS = 600  # long enough to find a password, short enough to be worth nothing later
VENDOR_SECONDS = 30


class ConsentInvalid(InvalidRequest):
    """The vendor's answer does not belong to a sign-in begun here."""

    code = "connection.consent_invalid"


_WHY = (
    "It is too old, was used before, or came from another browser or user than it was begun with. "
    "Open the connection and start again."
)


@dataclass(frozen=True)
class Departure:
    """Where the browser goes, and the cookie it must come back with."""

    url: str
    cookie_name: str
    cookie: str


def callback_url(base_url: str, authority: str) -> str:
    return f"{base_url.rstrip('/')}{cookie_path(authority)}/callback"


def cookie_path(authority: str) -> str:
    return f"{API_PREFIX}/oauth/{authority}"


def cookie_name(state: str) -> str:
    """One for every sign-in, so that two tabs do not undo each other."""
    return f"catchment_consent_{token_hash(state).hex()[:16]}"


class Consents:
    """Begins and finishes consents of one mandate's user."""

    def __init__(self, db: Database, vault: Vault, settings: Settings, principal: Principal) -> None:
        self._db, self._vault, self._settings = db, vault, settings
        self._mandate_id = principal.mandate_id
        if principal.via != "session" or principal.user_id is None:
            raise NotAllowed("Open this address in a browser in which you are signed in to the console.")
        self._user_id = principal.user_id

    async def begin(self, authority: str, connection_id: UUID, base_url: str) -> Departure:
        client = require_client(self._settings, authority)
        async with self._db.tenant_session(self._mandate_id) as session:
            row = await repository.find(session, connection_id)
        self._require_own(row, authority, connection_id)
        redirect_uri, state, cookie = callback_url(base_url, authority), _random(), _random()
        # Vendor libraries may look up addresses here.
        consent = await asyncio.to_thread(
            registry.authority(authority).begin,
            client,
            redirect_uri=redirect_uri,
            state=state,
            surfaces=list(row.surfaces) if row else [],
        )
        state_hash = token_hash(state)
        sealed = self._vault.seal_json(
            {"redirectUri": redirect_uri, "flow": dict(consent.flow)},
            flow_place(self._mandate_id, state_hash),
        )
        async with self._db.tenant_session(self._mandate_id) as session:
            await repository.share_lock(session, [connection_id])
            self._require_own(await repository.find(session, connection_id), authority, connection_id)
            await oauth_repository.add_state(
                session,
                state_hash=state_hash,
                authority=authority,
                connection_id=connection_id,
                user_id=self._user_id,
                browser_hash=token_hash(cookie),
                sealed_flow=sealed,
                seconds=STATE_SECONDS,
            )
        return Departure(consent.url, cookie_name(state), cookie)

    def _require_own(self, row: Row[Any] | None, authority: str, connection_id: UUID) -> None:
        if row is None or row.user_id != self._user_id or row.authority != authority:
            raise NotFound(f"You have no {authority} connection {connection_id}.")
        if row.state == "revoked":
            raise NotFound("The connection is revoked; connect again.")

    async def take(
        self, authority: str, state: str, cookie: str, base_url: str
    ) -> tuple[UUID, Mapping[str, Any]]:
        """Uses up the state: the connection and the flow it was begun with. Whatever follows, it never counts again."""
        state_hash = token_hash(state)
        async with self._db.tenant_session(self._mandate_id) as session:
            taken = await oauth_repository.take_state(
                session,
                state_hash=state_hash,
                authority=authority,
                user_id=self._user_id,
                browser_hash=token_hash(cookie),
            )
        if taken is None:
            raise ConsentInvalid(_WHY)
        kept = self._vault.open_json(taken.sealed_flow, flow_place(self._mandate_id, state_hash))
        if kept["redirectUri"] != callback_url(base_url, authority):
            raise ConsentInvalid("It came back to another address than it was begun with.")
        return taken.connection_id, kept["flow"]

    async def finish(
        self, authority: str, connection_id: UUID, flow: Mapping[str, Any], answer: Mapping[str, str]
    ) -> None:
        """Redeems the code. Raises what the vendor's authority raises."""
        client, vendor = require_client(self._settings, authority), registry.authority(authority)
        async with asyncio.timeout(VENDOR_SECONDS):
            tokens, account = await vendor.finish(client, flow=flow, answer=answer)
        granted = vendor.granted_surfaces(tokens.scopes)
        sealed = seal_tokens(self._vault, self._mandate_id, connection_id, Kept(tokens, datetime.now(UTC)))
        async with self._db.tenant_session(self._mandate_id) as session:
            await service.establish(
                session, connection_id, account, sealed, tokens.expires_at, granted=granted
            )


def _random() -> str:
    return secrets.token_urlsafe(32)


async def prove(settings: Settings, authority: str, credential: Credential) -> tuple[Tokens, Account]:
    """A credential that was handed in is believed when the vendor has answered with it."""
    client, vendor = client_of(settings, authority), registry.authority(authority)
    access, refresh = credential.access_token, credential.refresh_token
    tokens = Tokens(
        access_token=access.get_secret_value() if access else "",
        refresh_token=refresh.get_secret_value() if refresh else None,
        expires_at=credential.expires_at,
    )
    try:
        async with asyncio.timeout(VENDOR_SECONDS):
            if access is None:
                tokens = await vendor.refresh(client, tokens)
            return tokens, await vendor.account(client, tokens)
    except (AuthRevoked, ConsentRefused):
        raise FieldsInvalid("credential: the vendor does not accept it.") from None
    except (Throttled, VendorUnavailable, TimeoutError):
        raise VendorAway from None
