"""Webhooks at ClickUp: one per workspace. A suspended one is made anew; nobody tells when that happens, so it is looked up."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from connectors.clickup.api import ClickUpClient
from connectors.kit.contract import ItemFailed, ItemGone, Watch

LOOK_AGAIN = timedelta(hours=12)  # webhooks do not expire; this is how often their health is looked at


class Hooks:
    def __init__(self, client: ClickUpClient, clock: Callable[[], datetime]) -> None:
        self._client, self._clock = client, clock

    async def keep(self, url: str, known: Sequence[Watch], team_ids: Sequence[str]) -> Sequence[Watch]:
        kept: list[Watch] = []
        await self.drop([watch for watch in known if watch.resource not in team_ids])
        by_team = {watch.resource: watch for watch in known}
        for team_id in team_ids:
            watch = by_team.get(team_id)
            if watch is not None and await self._is_healthy(watch, url):
                until = self._clock() + LOOK_AGAIN
                kept.append(
                    Watch(vendor_id=watch.vendor_id, resource=team_id, expires_at=until, secret=watch.secret)
                )
                continue
            if watch is not None:
                await self.drop([watch])
            kept += await self._create(url, team_id)
        return kept

    async def drop(self, known: Sequence[Watch]) -> None:
        for watch in known:
            try:
                await self._client.request("DELETE", f"/v2/webhook/{watch.vendor_id}")
            except (ItemGone, ItemFailed):
                continue  # there is nothing left to end

    async def _is_healthy(self, watch: Watch, url: str) -> bool:
        try:
            answer = await self._client.json(f"/v2/team/{watch.resource}/webhook")
        except (ItemGone, ItemFailed):
            return False
        for hook in answer.get("webhooks") or ():
            if str(hook.get("id")) == watch.vendor_id:
                return hook.get("endpoint") == url and (hook.get("health") or {}).get("status") == "active"
        return False

    async def _create(self, url: str, team_id: str) -> list[Watch]:
        try:
            answer = await self._client.request(
                "POST", f"/v2/team/{team_id}/webhook", json={"endpoint": url, "events": ["*"]}
            )
        except (ItemGone, ItemFailed):
            return []  # refused: polling stays
        hook = answer.json()["webhook"]
        until = self._clock() + LOOK_AGAIN
        return [
            Watch(vendor_id=str(hook["id"]), resource=team_id, expires_at=until, secret=str(hook["secret"]))
        ]
