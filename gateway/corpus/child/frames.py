"""Frames between parent and child: one kind byte, a four-byte length, then msgpack. Never pickle: the child is not trusted."""

import socket
import struct
from typing import Any, cast

import msgpack

HEAD = struct.Struct(">cI")
TASK, RECORD, END, FAILED = b"T", b"R", b"E", b"F"
TASK_BYTES = 64 * 1024  # a task says what to do; the file itself travels as a descriptor


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


def receive_task(channel: socket.socket) -> tuple[Any, int] | None:
    """Block for the next task and the descriptor of its file; None when the parent hung up. The child's side."""
    first, descriptors, _flags, _address = socket.recv_fds(channel, HEAD.size, 1)
    if not first:
        return None
    head = first + _exactly(channel, HEAD.size - len(first))
    kind, length = HEAD.unpack(head)
    if kind != TASK or length > TASK_BYTES or len(descriptors) != 1:
        raise FrameError("not a task")
    return unpack(_exactly(channel, length)), descriptors[0]


def _exactly(channel: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = channel.recv(length - len(data))
        if not piece:
            raise FrameError("cut off")
        data += piece
    return bytes(data)
