"""A connection's pages: what is asked of a vendor, what waits for a person, and who is told about it."""

import pytest

from gateway.db import Database
from tests.fixtures.tenants import SignIn, TestMandate
from tests.integration.console.test_rules import token_of

pytestmark = pytest.mark.usefixtures("app")


async def test_who_unticks_every_surface_is_asked_for_one_and_nothing_is_connected(
    sign_in: SignIn, db: Database, mandate: TestMandate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.console.connections_routes.is_configured", lambda *_: True)
    browser = await sign_in(mandate.id, mandate.users["member"])
    token = token_of(await browser.get("/connections"))
    sent = {"csrf_token": token, "authority": "google", "estimate": "1"}
    refused = await browser.post("/connections", data=sent, headers={"Accept-Language": "de"})
    assert refused.status_code == 422
    form = refused.text.partition('value="google"')[2].partition("</form>")[0]
    assert "Wählen Sie mindestens eines." in form
    assert 'name="estimate" value="1" checked' in form
    assert 'name="surfaces" value="gmail">' in form
    assert refused.text.count('role="alert"') == 1
    assert (await browser.get("/v1/connections")).json()["items"] == []
