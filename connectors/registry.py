"""Which vendors there are, and how each part of them is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import cast

from connectors.kit.contract import Authority, RateWindow, Surface, TokenSource, Webhooks
from connectors.kit.http import VendorHttp, way_out
from connectors.kit.policy import SyncPolicy

# Each authority is a package with `auth.AUTHORITY`, `webhooks.WEBHOOKS`, and one module per surface with `build(workplace)`.
SURFACES: dict[str, dict[str, str]] = {
    "msft": {
        "sharepoint": "connectors.msft.sharepoint",
        "onedrive": "connectors.msft.onedrive",
        "outlook": "connectors.msft.outlook",
        "outlook_calendar": "connectors.msft.calendar",
        "teams": "connectors.msft.teams",
    },
    "google": {
        "drive": "connectors.google.drive",
        "gmail": "connectors.google.gmail",
        "google_calendar": "connectors.google.calendar",
    },
    "clickup": {"clickup": "connectors.clickup.workspace"},
}
AUTHORITIES = tuple(SURFACES)


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """Everything a surface may use."""

    endpoints: Mapping[str, str]  # base URLs by name, e.g. graph, login, drive, gmail, calendar, api
    tokens: TokenSource
    http: VendorHttp
    rate: RateWindow
    policy: SyncPolicy
    external_root: str = ""  # what of the account: empty for all of the surface
    account_id: str = ""
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


def authority(name: str) -> Authority:
    return cast("Authority", import_module(f"connectors.{name}.auth").AUTHORITY)


def webhooks(name: str) -> Webhooks:
    return cast("Webhooks", import_module(f"connectors.{name}.webhooks").WEBHOOKS)


def surface(authority_name: str, part: str, workplace: Workplace) -> Surface:
    build = import_module(SURFACES[authority_name][part]).build
    return cast("Callable[[Workplace], Surface]", build)(workplace)


def default_endpoints(name: str) -> Mapping[str, str]:
    return cast("Mapping[str, str]", import_module(f"connectors.{name}.auth").ENDPOINTS)


def open_http(
    endpoints: Mapping[str, Mapping[str, str]], *, on_response: Callable[[str, int], None] | None = None
) -> VendorHttp:
    """One way out to these authorities, each with its endpoints; `on_response` hears authority and status."""
    downloads = {
        host for name in endpoints for host in import_module(f"connectors.{name}.auth").DOWNLOAD_HOSTS
    }
    urls = [url for places in endpoints.values() for url in places.values()]
    return way_out(urls, downloads=sorted(downloads), on_response=on_response)
