"""From an event to what an agent is told, over HTTP: the user's own layer follows, nobody else's does."""

from typing import Any

import httpx
import pytest

from gateway.db import Database
from tests.fixtures.corpus import Tenant
from tests.fixtures.events import handle_events
from tests.fixtures.tenants import TestMandate
from tests.fixtures.worker import Bench


class Agent:
    """Asks for somebody's context and gives relay and worker their turn."""

    def __init__(self, db: Database, client: httpx.AsyncClient, bench: Bench, mandate: TestMandate) -> None:
        self.db, self.client, self.bench, self.mandate = db, client, bench, mandate

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = await self.client.request(
            method, f"/v1{path}", headers=self.mandate.auth("owner"), json=body
        )
        assert answer.is_success, answer.text
        await handle_events(self.db, self.mandate.id)
        await self.bench.drain(Tenant(self.mandate.id, self.mandate.users["owner"], ""))
        return answer.json() if answer.content else None

    async def told(self, who: str, **wanted: Any) -> dict[str, str]:
        """What `who` is told, by layer."""
        body = {"query": "when are refunds paid out", **wanted}
        answer = await self.client.post("/v1/context", headers=self.mandate.auth(who), json=body)
        assert answer.status_code == 200, answer.text
        layers = [passage["layer"] for passage in answer.json()["passages"]]
        return dict.fromkeys(layers, answer.json()["text"])


@pytest.fixture
async def agent(
    app: Any, db: Database, client: httpx.AsyncClient, bench: Bench, mandate: TestMandate
) -> Agent:
    agent = Agent(db, client, bench, mandate)
    await agent.call("PATCH", "/policy", {"snapshots": {"enabled": True}})
    return agent


async def test_a_profile_event_reaches_its_users_context_and_nobody_elses(
    agent: Agent, other_mandate: TestMandate
) -> None:
    member = str(agent.mandate.users["member"])
    payload = {"userId": member, "preferences": {"answerStyle": "short limericks"}}
    await agent.call("POST", "/events", {"type": "ProfileUpdated", "payload": payload})
    assert "short limericks" in (await agent.told("member"))["user"]
    for who in ("owner", "admin"):
        assert "short limericks" not in (await agent.told(who))["user"]
    found = await agent.client.get(
        "/v1/search", params={"q": "limericks"}, headers=agent.mandate.auth("admin")
    )
    assert all("limericks" not in hit["text"] for hit in found.json()["hits"])
    await agent.call("PATCH", "/policy", {"snapshots": {"enabled": False}})
    assert await agent.told("member") == {}


async def test_what_is_changed_here_is_told_next(agent: Agent) -> None:
    """Tenancy's own changes need nobody to announce them."""
    member, admin = str(agent.mandate.users["member"]), str(agent.mandate.users["admin"])
    await agent.call("PATCH", f"/users/{member}", {"displayName": "Grace Hopper"})
    assert "Name: Grace Hopper" in (await agent.told("member"))["user"]
    await agent.call("PATCH", f"/members/{member}", {"role": "admin"})
    assert "Role in the organisation: admin" in (await agent.told("member"))["user"]
    assert "Members by role: 1 owner, 2 admin" in (await agent.told("member"))["mandate"]
    await agent.call("PATCH", f"/mandates/{agent.mandate.id}", {"name": "Acme & Daughters"})
    assert "Organisation: Acme & Daughters" in (await agent.told("owner"))["mandate"]

    wanted = {"featureCode": "coach", "label": "Coach Bern", "memberIds": [member]}
    made = (await agent.call("POST", "/feature-instances", wanted))["id"]
    assert "Features they may use: Coach Bern" in (await agent.told("member"))["user"]
    await agent.call("PATCH", f"/feature-instances/{made}", {"label": "Coach Basel"})
    inside = await agent.told("member", featureInstanceId=made)
    assert "Feature: Coach Basel" in inside["feature"]
    assert "Features they may use: Coach Basel" in inside["user"]
    assert "Features: Coach Basel" in inside["mandate"]
    assert "feature" not in await agent.told("owner", featureInstanceId=made)
    await agent.call("PATCH", f"/feature-instances/{made}", {"memberIds": []})
    assert "Features they may use" not in (await agent.told("member"))["user"]
    await agent.call("DELETE", f"/feature-instances/{made}")
    assert "Coach" not in (await agent.told("owner"))["mandate"]

    await agent.call("DELETE", f"/members/{admin}")
    assert "Members by role: 1 owner, 1 admin" in (await agent.told("owner"))["mandate"]
    await agent.call("POST", "/members", {"userId": admin, "role": "member"})
    assert "Members by role: 1 owner, 1 admin, 1 member" in (await agent.told("owner"))["mandate"]
    await agent.call("POST", "/users", {"email": "new@example.org", "displayName": "New"})
    assert "Members by role: 1 owner, 1 admin, 2 member" in (await agent.told("owner"))["mandate"]
    await agent.call("PATCH", "/policy", {"refusedSourceKinds": ["web_page"]})
    assert "Not taken in: web_page" in (await agent.told("owner"))["mandate"]
