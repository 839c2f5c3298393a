"""Push channels of Drive and Calendar: one per container, never renewed, only replaced shortly before its end.

A container that refuses to be watched, as calendars of holidays do, stays polled; what was opened for the others is kept.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from connectors.google.api import GoogleApi, Refusal
from connectors.kit.contract import Throttled, VendorUnavailable, Watch

LIFE, RENEW_BEFORE = timedelta(days=7), timedelta(days=2)

# Asks for a channel on a container: its id and the body of the request.
Open = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class Channels:
    def __init__(self, api: GoogleApi, clock: Callable[[], datetime]) -> None:
        self._api, self._clock = api, clock

    async def keep(
        self, url: str, known: Sequence[Watch], resources: Iterable[str], ask: Open
    ) -> Sequence[Watch]:
        """Channels on `resources`, young ones as they are; the rest of `known` is stopped. When Google does not answer any
        more, what there is stays, and what is missing is asked for another time.
        """
        now = self._clock()
        living = {watch.resource: watch for watch in known if watch.expires_at > now}
        kept: list[Watch] = []
        for resource in resources:
            watch = living.get(resource)
            if watch is not None and watch.expires_at > now + RENEW_BEFORE:
                kept.append(watch)
                continue
            try:
                kept.append(await self._open(url, resource, now, ask))
            except Refusal:
                kept += [watch] if watch is not None else []  # until its end; then polling stays
            except (Throttled, VendorUnavailable):
                return [
                    *kept,
                    *(one for one in known if one.resource not in {each.resource for each in kept}),
                ]
        await self._stop_rest([watch for watch in known if watch not in kept])
        return kept

    async def _open(self, url: str, resource: str, now: datetime, ask: Open) -> Watch:
        secret, expires = secrets.token_urlsafe(32), now + LIFE
        answer = await ask(
            resource,
            {
                "id": str(uuid4()),
                "type": "web_hook",
                "address": url,
                "token": secret,
                "expiration": str(int(expires.astimezone(UTC).timestamp() * 1000)),
            },
        )
        said = answer.get("expiration")
        return Watch(
            vendor_id=answer["id"],
            resource=resource,
            expires_at=datetime.fromtimestamp(int(said) / 1000, UTC) if said else expires,
            secret=secret,
            details={"resourceId": answer["resourceId"]},
        )

    async def _stop_rest(self, known: Sequence[Watch]) -> None:
        """For one that cannot be stopped now nothing that was opened is given away: it ends by itself."""
        try:
            await self.stop(known)
        except (Throttled, VendorUnavailable):
            return

    async def stop(self, known: Sequence[Watch]) -> None:
        for watch in known:
            body = {"id": watch.vendor_id, "resourceId": watch.details.get("resourceId", "")}
            try:
                await self._api.tell(lambda service, body=body: service.channels().stop(body=body))
            except Refusal as error:
                if error.status not in {400, 404}:  # it ended by itself
                    raise
