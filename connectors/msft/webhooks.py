"""Change notifications of Graph at our door: the handshake, what was said, and whether it was really Graph."""

import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from connectors.kit.contract import Delivery, Notice

MOST_NOTICES = 1000
LIFECYCLE: Mapping[str, Literal["missed", "removed", "reauthorize"]] = {
    "missed": "missed",
    "subscriptionRemoved": "removed",
    "reauthorizationRequired": "reauthorize",
}


class MicrosoftWebhooks:
    def handshake(self, delivery: Delivery) -> str | None:
        """Graph sends a token before it makes a subscription and wants it back, as plain text."""
        token = delivery.query.get("validationToken")
        return token or None

    def notices(self, delivery: Delivery) -> Sequence[Notice]:
        """Several subscriptions may share one delivery."""
        try:
            body: Any = json.loads(delivery.body)
        except ValueError as error:
            raise ValueError("not JSON") from error
        value = cast("dict[str, Any]", body).get("value") if isinstance(body, dict) else None
        if not isinstance(value, list) or len(cast("list[Any]", value)) > MOST_NOTICES:
            raise ValueError("not a collection of notifications")
        return [_notice(entry) for entry in cast("list[Any]", value)]

    def verify(self, notice: Notice, secret: str, delivery: Delivery) -> bool:
        del delivery  # nothing is signed: the secret itself comes along
        return hmac.compare_digest(notice.proof.encode(), secret.encode())


def _notice(entry: Any) -> Notice:
    if not isinstance(entry, dict):
        raise ValueError("a notification that is no object")  # noqa: TRY004 - the contract's word
    told = cast("dict[str, Any]", entry)
    route, event = told.get("subscriptionId"), told.get("lifecycleEvent")
    if not isinstance(route, str) or not route:
        raise ValueError("a notification without its subscription")
    kind = LIFECYCLE.get(str(event)) if event else "change"
    if kind is None:
        raise ValueError("an unknown lifecycle event")
    return Notice(
        route=route, delivery_id=_delivery_id(told), kind=kind, proof=str(told.get("clientState") or "")
    )


def _delivery_id(told: Mapping[str, Any]) -> str | None:
    """What tells a replay from a second change: the notification's own id, or the state of the resource it speaks of.

    A drive's notification says neither; two of them may be two changes, and asking once too often costs one request.
    """
    if isinstance(told.get("id"), str) and told["id"]:
        return str(told["id"])
    resource = told.get("resourceData")
    if not isinstance(resource, dict):
        return None
    data = cast("dict[str, Any]", resource)
    etag, item = data.get("@odata.etag"), data.get("id")
    if not etag or not item:
        return None
    return f"{told['subscriptionId']}:{told.get('changeType')}:{item}:{etag}"


WEBHOOKS = MicrosoftWebhooks()
