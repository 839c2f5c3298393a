"""The sandbox of Microsoft as one ASGI application."""

from starlette.applications import Starlette
from starlette.routing import Route

from connectors.sandbox.msft.dispatch import Graph
from connectors.sandbox.msft.downloads import Downloads
from connectors.sandbox.msft.identity import Identity
from connectors.sandbox.msft.world import MicrosoftWorld

VERBS = ["GET", "POST", "PATCH", "DELETE", "PUT"]


def build(world: MicrosoftWorld) -> Starlette:
    identity, graph, downloads = Identity(world), Graph(world), Downloads(world)
    return Starlette(
        routes=[
            Route("/v1.0/{rest:path}", graph.answer, methods=VERBS),
            Route("/sites/{site}/_layouts/15/download.aspx", downloads.download),
            Route("/common/discovery/instance", identity.instance),
            Route("/{tenant}/v2.0/.well-known/openid-configuration", identity.discovery),
            Route("/{tenant}/discovery/v2.0/keys", identity.keys),
            Route("/{tenant}/oauth2/v2.0/authorize", identity.authorize, methods=["GET", "POST"]),
            Route("/{tenant}/oauth2/v2.0/token", identity.token, methods=["POST"]),
        ]
    )
