"""Google's notifications: headers of a channel for Drive and Calendar, a Pub/Sub message for Gmail."""

import base64
import hmac
import json
from collections.abc import Sequence

from connectors.kit.contract import Delivery, Notice


class GoogleWebhooks:
    def handshake(self, delivery: Delivery) -> str | None:
        """Google asks nothing back; the first message of a channel, `sync`, is a notice like any other and harmless."""
        del delivery
        return None

    def notices(self, delivery: Delivery) -> Sequence[Notice]:
        channel = delivery.headers.get("x-goog-channel-id")
        if channel is not None:
            return self._channel(channel, delivery)
        return [_mail(delivery)]

    def _channel(self, channel: str, delivery: Delivery) -> Sequence[Notice]:
        state = delivery.headers.get("x-goog-resource-state")
        if state is None:
            raise ValueError("a channel's message without a state")
        if state == "sync":
            return []  # it only says that the channel is open
        return [
            Notice(
                route=channel,
                delivery_id=f"{channel}:{delivery.headers.get('x-goog-message-number', '')}",
                proof=delivery.headers.get("x-goog-channel-token", ""),
            )
        ]

    def verify(self, notice: Notice, secret: str, delivery: Delivery) -> bool:
        del delivery
        return bool(secret) and hmac.compare_digest(notice.proof.encode(), secret.encode())


def _mail(delivery: Delivery) -> Notice:
    """Pub/Sub proves itself by the token in the URL of its push subscription."""
    try:
        message = json.loads(delivery.body)["message"]
        said = json.loads(base64.b64decode(message["data"]))
        address, number = str(said["emailAddress"]), str(message["messageId"])
    except (KeyError, TypeError) as error:
        raise ValueError("neither a channel's message nor a Pub/Sub push") from error
    return Notice(
        route=address.lower(), delivery_id=f"pubsub:{number}", proof=delivery.query.get("token", "")
    )


WEBHOOKS = GoogleWebhooks()
