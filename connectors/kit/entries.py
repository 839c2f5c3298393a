"""One odd object costs itself: what a vendor names and nobody can read as an item is a failure, and the rest goes on."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC

from connectors.kit.contract import Failure, Item, ItemFailed

# What reading something shaped otherwise than expected raises: a date before the year 1, a number that is none, a missing key.
ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass
class Entries:
    """What one answer named in a container."""

    container_id: str
    items: list[Item] = field(default_factory=list[Item])
    failures: list[Failure] = field(default_factory=list[Failure])

    @contextmanager
    def reading(self, external_id: str, name: object = "") -> Generator[None]:
        """Around the reading of one object; what was added to `items` before it broke off stays. So that what is asked for
        along with it may be refused too: nothing is concluded from that about the object itself.
        """
        try:
            yield
        except ItemFailed as error:
            self._fail(external_id, name, error.reason, error.detail)
        except ODD as error:
            self._fail(external_id, name, "unreadable", type(error).__name__)

    def _fail(self, external_id: str, name: object, reason: str, detail: str) -> None:
        self.failures.append(
            Failure(
                external_id=external_id,
                name=str(name or ""),
                reason=reason,
                detail=detail,
                container_id=self.container_id,
            )
        )

    def add(self, item: Item) -> None:
        """Raises for a time that no clock in UTC shows: nobody could store it."""
        if item.modified_at is not None:
            item.modified_at.astimezone(UTC)
        self.items.append(item)
