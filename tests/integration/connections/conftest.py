"""A gateway with an application at a vendor of the test's own, and browsers of its users."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr

from connectors import registry
from gateway.connections import routes
from gateway.connections.vault import Vault
from gateway.settings import Settings
from tests.fixtures.stores import DatabaseUrls
from tests.fixtures.tenants import SignIn, TestMandate
from tests.integration.connections.vendor import CLIENT_SECRET, Vendor

SECRET_KEY = "test-secret-key-test-secret-key-test"


@pytest.fixture(scope="module")
def settings(
    database_urls: DatabaseUrls, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    return Settings(
        database_url=SecretStr(database_urls.runtime_url),
        owner_database_url=SecretStr(database_urls.owner_url),
        redis_url=SecretStr(redis_url),
        data_dir=tmp_path_factory.mktemp("data"),
        secret_key=SecretStr(SECRET_KEY),
        embedder="lookup:64",
        msft_client_id="catchment-test",
        msft_client_secret=SecretStr(CLIENT_SECRET),
    )


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody works beside these tests: an answer that waits for a receipt waits in vain, however long."""
    monkeypatch.setattr(routes, "RECEIPT_SECONDS", 0.2)


@pytest.fixture
def vault(settings: Settings) -> Vault:
    return Vault.of(settings)


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Vendor:
    made = Vendor()
    monkeypatch.setattr(registry, "authority", lambda name: made)
    monkeypatch.setattr(registry, "webhooks", lambda name: made)
    monkeypatch.setattr(registry, "surface", lambda name, part, workplace: made)
    monkeypatch.setattr(registry, "default_endpoints", lambda name: {"api": "https://vendor.example"})
    return made


Connect = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def connect(client: httpx.AsyncClient, sign_in: SignIn, vendor: Vendor) -> Connect:
    """`await connect(mandate)` is an active connection of the mandate's member, made the way people make them."""

    async def make(
        mandate: TestMandate, who: str = "member", account: str = "ada", **wanted: Any
    ) -> dict[str, Any]:
        body = {"authority": "msft", "surfaces": ["sharepoint", "outlook"], **wanted}
        made = (await client.post("/v1/connections", json=body, headers=mandate.auth(who))).json()
        browser = await sign_in(mandate.id, mandate.users[who])  # type: ignore[index]
        left = await browser.get(made["authorizeUrl"])
        assert left.status_code == 303, left.text
        back = await browser.get(
            "/v1/oauth/msft/callback", params=vendor.consent(left.headers["location"], account)
        )
        assert back.status_code == 303, back.text
        assert "connected=1" in back.headers["location"], back.headers["location"]
        found = await client.get(f"/v1/connections/{made['id']}", headers=mandate.auth(who))
        return found.json() | {"browser": browser, "uuid": UUID(made["id"])}

    return make
