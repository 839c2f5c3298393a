"""`python -m connectors.sandbox --authority msft --port 8500 --seed demo`: sandboxes as a process of their own.

Several are named by repeating `--authority`, each with its `--port` and `--second-port`, or with the two listening sockets it
inherits as `--fds`, in the same order; `--all` is every vendor there is. One line of JSON says that they answer, and where. They end with SIGTERM or SIGINT.
"""

import argparse
import json
import os
import signal
import socket
import sys
import threading

from connectors.sandbox.address import available
from connectors.sandbox.server import listening, start


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m connectors.sandbox", description="Stand-ins for vendors."
    )
    parser.add_argument("--authority", action="append", choices=available(), default=[])
    parser.add_argument("--port", action="append", type=int, default=[], help="0 or none: any free one")
    parser.add_argument("--second-port", action="append", type=int, default=[], help="origin of downloads")
    parser.add_argument("--fds", action="append", type=int, nargs=2, default=[], help="inherited, listening")
    parser.add_argument("--all", action="store_true", help="every vendor there is")
    parser.add_argument("--seed", choices=("empty", "demo"), default="empty")
    asked = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    authorities: list[str] = list(available()) if asked.all else asked.authority
    if not authorities:
        parser.error("name an --authority, or --all")

    def port_of(ports: list[int], index: int) -> int:
        return ports[index] if index < len(ports) else 0

    # All listen before the first is built, and whoever else starts at the same time goes first.
    sockets = [(socket.socket(fileno=one), socket.socket(fileno=two)) for one, two in asked.fds] or [
        listening(port_of(asked.port, index), port_of(asked.second_port, index))
        for index in range(len(authorities))
    ]
    os.nice(5)
    running = [
        start(authority, seed=asked.seed, sockets=pair)
        for authority, pair in zip(authorities, sockets, strict=True)
    ]
    where = {each.address.authority: {"url": each.url, "controlUrl": each.control_url} for each in running}
    sys.stdout.write(json.dumps({"ready": where}) + "\n")
    sys.stdout.flush()
    stop.wait()
    for each in running:
        each.stop()


main()
