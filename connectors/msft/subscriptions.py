"""Push subscriptions at Graph: made, renewed before they end, made again when they are gone."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from connectors.kit.contract import ItemFailed, ItemGone, Watch
from connectors.msft.graph import Graph, Record, moment, segment, stamp

# The longest Graph allows, less an hour: drives 42,300 minutes, mail and events 10,080, Teams 4,320.
LIVES = {
    "drives": timedelta(minutes=42_240),
    "me": timedelta(minutes=10_020),
    "teams": timedelta(minutes=4_260),
    "chats": timedelta(minutes=4_260),
}
MARGIN = 0.5  # of its life: renewed when less is left


class Subscriptions:
    def __init__(self, graph: Graph, clock: Callable[[], datetime]) -> None:
        self._graph, self._clock = graph, clock

    async def keep(self, url: str, known: Sequence[Watch], resources: Mapping[str, str]) -> Sequence[Watch]:
        """`resources` with their change types are what should be watched; the rest of `known` is given up."""
        kept: list[Watch] = []
        by_resource = {watch.resource: watch for watch in known}
        await self.drop([watch for watch in known if watch.resource not in resources])
        for resource, changes in resources.items():
            watch = by_resource.get(resource)
            if watch is not None and watch.details.get("url", url) != url:
                await self.drop([watch])
                watch = None
            kept.extend(await self._one(url, watch, resource, changes))
        return kept

    async def drop(self, known: Sequence[Watch]) -> None:
        for watch in known:
            try:
                await self._graph.client.request("DELETE", f"/subscriptions/{segment(watch.vendor_id)}")
            except (ItemGone, ItemFailed):
                continue  # ended by itself, or not ours any more: there is nothing left to end

    async def _one(self, url: str, watch: Watch | None, resource: str, changes: str) -> list[Watch]:
        life = LIVES[resource.strip("/").split("/")[0]]
        if watch is not None and watch.expires_at - self._clock() > life * MARGIN:
            return [watch]
        if watch is not None:
            try:
                return [await self._renew(watch, life)]
            except (ItemGone, ItemFailed):
                pass  # gone: made anew
        try:
            return [await self._create(url, resource, changes, life)]
        except ItemGone:
            return []  # the resource itself is gone; the next delta will say so
        except ItemFailed:
            return []  # refused: polling stays

    async def _renew(self, watch: Watch, life: timedelta) -> Watch:
        until = self._clock() + life
        answer = await self._graph.client.request(
            "PATCH", f"/subscriptions/{segment(watch.vendor_id)}", json={"expirationDateTime": stamp(until)}
        )
        return Watch(
            vendor_id=watch.vendor_id,
            resource=watch.resource,
            expires_at=_expiry(answer.json(), until),
            secret=watch.secret,
            details=watch.details,
        )

    async def _create(self, url: str, resource: str, changes: str, life: timedelta) -> Watch:
        secret = secrets.token_urlsafe(32)
        until = self._clock() + life
        asked = {
            "changeType": changes,
            "notificationUrl": url,
            "lifecycleNotificationUrl": url,
            "resource": resource,
            "expirationDateTime": stamp(until),
            "clientState": secret,
            "latestSupportedTlsVersion": "v1_2",
        }
        try:
            answer = await self._graph.client.request("POST", "/subscriptions", json=asked)
        except ItemFailed as error:
            if not error.detail.startswith("409"):
                raise
            # One of ours that we no longer know, so its secret is lost too: ended and made again.
            await self._drop_twin(resource)
            answer = await self._graph.client.request("POST", "/subscriptions", json=asked)
        made: Record = answer.json()
        return Watch(
            vendor_id=str(made["id"]),
            resource=resource,
            expires_at=_expiry(made, until),
            secret=secret,
            details={"url": url},
        )

    async def _drop_twin(self, resource: str) -> None:
        async for other in self._graph.every("/subscriptions"):
            if str(other.get("resource") or "").strip("/").lower() == resource.strip("/").lower():
                await self._graph.client.request("DELETE", f"/subscriptions/{segment(str(other['id']))}")


def _expiry(made: Record, asked: datetime) -> datetime:
    return moment(made.get("expirationDateTime")) or asked
