"""ClickUp's notifications: JSON with the hook's id, signed over the raw bytes."""

import hashlib
import hmac
import json
from collections.abc import Sequence

from connectors.kit.contract import Delivery, Notice


class ClickUpWebhooks:
    def handshake(self, delivery: Delivery) -> str | None:
        """ClickUp asks nothing back."""
        del delivery
        return None

    def notices(self, delivery: Delivery) -> Sequence[Notice]:
        try:
            said = json.loads(delivery.body)
            hook, event = str(said["webhook_id"]), str(said["event"])
        except (KeyError, TypeError) as error:
            raise ValueError("not a notification of ClickUp's") from error
        # A deletion has no history: its body is all there is to tell it from another.
        history = said.get("history_items")
        numbers = [
            str(item.get("id"))
            for item in (history if isinstance(history, list) else ())
            if isinstance(item, dict)
        ]
        name = ":".join(numbers) or hashlib.sha256(delivery.body).hexdigest()
        return [
            Notice(
                route=hook,
                delivery_id=f"{hook}:{event}:{name}"[:500],
                proof=delivery.headers.get("x-signature", ""),
                signed=True,
            )
        ]

    def verify(self, notice: Notice, secret: str, delivery: Delivery) -> bool:
        expected = hmac.new(secret.encode(), delivery.body, hashlib.sha256).hexdigest()
        return bool(secret) and hmac.compare_digest(notice.proof.strip().lower().encode(), expected.encode())


WEBHOOKS = ClickUpWebhooks()
