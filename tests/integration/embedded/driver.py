"""Plays the part of `catchment up`: run_instance with a plain gateway and worker, and every event as a JSON line.

driver.py DATA_DIR PORT [--refuse] [--hang] [--external]
"""

import asyncio
import json
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg

from gateway.embedded.instance import Instance
from gateway.embedded.preflight import StartupRefused
from gateway.embedded.up import Plan, run_instance

GATEWAY = """
import http.server, json, os, pathlib, socket, sys
from gateway.embedded.gate import wait_until_open
instance = pathlib.Path(os.environ["CATCHMENT_DATA_DIR"], "instance.json")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"environment": dict(os.environ), "pid": os.getpid(), "early": early}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
_, option, descriptor = sys.argv
assert option == "--fd"
wait_until_open()
early = json.loads(instance.read_text())
server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
server.socket = socket.socket(fileno=int(descriptor))
server.serve_forever()
"""
WORKER = """
import os, json, signal
print(json.dumps({name: value for name, value in os.environ.items() if "CATCHMENT" in name}), flush=True)
signal.pause()
"""
_printing = threading.Lock()


def say(**fields: Any) -> None:
    with _printing:
        print(json.dumps(fields), flush=True)


def prepare(owner_url: str, _runtime_url: str, _own_url: str) -> dict[str, object]:
    """One more row at every start, so that a test sees what earlier lives left."""
    if "--refuse" in sys.argv:
        raise StartupRefused("The database is of a newer schema.")
    starts = 0
    if "--external" not in sys.argv:
        with psycopg.connect(owner_url, autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS life (id int GENERATED ALWAYS AS IDENTITY)")
            connection.execute("INSERT INTO life DEFAULT VALUES")
            starts = connection.execute("SELECT count(*) FROM life").fetchall()[0][0]
            if "--hang" in sys.argv:
                say(event="preparing")
                connection.execute("SELECT pg_sleep(600)")
    return {"loginUrl": f"http://login/{starts}", "apiKey": "ck_local"}


def main() -> None:
    external = {
        "database_url": "postgresql://runtime@/elsewhere",
        "owner_database_url": "postgresql://owner@/elsewhere",
        "redis_url": "redis://elsewhere",
    }
    plan = Plan(
        data_dir=Path(sys.argv[1]),
        port=int(sys.argv[2]),
        gateway_command=[sys.executable, "-c", GATEWAY],
        worker_command=[sys.executable, "-c", WORKER],
        **(external if "--external" in sys.argv else {}),
    )

    def on_ready(instance: Instance) -> None:
        say(event="ready", instance=instance.model_dump(by_alias=True))

    def show(name: str, line: str) -> None:
        say(event="line", service=name, line=line)

    def emit(event: str, **fields: Any) -> None:
        say(event=event, **fields)

    try:
        asyncio.run(run_instance(plan, prepare=prepare, on_ready=on_ready, show=show, emit=emit))
    except StartupRefused as refused:
        sys.exit(str(refused))


if __name__ == "__main__":
    main()
