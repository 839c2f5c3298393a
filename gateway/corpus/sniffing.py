"""What a file really is: judged by its bytes (magika, its model ships in the wheel), never by its name alone.

The name only helps where bytes cannot tell: which language a piece of source code is in.
"""

import asyncio
import mimetypes
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magika import Magika

UNKNOWN = "application/octet-stream"
# Text as far as bytes go; for these the file name may say which kind of text it is.
_VAGUE = {"text/plain", UNKNOWN, "application/x-empty", "inode/x-empty"}
_MARKDOWN = {".md", ".markdown", ".mdown"}


@lru_cache(maxsize=1)
def _magika() -> "Magika":
    from magika import Magika  # noqa: PLC0415 - brings a neural network along; a start must not wait for it

    return Magika()


def _identify(data: bytes, file_name: str | None) -> str:
    found = _magika().identify_bytes(data).output
    mime_type = found.mime_type or UNKNOWN
    suffix = PurePosixPath(file_name or "").suffix.lower()
    if suffix in _MARKDOWN and (found.is_text or mime_type in _VAGUE):
        return "text/markdown"
    if mime_type in _VAGUE and found.is_text:
        guessed = mimetypes.guess_type(file_name or "", strict=False)[0]
        return guessed if guessed and guessed.startswith("text/") else "text/plain"
    return mime_type


async def sniff(data: bytes, file_name: str | None = None) -> str:
    """The MIME type of these bytes."""
    if not data:
        return "application/x-empty"
    return await asyncio.to_thread(_identify, data, file_name)
