"""Settings: one's own profile and keys; for admins the mandate's policy, members and keys."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import HTMLResponse

from gateway.console.visits import AdminForm, Member, MemberForm, PageRoute, Visit, back_to
from gateway.http import base_url
from gateway.ingestion.schemas import SOURCE_KINDS
from gateway.tenancy import repository, service
from gateway.tenancy import routes as tenancy
from gateway.tenancy.schemas import KeyIn, MemberIn, MemberPatch, Role, Scope, UserIn, UserPatch

router = APIRouter(route_class=PageRoute)

ROWS = 200
KEY_DAYS = {"30": 30, "90": 90, "365": 365, "": None}
# Form fields of the policy that hold a whole number or nothing.
_NUMBERS = {
    "mail.windowDays",
    "budget.monthlyTokens",
    "budget.monthlyCost",
    "quotas.documents",
    "quotas.bytes",
    "quotas.documentBytes",
    "quotas.days",
    "logRetentionDays",
    "graceDays",
}
_FLAGS = {"legalHold", "snapshots.enabled"}
_WORDS = {"mail.tier"}
_LISTS = {
    "neutralisation.mandatorySourceKinds",
    "neutralisation.allowPersonalData",
    "refusedSourceKinds",
}


@router.get("/settings")
async def settings_page(visit: Member, saved: Annotated[str, Query(max_length=20)] = "") -> HTMLResponse:
    return await _settings(visit, saved=saved)


async def _settings(visit: Visit, **values: Any) -> HTMLResponse:
    principal = visit.principal
    async with visit.db.tenant_session(principal.mandate_id) as session:
        policy = await service.policy_of(session)
        keys = await repository.list_keys(
            session, user_id=None if principal.is_admin else principal.user_id, after=None, limit=ROWS
        )
        members = await repository.list_members(session, after=None, limit=ROWS) if principal.is_admin else []
    return visit.page(
        "settings.html",
        policy=policy.model_dump(by_alias=True),
        keys=keys,
        members=members,
        kinds=SOURCE_KINDS,
        now=datetime.now(UTC),
        **({"saved": ""} | values),
    )


@router.post("/settings/profile")
async def change_profile(
    visit: MemberForm,
    display_name: Annotated[str, Form()],
    locale: Annotated[str, Form()],
    timezone: Annotated[str, Form()],
) -> Response:
    patch = UserPatch.model_validate({"displayName": display_name, "locale": locale, "timezone": timezone})
    async with visit.db.tenant_session(visit.principal.mandate_id) as session:
        await service.change_user(session, visit.person.id, patch, visit.principal)
    return back_to("/settings", saved="profile")


@router.post("/settings/policy")
async def change_policy(visit: AdminForm) -> Response:
    """Every field of the form; an empty one goes back to its default."""
    form = await visit.request.form()
    patch: dict[str, Any] = {}
    for name in _NUMBERS | _WORDS | _LISTS | _FLAGS:
        value: Any
        if name in _FLAGS:
            value = name in form
        elif name in _LISTS:
            value = [str(item) for item in form.getlist(name) if str(item)]
        else:
            value = str(form.get(name) or "").strip() or None
        _place(patch, name, value)
    patch["retentionDays"] = _retention(str(form.get("retentionDays") or ""))
    await tenancy.patch_policy(visit.db, patch, visit.principal)
    return back_to("/settings", saved="policy")


def _place(patch: dict[str, Any], name: str, value: Any) -> None:
    outer, _, inner = name.partition(".")
    if inner:
        patch.setdefault(outer, {})[inner] = value
    else:
        patch[outer] = value


def _retention(value: str) -> dict[str, int] | None:
    """Lines like `outlook_message 365`; what is left out is kept for ever."""
    found: dict[str, int] = {}
    for line in value.splitlines():
        kind, _, days = line.strip().partition(" ")
        if kind and days.strip().isdecimal():
            found[kind] = int(days)
    return found or None


@router.post("/settings/members")
async def add_member(
    visit: AdminForm, email: Annotated[str, Form()], role: Annotated[Role, Form()] = "member"
) -> HTMLResponse:
    """A new person gets a one-time link, which the admin hands over."""
    principal = visit.principal
    async with visit.db.tenant_session(principal.mandate_id) as session:
        known = await repository.user_by_email(session, email.strip().lower())
    if known is None:
        wanted = UserIn.model_validate({"email": email, "displayName": email.partition("@")[0], "role": role})
        user_id = (await tenancy.create_user(visit.db, wanted, principal)).id
    else:
        user_id = known.id
        await tenancy.add_member(visit.db, MemberIn(user_id=user_id, role=role), principal)
    return await _with_link(visit, user_id, email)


async def _with_link(visit: Visit, user_id: UUID, email: str) -> HTMLResponse:
    async with visit.db.tenant_session(visit.principal.mandate_id) as session:
        url, expires = await service.request_login_link(
            session, user_id, visit.principal, base_url(visit.request)
        )
    return await _settings(visit, link={"url": url, "expires": expires, "email": email})


@router.post("/settings/members/{user_id}/link")
async def make_link(visit: AdminForm, user_id: UUID) -> HTMLResponse:
    async with visit.db.tenant_session(visit.principal.mandate_id) as session:
        person = await service.get_user(session, user_id)
    return await _with_link(visit, user_id, person.email)


@router.post("/settings/members/{user_id}/role")
async def change_role(visit: AdminForm, user_id: UUID, role: Annotated[Role, Form()]) -> Response:
    await tenancy.change_role(visit.db, user_id, MemberPatch(role=role), visit.principal)
    return back_to("/settings", saved="member")


@router.post("/settings/members/{user_id}/remove")
async def remove_member(visit: AdminForm, user_id: UUID) -> Response:
    await tenancy.remove_member(visit.db, user_id, visit.principal)
    return back_to("/settings", saved="member")


@router.post("/settings/keys")
async def create_key(
    visit: MemberForm,
    *,
    name: Annotated[str, Form()],
    scopes: Annotated[list[Scope], Form()],
    days: Annotated[str, Form()] = "90",
) -> HTMLResponse:
    life = KEY_DAYS.get(days, 90)
    wanted = KeyIn(
        name=name, scopes=scopes, expires_at=datetime.now(UTC) + timedelta(days=life) if life else None
    )
    made = await tenancy.create_key(visit.db, wanted, visit.principal)
    return await _settings(visit, new_key=made)


@router.post("/settings/keys/{key_id}/revoke")
async def revoke_key(visit: MemberForm, key_id: UUID) -> Response:
    await tenancy.revoke_key(visit.db, key_id, visit.principal)
    return back_to("/settings", saved="key")
