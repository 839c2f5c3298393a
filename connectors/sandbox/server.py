"""Runs sandboxes: in a thread for a test, in a process for the demo.

A vendor's package has three modules: `registration` (CLIENT_ID, CLIENT_SECRET, `endpoints(url, second_url)`; imports nothing
heavy), `world` (`make(clock) -> World`) and `app` (`build(world) -> Starlette`, without the control API: that is added here).
"""

import asyncio
import socket
import threading
from datetime import datetime
from importlib import import_module
from typing import cast

import uvicorn
from starlette.applications import Starlette

from connectors.sandbox.address import HOST, Address
from connectors.sandbox.clock import Clock
from connectors.sandbox.control import control_routes
from connectors.sandbox.middleware import Watched
from connectors.sandbox.world import World

_STOP_SECONDS = 10.0
Sockets = tuple[socket.socket, socket.socket]


class _Bound:
    """A vendor's world behind two listening sockets."""

    def __init__(self, authority: str, *, sockets: Sockets, seed: str, clock: Clock) -> None:
        self.sockets = list(sockets)
        ports: list[int] = [each.getsockname()[1] for each in sockets]
        self.address = Address(authority=authority, port=ports[0], second_port=ports[1])
        vendor = f"connectors.sandbox.{authority}"
        self.world = cast("World", import_module(f"{vendor}.world").make(clock))
        self.world.url, self.world.second_url = self.address.url, self.address.second_url
        self.world.reset(seed)
        app = cast("Starlette", import_module(f"{vendor}.app").build(self.world))
        app.router.routes[:0] = control_routes(self.world)
        config = uvicorn.Config(
            Watched(app, self.world),
            loop="asyncio",
            http="httptools",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)


def listening(port: int = 0, second_port: int = 0) -> Sockets:
    """From here on whoever connects only waits; 0 is any free port."""
    return _listener(port), _listener(second_port)


def _listener(port: int) -> socket.socket:
    # Named as TCP, or asyncio leaves Nagle's algorithm on and each answer's body waits 40 ms for the client's word.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    listener.listen(128)
    return listener


class RunningSandbox:
    """One sandbox in a thread of this process. `world` is for a look inside; change it through the control API."""

    def __init__(self, bound: _Bound) -> None:
        self._bound = bound
        self.address = bound.address
        self.url = bound.address.url
        self.second_url = bound.address.second_url
        self.control_url = bound.address.control_url
        self.endpoints = dict(bound.address.endpoints)
        self.client_id = bound.address.client_id
        self.client_secret = bound.address.client_secret
        self.world = bound.world
        self._thread = threading.Thread(
            target=lambda: asyncio.run(bound.server.serve(sockets=bound.sockets)),
            name=f"sandbox {bound.address.authority}",
            daemon=True,
        )
        # The sockets listen already: whoever asks before the loop runs only waits a moment.
        self._thread.start()

    def stop(self) -> None:
        self._bound.server.should_exit = True
        self._thread.join(_STOP_SECONDS)


def start(
    authority: str, *, seed: str = "empty", sockets: Sockets | None = None, at: datetime | None = None
) -> RunningSandbox:
    """Without sockets on any free ports; `at` holds the clock still until the control API advances it."""
    return RunningSandbox(_Bound(authority, sockets=sockets or listening(), seed=seed, clock=Clock(at)))
