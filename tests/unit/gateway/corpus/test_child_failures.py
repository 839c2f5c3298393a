"""How a child that left without an answer is spoken of."""

import signal

import pytest

from gateway.corpus.child import PoolUnavailable
from gateway.corpus.child.failures import from_exit


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (-signal.SIGXCPU, "too_slow"),
        (-signal.SIGPROF, "too_slow"),
        (-signal.SIGABRT, "too_large"),
        (127, "too_large"),  # the dynamic loader found no memory
        (-signal.SIGXFSZ, "output_limit"),
        (-signal.SIGSEGV, "crashed"),
        (1, "crashed"),
    ],
)
def test_every_end_has_a_reason(status: int, reason: str) -> None:
    assert from_exit(status).reason == reason


def test_a_kill_from_outside_is_not_the_files_fault() -> None:
    with pytest.raises(PoolUnavailable):
        from_exit(-signal.SIGKILL)
