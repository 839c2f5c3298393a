"""What `catchment up` shows before there is anything to open."""

import io
from pathlib import Path

import pytest

from gateway.commands.up import Terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_watches_is_told_that_it_begins_and_a_pipe_gets_the_link_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen, pipe = Screen(), io.StringIO()
    for target in (screen, pipe):
        Terminal().starting(Path("data"), target)
    assert screen.getvalue() == "Starting Catchment on data …\n"
    assert (pipe.getvalue(), capsys.readouterr().out) == ("", "")
