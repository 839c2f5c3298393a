"""Frames between parent and child: one kind byte, a four-byte length, then msgpack. Never pickle: the child is not trusted.

The channel keeps messages whole, so that each wakes the other side once: a task and its file are one, an answer nearly
always too. A small file travels in its task's message, a larger one as a descriptor beside it.
"""

import socket
import struct
from typing import Any, cast

import msgpack

HEAD = struct.Struct(">cI")
TASK, RECORD, END, FAILED = b"T", b"R", b"E", b"F"
TASK_BYTES = 64 * 1024  # a task says what to do
MESSAGE_BYTES = 128 * 1024  # with room to spare in the kernel's usual 208 KiB for what is under way


class FrameError(ValueError):
    """What came is not a frame of ours, or is longer than agreed."""


def pack(kind: bytes, body: object) -> bytes:
    data = cast("bytes", msgpack.packb(body, use_bin_type=True))
    return HEAD.pack(kind, len(data)) + data


def unpack(body: bytes | memoryview) -> Any:
    try:
        return msgpack.unpackb(body, raw=False, strict_map_key=True)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise FrameError("not msgpack") from error


def send(channel: socket.socket, data: bytes) -> None:
    """The child's side, which may block: in messages that the other side takes in one go."""
    with memoryview(data) as view:
        for start in range(0, len(data), MESSAGE_BYTES):
            channel.sendall(view[start : start + MESSAGE_BYTES])


def receive_task(channel: socket.socket) -> tuple[Any, bytes | int] | None:
    """Block for the next task and its file, or the file's descriptor; None when the parent hung up. The child's side."""
    message, descriptors, _flags, _address = socket.recv_fds(channel, MESSAGE_BYTES, 1)
    if not message:
        return None
    kind, length = HEAD.unpack_from(message)
    end = HEAD.size + length
    if kind != TASK or length > TASK_BYTES or end > len(message):
        raise FrameError("not a task")
    payload = descriptors[0] if descriptors else message[end:]
    return unpack(message[HEAD.size : end]), payload
