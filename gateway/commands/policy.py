"""`catchment policy …` and `catchment features …`: the mandate's word on what may enter, and who shares what."""

import json
from typing import Annotated, Any
from uuid import UUID

import typer

from gateway.commands.api import ApiKey, AsJson, DataDir, Url, connected, show_one, show_rows
from gateway.commands.tenancy import user_id_of
from gateway.errors import InvalidRequest

policy = typer.Typer(
    help="The mandate's policy: quotas, budget, retention, neutralisation.", no_args_is_help=True
)
features = typer.Typer(help="Feature instances of a mandate and their members.", no_args_is_help=True)

COLUMNS = ("id", "featureCode", "label", "memberIds", "createdAt")


@policy.command("show", epilog="Example: catchment policy show --json")
def show_policy(
    url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Print the policy, one line per value."""
    with connected(url, api_key, data_dir) as api:
        found = api.call("GET", "/policy")
    show_one(found if as_json else _flat(found), as_json=as_json)


@policy.command(
    "set", epilog="Example: catchment policy set budget.monthlyTokens=2000000 graceDays=14 legalHold=null"
)
def set_policy(
    values: Annotated[
        list[str], typer.Argument(help="NAME=VALUE as `policy show` names them; null: the default")
    ],
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change values of the policy. Work that waited for a larger budget goes on by itself."""
    patch: dict[str, Any] = {}
    for given in values:
        name, equals, value = given.partition("=")
        if not equals or not name:
            raise InvalidRequest(f"{given!r} is not NAME=VALUE.")
        *outer, last = name.split(".")
        inner = patch
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = _value(value)
    with connected(url, api_key, data_dir) as api:
        changed = api.call("PATCH", "/policy", json=patch)
    show_one(changed if as_json else _flat(changed), as_json=as_json)


def _value(text: str) -> Any:
    """JSON where it is JSON; a plain word is itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


@features.command("list", epilog="Example: catchment features list")
def list_features(
    url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """List the feature instances of the mandate."""
    with connected(url, api_key, data_dir) as api:
        show_rows(list(api.pages("/feature-instances")), COLUMNS, as_json=as_json)


@features.command(
    "create", epilog="Example: catchment features create crm 'Sales north' --member ada@example.org"
)
def create_feature(
    feature_code: Annotated[str, typer.Argument(help="which feature it is an instance of")],
    label: Annotated[str, typer.Argument(help="what people call it")],
    member: Annotated[list[str] | None, typer.Option(help="address or id; may be repeated")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a feature instance; its members see what is scoped to it."""
    with connected(url, api_key, data_dir) as api:
        members = [user_id_of(api, one) for one in member or []]
        body = {"featureCode": feature_code, "label": label, "memberIds": members}
        show_one(api.call("POST", "/feature-instances", json=body), as_json=as_json)


@features.command(
    "members", epilog="Example: catchment features members 0199… ada@example.org bob@example.org"
)
def set_members(
    instance_id: UUID,
    members: Annotated[list[str] | None, typer.Argument(help="addresses or ids of all its members")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say who the members are; whoever is not named is none any more."""
    with connected(url, api_key, data_dir) as api:
        body = {"memberIds": [user_id_of(api, one) for one in members or []]}
        show_one(api.call("PATCH", f"/feature-instances/{instance_id}", json=body), as_json=as_json)


@features.command("remove", epilog="Example: catchment features remove 0199…")
def remove_feature(
    instance_id: UUID, url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None
) -> None:
    """Delete a feature instance."""
    with connected(url, api_key, data_dir) as api:
        api.call("DELETE", f"/feature-instances/{instance_id}")
    typer.echo(f"The feature instance {instance_id} is gone.")
