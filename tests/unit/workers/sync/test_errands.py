"""What went wrong with a round is told in the words of the ledger, not by the names of our classes."""

import pytest

from connectors.google.api import Refusal
from connectors.kit.contract import ContainerForbidden, ItemFailed, ItemGone, VendorUnavailable
from gateway.errors import StoreUnavailable
from workers.sync.errands import name_of
from workers.sync.listing import ListingBroke


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ItemFailed("forbidden", "Mail.Read was not granted"), "forbidden"),
        (ContainerForbidden("drive"), "forbidden"),
        (ItemGone("404"), "not_there"),
        (VendorUnavailable("503"), "unavailable"),
        (Refusal(403, "accessNotConfigured"), "not_enabled"),
        (ListingBroke("in a circle"), "unavailable"),
        (StoreUnavailable("Postgres is away."), "store.unavailable"),
        (KeyError("a name"), "KeyError"),
    ],
)
def test_an_error_has_a_name_that_tells_why(error: Exception, name: str) -> None:
    assert name_of(error) == name
