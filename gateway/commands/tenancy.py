"""`catchment mandates|users|keys …` and `catchment login`, over HTTP."""

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any
from uuid import UUID

import typer
from pydantic import ValidationError

from gateway.commands.api import Api, ApiKey, AsJson, DataDir, Url, connected, show_one, show_rows
from gateway.commands.serve import database_url, log_beside_the_answer
from gateway.errors import NotFound, fields_invalid
from gateway.settings import get_settings

mandates = typer.Typer(help="Mandates: the tenants of this installation.", no_args_is_help=True)
users = typer.Typer(help="Users of a mandate and their roles.", no_args_is_help=True)
keys = typer.Typer(help="API keys of a mandate.", no_args_is_help=True)

LOGIN_EXAMPLES = "Example: catchment login --user ada@example.org"


@mandates.command(
    "create", epilog="Example: catchment mandates create acme --name 'Acme Ltd' --owner ann@acme.example"
)
def create_mandate(
    slug: Annotated[str, typer.Argument(help="short name: lower-case letters, digits and dashes")],
    name: Annotated[str | None, typer.Option(help="full name; default the slug")] = None,
    owner: Annotated[str | None, typer.Option(help="address of its owner; default your own")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a mandate; prints its owner's first key, this once. Needs an operator's key."""
    body: dict[str, Any] = {"slug": slug, "name": name or slug} | ({"ownerEmail": owner} if owner else {})
    with connected(url, api_key, data_dir) as api:
        show_one(api.call("POST", "/mandates", json=body), as_json=as_json)


@mandates.command(
    "open",
    epilog="Example: docker compose run --rm gateway mandates open acme --owner ann@acme.example",
)
def open_mandate(
    slug: Annotated[str, typer.Argument(help="short name: lower-case letters, digits and dashes")],
    owner: Annotated[str, typer.Option(help="address of its owner")],
    name: Annotated[str | None, typer.Option(help="full name; default the slug")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Open a mandate straight in the database, where nobody has a key yet; prints an operator's key and a login link."""
    from gateway.db import Database  # noqa: PLC0415 - the other commands speak HTTP
    from gateway.tenancy import schemas, service  # noqa: PLC0415

    settings = get_settings()
    url = database_url(settings, data_dir)
    log_beside_the_answer(settings)
    body = {"slug": slug, "name": name or slug, "ownerEmail": owner}
    try:
        wanted = schemas.MandateIn.model_validate(body)
    except ValidationError as error:
        raise fields_invalid(error.errors()) from None

    async def work() -> tuple[service.NewMandate, str]:
        db = Database(url, pool_size=1)
        try:
            await db.check_role()
            return await service.open_house(db, wanted, settings.public_url or settings.own_url)
        finally:
            await db.dispose()

    made, login_url = asyncio.run(work())
    shown = {
        "mandateId": str(made.mandate.mandate_id),
        "slug": slug,
        "ownerId": str(made.owner_id),
        "ownerKey": made.owner_key,
        "loginUrl": login_url,
    }
    show_one(shown, as_json=as_json)


@mandates.command("list", epilog="Example: catchment mandates list --json")
def list_mandates(
    url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """List your own mandate or, with an operator's key, all."""
    with connected(url, api_key, data_dir) as api:
        show_rows(list(api.pages("/mandates")), ("mandateId", "slug", "name", "createdAt"), as_json=as_json)


@mandates.command("rename", epilog="Example: catchment mandates rename 0199… 'Acme & Daughters'")
def rename_mandate(
    mandate_id: UUID,
    name: str,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Give a mandate another name."""
    with connected(url, api_key, data_dir) as api:
        show_one(api.call("PATCH", f"/mandates/{mandate_id}", json={"name": name}), as_json=as_json)


@users.command("create", epilog="Example: catchment users create ada@example.org --name 'Ada' --role admin")
def create_user(
    email: str,
    name: Annotated[str | None, typer.Option(help="name shown to others; default the address")] = None,
    role: Annotated[str, typer.Option(help="owner, admin or member")] = "member",
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a user who is a member of the mandate."""
    body = {"email": email, "displayName": name or email, "role": role}
    with connected(url, api_key, data_dir) as api:
        show_one(api.call("POST", "/users", json=body), as_json=as_json)


@users.command("list", epilog="Example: catchment users list")
def list_users(
    url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """List the members of the mandate."""
    with connected(url, api_key, data_dir) as api:
        columns = ("userId", "email", "displayName", "role", "joinedAt")
        show_rows(list(api.pages("/members")), columns, as_json=as_json)


@users.command("role", epilog="Example: catchment users role ada@example.org owner")
def change_role(
    user: Annotated[str, typer.Argument(help="address or id")],
    role: Annotated[str, typer.Argument(help="owner, admin or member")],
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change what a member may do."""
    with connected(url, api_key, data_dir) as api:
        path = f"/members/{user_id_of(api, user)}"
        show_one(api.call("PATCH", path, json={"role": role}), as_json=as_json)


@users.command("remove", epilog="Example: catchment users remove ada@example.org")
def remove_user(
    user: Annotated[str, typer.Argument(help="address or id")],
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
) -> None:
    """End a membership; sessions and keys stop working at once."""
    with connected(url, api_key, data_dir) as api:
        api.call("DELETE", f"/members/{user_id_of(api, user)}")
    typer.echo(f"{user} is no longer a member.")


@keys.command(
    "create", epilog="Example: catchment keys create crm --service crm --scope read --scope act_as --days 90"
)
def create_key(  # noqa: PLR0917 - typer reads the command line from them
    name: str,
    scope: Annotated[
        list[str] | None, typer.Option(help="read, write, admin, act_as or operator; default read and write")
    ] = None,
    service: Annotated[str | None, typer.Option(help="the key belongs to this service")] = None,
    user: Annotated[str | None, typer.Option(help="the key belongs to this user; default you")] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="expires after that many days; default never")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a key; its secret is printed this once."""
    body: dict[str, Any] = {"name": name, "scopes": scope or ["read", "write"]}
    if service:
        body["service"] = service
    if days:
        body["expiresAt"] = (datetime.now(timezone.utc) + timedelta(days=days)).isoformat()
    with connected(url, api_key, data_dir) as api:
        if user:
            body["userId"] = user_id_of(api, user)
        show_one(api.call("POST", "/keys", json=body), as_json=as_json)


@keys.command("list", epilog="Example: catchment keys list --json")
def list_keys(
    url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """List your keys or, as an admin, all of the mandate."""
    with connected(url, api_key, data_dir) as api:
        columns = ("id", "name", "hint", "userId", "service", "scopes", "expiresAt", "revokedAt")
        show_rows(list(api.pages("/keys")), columns, as_json=as_json)


@keys.command("revoke", epilog="Example: catchment keys revoke 0199…")
def revoke_key(key_id: UUID, url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None) -> None:
    """Make a key useless at once."""
    with connected(url, api_key, data_dir) as api:
        api.call("DELETE", f"/keys/{key_id}")
    typer.echo(f"The key {key_id} is revoked.")


def login(
    user: Annotated[
        str | None, typer.Option(help="address or id of another user; needs an admin's key")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print a link that opens the console once, within 15 minutes."""
    with connected(url, api_key, data_dir) as api:
        body = {"userId": user_id_of(api, user)} if user else {}
        made = api.call("POST", "/login-links", json=body)
    if as_json:
        show_one(made, as_json=True)
    else:
        typer.echo(made["url"])


def user_id_of(api: Api, user: str) -> str:
    """People know addresses, the API knows ids."""
    try:
        return str(UUID(user))
    except ValueError:
        for member in api.pages("/members"):
            if member["email"] == user.strip().lower():
                return str(member["userId"])
    raise NotFound(f"{user} is no member of this mandate.")
