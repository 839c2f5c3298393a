"""RTF as Outlook stores it (MS-OXRTFCP): packed by references into the last 4096 bytes, which begin with words RTF often has."""

import struct

from gateway.corpus.child import TaskFailed

_HEADER = struct.Struct("<4I")  # bytes behind the first number, bytes of RTF, what kind, a checksum
_PACKED, _PLAIN = 0x75465A4C, 0x414C454D
_BEGINS = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial"
    rb"Times New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW = 4096
_LARGEST = 10 << 20  # as of other RTF files


def unpacked(data: bytes) -> bytes:
    """Raises TaskFailed("damaged") for what is not such RTF; what breaks off is what came before."""
    if len(data) < _HEADER.size:
        raise TaskFailed("damaged", "no RTF")
    _, size, kind, _ = _HEADER.unpack_from(data)
    if size > _LARGEST or kind not in {_PACKED, _PLAIN}:
        raise TaskFailed("damaged", "no RTF, or too much")
    if kind == _PLAIN:
        return data[_HEADER.size :][:size]
    written = bytearray(_BEGINS)
    at = _HEADER.size
    while at < len(data) and len(written) < len(_BEGINS) + size:
        control = data[at]
        at += 1
        for bit in range(8):
            if not control >> bit & 1:
                written += data[at : at + 1]
                at += 1
                continue
            reference = int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")
            at += 2
            back = (len(written) - (reference >> 4)) % _WINDOW
            if not back or at > len(data):  # it refers to itself: the end
                return bytes(written[len(_BEGINS) :][:size])
            for _ in range((reference & 15) + 2):
                written.append(written[-back] if back <= len(written) else 0x20)
    return bytes(written[len(_BEGINS) :][:size])
