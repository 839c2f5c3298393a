"""Refusals before the start: one sentence each, and nothing left behind."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embedded import preflight
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.preflight import StartupRefused, check_disk, check_folder, open_port
from tests.integration.embedded.conftest import forget


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            StartupRefused, match=rf"^Port {port} on 127\.0\.0\.1 is already taken .*--port\.$"
        ):
            open_port("127.0.0.1", port)
    with open_port("127.0.0.1", port) as listener:
        assert listener.getsockname()[1] == port


def test_port_0_is_any_free_port_and_from_then_on_ours() -> None:
    with open_port("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert port > 0
        with pytest.raises(StartupRefused, match="already taken"):
            open_port("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port", "sentence"),
    [
        ("no-such-host.invalid", 8440, "host name no-such-host.invalid is not known"),
        ("192.0.2.1", 8440, "cannot listen on 192.0.2.1 port 8440"),
        ("127.0.0.1", 70000, "Port 70000 does not exist"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(host: str, port: int, sentence: str) -> None:
    with pytest.raises(StartupRefused, match=sentence):
        open_port(host, port)


def test_a_usable_folder_is_made_private_and_left_empty(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    check_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "sentence"),
    [
        (Path("/sys/catchment"), "cannot be written to"),  # closed to root as well
        (Path("/etc/passwd"), "a file is in its place"),
        (Path("/etc/passwd/data"), "a file is in its place"),
        (Path("/tmp") / ("x" * 300), "cannot be written to"),
        (Path("/tmp/a\0b"), "is not a usable path"),
        (Path("/tmp/a\udcffb"), "is not a usable path"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(folder: Path, sentence: str) -> None:
    with pytest.raises(StartupRefused, match=sentence) as refused:
        check_folder(folder)
    assert "\n" not in str(refused.value)


def test_a_nearly_full_disk_is_refused(tmp_path: Path) -> None:
    check_disk(tmp_path)
    check_disk(tmp_path, lambda _: preflight.LEAST_FREE_BYTES)
    with pytest.raises(StartupRefused, match=r"is full: Catchment needs at least 200 MB"):
        check_disk(tmp_path, lambda _: preflight.LEAST_FREE_BYTES - 1)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A disk of 24 MB, where the system lets us have one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "catchment-test", str(disk)]
    mounted = (
        shutil.which("mount") and not subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode
    )
    yield disk if mounted else None
    if mounted:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_while_the_database_is_made_is_named(
    small_disk: Path | None, tmp_path: Path
) -> None:
    if small_disk is None:
        said = 'FATAL:  could not write to file "pg_wal/xlogtemp.1": No space left on device\n'
        with pytest.raises(StartupRefused, match="is full"):
            raise preflight.failed_program("Postgres", "could not create its files", said, tmp_path)
        return
    with pytest.raises(StartupRefused, match="is full"):
        check_disk(small_disk)
    check_folder(small_disk / "data dir")
    with pytest.raises(StartupRefused, match="is full"):
        EmbeddedPostgres(small_disk / "data dir").prepare()
    assert [path.name for path in (small_disk / "data dir").iterdir()] == ["secrets"]
    forget(small_disk / "data dir")


@given(st.text())
def test_whatever_a_program_printed_the_refusal_is_one_line(printed: str) -> None:
    refused = preflight.failed_program("gateway", "stopped while starting", printed, None)
    assert len(str(refused).splitlines()) == 1


def test_the_telling_line_is_chosen() -> None:
    printed = "LOG: starting\n2026-01-01 UTC [7] FATAL:  bad setting\nHINT: none\nLOG: shut down\n"
    refused = preflight.failed_program("postgres", "stopped while starting", printed, None)
    assert str(refused) == "Postgres stopped while starting: FATAL: bad setting"
