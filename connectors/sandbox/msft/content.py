"""The bytes of a file: made when somebody first asks, so that a start costs nothing."""

import base64
from collections.abc import Callable
from functools import cached_property


class Content:
    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make

    @classmethod
    def of(cls, data: bytes) -> "Content":
        return cls(lambda: data)

    @cached_property
    def data(self) -> bytes:
        return self._make()

    @cached_property
    def quick_xor(self) -> str:
        return quick_xor_hash(self.data)


def quick_xor_hash(data: bytes) -> str:
    """OneDrive's hash: byte i is XORed into 160 bits at position 11 i, wrapping around; then the length into the end.

    Bytes 160 apart meet at the same position, so the data is folded first and only 160 bytes are left to place.
    """
    padded = data + bytes(-len(data) % 160)
    folded = 0
    for start in range(0, len(padded), 160):
        folded ^= int.from_bytes(padded[start : start + 160])
    state = 0
    for index, byte in enumerate(folded.to_bytes(160)):
        spread = byte << (index * 11 % 160)
        state ^= (spread | spread >> 160) & ((1 << 160) - 1)
    digest = bytearray(state.to_bytes(20, "little"))
    for index, byte in enumerate(len(data).to_bytes(8, "little")):
        digest[12 + index] ^= byte
    return base64.b64encode(bytes(digest)).decode()
