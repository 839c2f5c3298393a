"""The vendors of a demo: sandboxes as one supervised process, and how gateway and worker find them."""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connectors.sandbox.address import HOST, Address, available
from gateway.embedded.preflight import StartupRefused, check_port
from gateway.embedded.private_files import write_private
from gateway.embedded.service import Service

NAME = "sandbox"


@dataclass(frozen=True)
class Sandboxes:
    """Of the vendors that are not configured otherwise."""

    addresses: Sequence[Address]

    @classmethod
    def kept(cls, data_dir: Path, configured: Sequence[str]) -> "Sandboxes":
        """On the ports of the last start, because stored delta links name them; on others if those are taken."""
        file = data_dir / "sandbox.json"
        try:
            known: dict[str, list[int]] = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            known = {}
        ports: dict[str, list[int]] = {}
        for name in available():
            if name not in configured:
                ports[name] = [_port(port, ports) for port in (*known.get(name, []), 0, 0)[:2]]
        if ports != known:
            write_private(file, json.dumps(ports))
        return cls([Address(authority=name, port=one, second_port=two) for name, (one, two) in ports.items()])

    def service(self) -> Service:
        options: list[str] = []
        for each in self.addresses:
            options += ["--authority", each.authority]
            options += ["--port", str(each.port), "--second-port", str(each.second_port)]
        return Service(
            name=NAME,
            command=[sys.executable, "-m", "connectors.sandbox", "--seed", "demo", *options],
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

    def listen(self) -> bool:
        """Whether all of them can be asked; they listen before they have anything to say."""
        try:
            for each in self.addresses:
                socket.create_connection((HOST, each.port), timeout=1).close()
        except OSError:
            return False
        return True


def _port(wished: int, chosen: Mapping[str, Sequence[int]]) -> int:
    try:
        port = check_port(HOST, wished)
    except StartupRefused:
        port = check_port(HOST, 0)
    # Nobody listens on them yet, so the system may offer one twice.
    return _port(0, chosen) if any(port in each for each in chosen.values()) else port
