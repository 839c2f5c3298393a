"""The two addresses of a consent: where a browser leaves for the vendor, and where it comes back to."""

from typing import Annotated, Literal, cast
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from connectors.kit.contract import ConnectorError, ConsentRefused
from gateway.connections.oauth_service import (
    STATE_SECONDS,
    ConsentInvalid,
    Consents,
    cookie_name,
    cookie_path,
)
from gateway.connections.service import OtherAccount
from gateway.connections.vault import Vault
from gateway.connections.vendors import require_authority
from gateway.http import Db, base_url
from gateway.logs import emit
from gateway.settings import Settings
from gateway.tenancy.access import Principal, Writer

router = APIRouter(tags=["connections"])

# How a consent can fail, as the console's page of the connection is told it: never the vendor's own words.
Problem = Literal["declined", "refused", "other_account", "unavailable"]


def _consents(request: Request, db: Db, principal: Principal) -> Consents:
    vault, settings = cast("Vault", request.app.state.vault), cast("Settings", request.app.state.settings)
    return Consents(db, vault, settings, principal)


@router.get("/oauth/{authority}/start", status_code=303, response_class=RedirectResponse)
async def start(
    request: Request, db: Db, authority: str, principal: Writer, connection: Annotated[UUID, Query()]
) -> Response:
    """Sends the signed-in user to the vendor. Also how consent is given again."""
    consents = _consents(request, db, principal)
    departure = await consents.begin(require_authority(authority), connection, base_url(request))
    answer = RedirectResponse(departure.url, status_code=303)
    answer.set_cookie(
        departure.cookie_name,
        departure.cookie,
        max_age=STATE_SECONDS,
        path=cookie_path(authority),
        httponly=True,
        samesite="lax",  # the vendor's redirect is a top-level navigation
        secure=base_url(request).startswith("https://"),
    )
    return answer


@router.get("/oauth/{authority}/callback", status_code=303, response_class=RedirectResponse)
async def callback(request: Request, db: Db, authority: str, principal: Writer) -> Response:
    """Where the vendor sends the browser. The address it leaves in the history holds no code."""
    require_authority(authority)
    answer = dict(request.query_params)
    name = cookie_name(answer.get("state", ""))
    if len(request.query_params.multi_items()) != len(answer):
        raise ConsentInvalid("The answer says the same thing twice.")
    consents = _consents(request, db, principal)
    taken = await consents.take(
        authority, answer.get("state", ""), request.cookies.get(name, ""), base_url(request)
    )
    problem = await _finish(consents, authority, *taken, answer)
    response = RedirectResponse(
        f"/connections/{taken[0]}?{f'problem={problem}' if problem else 'connected=1'}", status_code=303
    )
    response.delete_cookie(name, path=cookie_path(authority), httponly=True, samesite="lax")
    return response


async def _finish(
    consents: Consents, authority: str, connection_id: UUID, flow: object, answer: dict[str, str]
) -> Problem | None:
    try:
        await consents.finish(authority, connection_id, cast("dict[str, object]", flow), answer)
    except ConsentRefused as error:
        problem: Problem = "declined" if error.code == "access_denied" else "refused"
    except OtherAccount:
        problem = "other_account"
    except (ConnectorError, TimeoutError):
        problem = "unavailable"
    else:
        return None
    emit(
        "ingestion.connection.consent.failed",
        connectionId=str(connection_id),
        authority=authority,
        reason=problem,
    )
    return problem
