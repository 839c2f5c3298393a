"""Where a sandbox lives, and what an application registered there must know. Light: can be asked without starting one."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

HOST = "127.0.0.1"
VENDORS = ("msft", "google", "clickup")


def available() -> tuple[str, ...]:
    """The vendors whose sandbox is part of this installation."""
    here = [name for name in VENDORS if find_spec(f"connectors.sandbox.{name}")]
    return tuple(name for name in here if find_spec(f"connectors.sandbox.{name}.app"))


@dataclass(frozen=True, kw_only=True)
class Address:
    authority: str
    port: int
    second_port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def second_url(self) -> str:
        """Another origin of the same server: downloads live there, as they do at the vendors."""
        return f"http://{HOST}:{self.second_port}"

    @property
    def control_url(self) -> str:
        return f"{self.url}/_control"

    @property
    def endpoints(self) -> Mapping[str, str]:
        return import_module(f"connectors.sandbox.{self.authority}.registration").endpoints(
            self.url, self.second_url
        )

    @property
    def client_id(self) -> str:
        return import_module(f"connectors.sandbox.{self.authority}.registration").CLIENT_ID

    @property
    def client_secret(self) -> str:
        return import_module(f"connectors.sandbox.{self.authority}.registration").CLIENT_SECRET
