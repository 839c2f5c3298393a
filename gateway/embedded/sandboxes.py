"""The vendors of a demo: sandboxes as one supervised process, and how gateway and worker find them."""

import json
import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from connectors.sandbox.address import HOST, Address, available
from gateway.embedded.preflight import StartupRefused, open_port
from gateway.embedded.private_files import write_private
from gateway.embedded.service import Service

NAME = "sandbox"
_LASTING = 10_000


@dataclass(frozen=True)
class Sandboxes:
    """Of the vendors that are not configured otherwise."""

    addresses: Sequence[Address]
    sockets: Sequence[Sequence[socket.socket]]  # of each, both of its ports

    @classmethod
    def kept(cls, data_dir: Path, configured: Sequence[str]) -> "Sandboxes":
        """On the ports of the last start, because stored delta links name them; on others if those are taken."""
        file = data_dir / "sandbox.json"
        known = _known_ports(file)
        names = [name for name in available() if name not in configured]
        sockets = [[_listener(port) for port in (*known.get(name, []), 0, 0)[:2]] for name in names]
        ports = {
            name: [each.getsockname()[1] for each in pair] for name, pair in zip(names, sockets, strict=True)
        }
        if ports != known:
            write_private(file, json.dumps(ports))
        addresses = [Address(authority=name, port=one, second_port=two) for name, (one, two) in ports.items()]
        return cls(addresses, sockets)

    def service(self) -> Service:
        options: list[str] = []
        for each, pair in zip(self.addresses, self.sockets, strict=True):
            options += ["--authority", each.authority, "--fds", *(str(one.fileno()) for one in pair)]
        return Service(
            name=NAME,
            command=[sys.executable, "-m", "connectors.sandbox", "--seed", "demo", *options],
            sockets=[one for pair in self.sockets for one in pair],
            # Of ours it needs to know nothing.
            environment={
                name: value for name, value in os.environ.items() if not name.startswith("CATCHMENT_")
            },
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """For gateway and worker: our application at each vendor, and where the vendor lives."""
        return {
            f"CATCHMENT_{each.authority.upper()}_{name}": value
            for each in self.addresses
            for name, value in (
                ("CLIENT_ID", each.client_id),
                ("CLIENT_SECRET", each.client_secret),
                ("ENDPOINTS", json.dumps(dict(each.endpoints))),
            )
        }

    @property
    def described(self) -> Mapping[str, Mapping[str, str]]:
        """As instance.json says it."""
        return {each.authority: {"url": each.url, "control_url": each.control_url} for each in self.addresses}


def _known_ports(file: Path) -> dict[str, list[int]]:
    """Of the last start; whatever else the file may say, a demo starts without."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {name: [int(port) for port in ports] for name, ports in found.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


def _listener(wished: int) -> socket.socket:
    """On the wished port, else on one that is likely to be free the next time too: below those which the system lends to
    whoever connects somewhere.
    """
    while True:
        with suppress(StartupRefused):
            return open_port(HOST, wished or _LASTING + secrets.randbelow(_LASTING))
        wished = 0
