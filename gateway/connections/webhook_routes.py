"""The door for vendors' notifications. Nobody there has a key of ours; each notification proves itself."""

from typing import cast

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from connectors import registry
from connectors.kit.contract import Delivery
from gateway.connections.vault import Vault
from gateway.connections.vendors import require_authority
from gateway.connections.webhook_service import receive
from gateway.errors import NotAuthenticated, TooLarge
from gateway.http import Db
from gateway.logs import emit
from gateway.wire import storable

router = APIRouter(tags=["connections"])

LARGEST_BODY = 1024 * 1024  # vendors send ids, not contents


@router.post("/webhooks/{authority}", status_code=202)
async def webhook(request: Request, db: Db, authority: str) -> Response:
    """Verified, deduplicated, and never more than a delta sync. What is unknown or unproven is answered alike."""
    require_authority(authority)
    delivery = Delivery(
        headers={name.lower(): value for name, value in request.headers.items()},
        query=dict(request.query_params),
        body=await _body(request),
    )
    handshake = registry.webhooks(authority).handshake(delivery)
    if handshake is not None:
        return PlainTextResponse(handshake)
    try:
        notices = registry.webhooks(authority).notices(delivery)
        storable([(notice.route, notice.delivery_id, notice.proof) for notice in notices])
    except (ValueError, RecursionError):  # strangers write here
        emit("webhook.rejected", authority=authority, reason="malformed")
        raise NotAuthenticated("That is no notification, and nothing else is taken here.") from None
    await receive(db, cast("Vault", request.app.state.vault), authority, notices, delivery)
    return Response(status_code=202)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise TooLarge(f"A notification may have {LARGEST_BODY} bytes.")
    return bytes(body)
