"""`catchment mcp`: the running instance as an MCP server on standard input and output, for agents that start a command.

It only carries messages between stdio and the gateway's /mcp, with the instance's key: the tools, the roles and the
query log are the gateway's own.
"""

import asyncio
from typing import Any

from gateway.commands.api import ApiKey, DataDir, Url, connected

EXAMPLES = 'Example, in an agent\'s settings: {"command": "catchment", "args": ["mcp", "--data-dir", "…"]}'


def mcp(url: Url = None, api_key: ApiKey = None, data_dir: DataDir = None) -> None:
    """Serve the corpus to an agent over stdio."""
    with connected(url, api_key, data_dir) as api:
        api.call("GET", "/whoami")  # a wrong address or key is one sentence now, not a broken session later
    asyncio.run(_bridge(api.url, api.client.key))


async def _bridge(url: str, key: str) -> None:
    import httpx2  # noqa: PLC0415 - the SDK's own HTTP client
    from mcp.client import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{url.rstrip('/')}/mcp", http_client=http)
        async with Client(transport, cache=None) as remote, stdio_server() as (read, write):
            server = _carrier(remote)
            await server.run(read, write, server.create_initialization_options())


def _carrier(remote: Any) -> Any:
    """A server that has nothing of its own."""
    import mcp_types as types  # noqa: PLC0415
    from mcp.server import Server  # noqa: PLC0415

    def cursor(params: types.PaginatedRequestParams | None) -> str | None:
        return params.cursor if params else None

    async def list_tools(_ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await remote.list_tools(cursor=cursor(params))

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await remote.call_tool(params.name, params.arguments)

    async def list_resources(
        _ctx: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await remote.list_resources(cursor=cursor(params))

    async def list_templates(
        _ctx: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return await remote.list_resource_templates(cursor=cursor(params))

    async def read_resource(_ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await remote.read_resource(params.uri)

    return Server(
        "catchment",
        title="Catchment",
        instructions=remote.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
