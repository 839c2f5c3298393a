"""What a vendor says about an item is taken as far as the façade takes it."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from connectors.kit.contract import Item
from connectors.kit.policy import SyncPolicy
from gateway.ingestion.schemas import TextContent
from workers.sync.handover import Sender

ID = UUID(int=1)
SOURCE = SimpleNamespace(
    id=ID, connection_id=ID, connection_user=ID, user_id=None, scope="personal", feature_code=None
)


def test_a_mail_to_thousands_is_taken_without_the_list_of_them() -> None:
    everybody = [f"somebody.{number}@example.org" for number in range(5000)]
    item = Item(
        external_id="m-1",
        source_kind="outlook_message",
        name="To all",
        container_id="inbox",
        metadata={"from": "ada@example.org", "to": everybody, "categories": ["news"]},
    )
    sender = Sender(cast("Any", SOURCE), SyncPolicy())
    request = sender.request(item, TextContent(text="Hello."), parent=None, urgent=False)
    assert request is not None
    assert request.metadata["from"] == "ada@example.org"
    assert request.metadata["categories"] == ["news"]
    assert "to" not in request.metadata
