"""The door for agents at /mcp. The protocol's library takes a second to load: the first agent waits for it, not every start."""

import asyncio
from contextlib import AsyncExitStack
from importlib import import_module

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.tenancy.access import Reader

router = APIRouter(include_in_schema=False)


class McpDoor:
    """Opens `gateway.mcp_server` when the first agent comes, and closes it with the gateway."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._open = AsyncExitStack()
        self._endpoint: ASGIApp | None = None

    async def endpoint(self) -> ASGIApp:
        async with self._opening:
            if self._endpoint is not None:
                return self._endpoint
            server = await asyncio.to_thread(import_module, "gateway.mcp_server")
            endpoint = server.McpEndpoint()
            await self._open.enter_async_context(endpoint.running())
            self._endpoint = endpoint
            return endpoint

    async def aclose(self) -> None:
        await self._open.aclose()


class _HandedOver(Response):
    """A response that another ASGI application writes."""

    def __init__(self, endpoint: ASGIApp) -> None:
        super().__init__()
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint(scope, receive, send)


@router.api_route("/mcp", methods=["GET", "POST", "DELETE"])
async def mcp(request: Request, _principal: Reader) -> Response:
    """Whoever may read gets in; what a tool needs beyond that, it asks for itself."""
    return _HandedOver(await request.app.state.mcp.endpoint())
