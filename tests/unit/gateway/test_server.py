"""What the server says to who does not speak its language, or does not come to the point."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.embedded.preflight import open_port
from gateway.server import MOST_HEAD_BYTES, server_of


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    """Stands for the gateway: answers with the size of the body."""
    size, more = 0, scope["type"] == "http"
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": f"{size:06}".encode()})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = server_of(_hello)
    server.config.lifespan = "off"
    with open_port("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await serving


async def answer(port: int, said: bytes) -> tuple[int, bytes]:
    """The status and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    async with asyncio.timeout(10):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


@pytest.mark.parametrize("more", [b"a" * 1000 + b"\r\nX: ", b"a" * 1000], ids=["many headers", "one header"])
async def test_a_head_without_end_is_refused(port: int, more: bytes) -> None:
    endless = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + more * (MOST_HEAD_BYTES // 1000 + 1)
    status, body = await answer(port, endless[: MOST_HEAD_BYTES + 1])
    assert status == 400
    assert json.loads(body)["code"] == "request.invalid"
    assert str(MOST_HEAD_BYTES) in json.loads(body)["detail"]


async def test_a_large_body_is_no_large_head(port: int) -> None:
    size = MOST_HEAD_BYTES * 3
    head = f"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n".encode()
    assert await answer(port, head + b"a" * size) == (200, f"{size:06}".encode())


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01\x02\x00\x01", b"FOO /v1/whoami HTTP/1.1\r\n\r\n", b"hello\r\n\r\n"]
)
async def test_what_is_no_http_is_answered_as_every_other_mistake(port: int, said: bytes) -> None:
    status, body = await answer(port, said)
    problem = json.loads(body)
    assert (status, problem["status"], problem["code"]) == (400, 400, "request.invalid")
    assert problem["requestId"]
