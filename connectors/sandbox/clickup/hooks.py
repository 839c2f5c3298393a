"""ClickUp's webhooks: signed deliveries, a count of failures, and suspension without a word."""

import asyncio
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import httpx

from connectors.sandbox.world import Fields

if TYPE_CHECKING:
    from connectors.sandbox.clickup.world import ClickUpWorld

MOST_FAILURES = 100
ANSWER_SECONDS = 7.0


class Hooks:
    def __init__(self, world: "ClickUpWorld") -> None:
        self._world = world
        self.hooks: dict[str, dict[str, Any]] = {}
        self._sent: list[tuple[str, bytes]] = []
        self._waiting: set[asyncio.Task[None]] = set()
        self.broken = False

    def add(self, team: str, user: str, body: Fields) -> dict[str, Any]:
        hook_id = self._world.ids.guid("webhook")
        self.hooks[hook_id] = {
            "id": hook_id,
            "userid": user,
            "team_id": team,
            "endpoint": str(body["endpoint"]),
            "client_id": "SANDBOXCLICKUPCLIENT",
            "events": list(body.get("events") or ["*"]),
            "health": {"status": "active", "fail_count": 0},
            "secret": self._world.ids.digest("hook secret").hex(),
        }
        return self.hooks[hook_id]

    def happened(self, event: str, task_id: str | None) -> None:
        """Tells every active hook, in the background; the control API does not wait for it."""
        if self.broken or task_id is None:
            return
        for hook in self.hooks.values():
            if hook["health"]["status"] != "active":
                continue
            said: dict[str, Any] = {"event": event, "task_id": task_id, "webhook_id": hook["id"]}
            if event != "taskDeleted":
                said["history_items"] = [
                    {"id": str(self._world.now()), "type": 1, "field": "content", "parent_id": task_id}
                ]
            body = json.dumps(said).encode()
            self._sent.append((hook["id"], body))
            try:
                task = asyncio.get_running_loop().create_task(self._send(hook, body))
            except RuntimeError:
                continue  # seeding, before the server runs
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _send(self, hook: dict[str, Any], body: bytes, *, secret: str | None = None) -> None:
        signature = hmac.new((secret or hook["secret"]).encode(), body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", "X-Signature": signature}
        status = 0
        try:
            async with httpx.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False) as client:
                status = (await client.post(hook["endpoint"], content=body, headers=headers)).status_code
        except httpx.HTTPError:
            status = 0
        if 200 <= status < 300:
            return
        health = hook["health"]
        health["fail_count"] += 1
        if status == 410 or health["fail_count"] >= MOST_FAILURES:
            health["status"] = "suspended"

    async def deliver(self, fields: Fields) -> Fields:
        """`again` repeats the last delivery, `forge` signs it wrongly, `suspend` ends every hook, `broken` tells nobody."""
        if "broken" in fields:
            self.broken = bool(fields["broken"])
        if fields.get("suspend"):
            for hook in self.hooks.values():
                hook["health"]["status"] = "suspended"
        if (fields.get("again") or fields.get("forge")) and self._sent:
            hook_id, body = self._sent[-1]
            await self._send(self.hooks[hook_id], body, secret="forged" if fields.get("forge") else None)
        if fields.get("wait") and self._waiting:
            await asyncio.gather(*self._waiting, return_exceptions=True)
        return {"hooks": [{"id": hook["id"], "health": hook["health"]} for hook in self.hooks.values()]}
