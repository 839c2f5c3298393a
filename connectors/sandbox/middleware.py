"""Around every vendor's app: counts what was asked, and lets go wrong what was ordered to."""

import asyncio
import time

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connectors.sandbox.faults import ANSWERED, BENT
from connectors.sandbox.world import World


class Watched:
    """Outermost. `/_control` passes untouched and uncounted."""

    def __init__(self, app: ASGIApp, world: World) -> None:
        self._app, self._world = app, world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/_control"):
            await self._app(scope, receive, send)
            return
        counted = _Counting(send)
        began = time.monotonic()
        try:
            await self._answer(scope, receive, counted)
        finally:
            self._world.requests.add(
                method=scope["method"],
                path=scope["path"],
                query=scope["query_string"].decode("latin-1"),
                route=scope.get("sandbox.route") or getattr(scope.get("endpoint"), "__name__", "fault"),
                status=counted.status,
                size=counted.size,
                at=began,
                took=time.monotonic() - began,
            )

    async def _answer(self, scope: Scope, receive: Receive, send: "_Counting") -> None:
        where = f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
        if fault := self._world.faults.take(*ANSWERED, path=where, method=scope["method"]):
            response = self._world.refusal(fault, Request(scope, receive))
            await response(scope, receive, send)
            return
        fault = self._world.faults.take(*BENT, path=where, method=scope["method"])
        if fault and fault.kind == "slow":
            await asyncio.sleep(float(fault.options.get("seconds", 1)))
        if fault and fault.kind == "drop":
            # Promised and never sent: the server closes the connection in the middle of the body.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
            await send({"type": "http.response.body", "body": b"{", "more_body": False})
            return
        if fault and fault.kind == "cut_json":
            await self._app(scope, receive, _Cutting(send))
            return
        await self._app(scope, receive, send)


class _Counting:
    def __init__(self, send: Send) -> None:
        self._send = send
        self.status, self.size = 0, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)


class _Cutting:
    """Half of the body under a length that fits it: valid HTTP, broken JSON."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message = {}
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        half = self._body[: len(self._body) // 2]
        kept = [pair for pair in self._start["headers"] if pair[0] != b"content-length"]
        await self._send({**self._start, "headers": [*kept, (b"content-length", str(len(half)).encode())]})
        await self._send({"type": "http.response.body", "body": half})
