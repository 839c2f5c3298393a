"""Our applications at the vendors, and where the vendors live, as the settings say it."""

from collections.abc import Mapping
from typing import cast

from pydantic import SecretStr

from connectors import registry
from connectors.kit.contract import Client
from gateway.errors import CatchmentError, Conflict, NotFound
from gateway.settings import Settings


class VendorNotConfigured(Conflict):
    """No application of ours is registered at that vendor."""

    code = "connection.not_configured"


class VendorAway(CatchmentError):
    """The vendor does not answer; try again shortly."""

    code = "vendor.unavailable"
    status = 503
    retryable = True


def require_authority(name: str) -> str:
    if name not in registry.SURFACES:
        raise NotFound(f"There is no authority {name!r}; known are {', '.join(registry.SURFACES)}.")
    return name


def endpoints_of(settings: Settings, authority: str) -> Mapping[str, str]:
    own = cast("dict[str, str]", getattr(settings, f"{authority}_endpoints"))
    if authority == "google" and settings.google_pubsub_topic:
        own = {"pubsub_topic": settings.google_pubsub_topic, **own}
    return {**registry.default_endpoints(authority), **own}


def is_configured(settings: Settings, authority: str) -> bool:
    return getattr(settings, f"{authority}_client_id") is not None


def client_of(settings: Settings, authority: str) -> Client:
    """The application that asks for consent. A token that was handed in needs none, hence empty where there is none."""
    client_id = cast("str | None", getattr(settings, f"{authority}_client_id"))
    secret = cast("SecretStr | None", getattr(settings, f"{authority}_client_secret"))
    return Client(
        client_id=client_id or "",
        client_secret=secret.get_secret_value() if secret else "",
        endpoints=endpoints_of(settings, authority),
    )


def require_client(settings: Settings, authority: str) -> Client:
    if not is_configured(settings, authority):
        name = f"CATCHMENT_{authority.upper()}"
        raise VendorNotConfigured(f"Set {name}_CLIENT_ID and {name}_CLIENT_SECRET to connect accounts there.")
    return client_of(settings, authority)
