"""How an answer is read, record after record."""

import socket
import sys

from gateway.corpus.child import frames
from gateway.corpus.child.answer import Answer


async def test_whoever_keeps_our_frames_does_not_keep_an_answer_from_being_read() -> None:
    """As profilers do, and whatever catches an exception of a finalizer that runs in the middle of it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    answer, kept = Answer(ours, limit=10_000), []
    with ours, theirs:
        for kind, body in ((frames.RECORD, {"text": "one"}), (frames.END, {"stays": True})):
            frames.send(theirs, frames.pack(kind, body))
        sys.setprofile(lambda frame, _event, _argument: kept.append(frame))
        try:
            await answer.read()
        finally:
            sys.setprofile(None)
    assert kept
    assert (answer.records, answer.child_stays) == ([{"text": "one"}], True)
