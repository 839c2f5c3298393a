"""The demo tenant."""

from connectors.sandbox.msft.world import MicrosoftWorld


def plant(world: MicrosoftWorld) -> None:
    world.create({"kind": "site", "name": "Works"})
