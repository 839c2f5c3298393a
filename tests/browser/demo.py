"""`catchment up --demo`, the way a newcomer starts it, with its sandboxes to change things in."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.fixtures.processes import REPOSITORY, until

START_SECONDS = 180.0


class Demo:
    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder, self.process = folder, process

    @property
    def instance(self) -> dict[str, Any]:
        return json.loads((self.folder / "instance.json").read_text())

    @property
    def url(self) -> str:
        return self.instance["url"]

    def api(self, **options: Any) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.instance['apiKey']}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, **options)

    def sandbox(self, authority: str) -> httpx.AsyncClient:
        """The hand that changes the vendor's world."""
        return httpx.AsyncClient(base_url=self.instance["sandbox"][authority]["controlUrl"], timeout=60)

    async def login_url(self, email: str | None = None) -> str:
        async with self.api() as api:
            wanted: dict[str, Any] = {}
            if email is not None:
                users = (await api.get("/v1/users", params={"limit": 200})).json()["items"]
                wanted["userId"] = next(user["id"] for user in users if user["email"] == email)
            return (await api.post("/v1/login-links", json=wanted)).json()["url"]

    async def answers(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(
                f"`catchment up` ended with {self.process.returncode}: {self.output()[-2000:]}"
            )
        if not (self.folder / "instance.json").exists():
            return False
        async with httpx.AsyncClient() as client:
            try:
                return (await client.get(f"{self.url}/readyz")).status_code == 200
            except httpx.TransportError:
                return False

    def output(self) -> str:
        return (self.folder.parent / "output.txt").read_text(errors="replace")


@asynccontextmanager
async def demo(**settings: str) -> AsyncIterator[Demo]:
    with tempfile.TemporaryDirectory(prefix="catchment-demo-") as place:
        folder = Path(place) / "data"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CATCHMENT_")}
        with (Path(place) / "output.txt").open("wb") as output:
            process = subprocess.Popen(  # noqa: ASYNC220 - a start is short, and the stop is waited for
                [sys.executable, "-m", "gateway", "up", "--demo", "--port", "0", "--data-dir", str(folder)],
                cwd=REPOSITORY,
                env=environment | settings,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = Demo(folder, process)
        try:
            await until(running.answers, START_SECONDS, "the demo to be ready")
            yield running
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            psutil.wait_procs([child for child in children if child.is_running()], timeout=1)
            for child in children:
                if child.is_running():
                    child.kill()
            process.wait(10)
