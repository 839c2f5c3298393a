"""What is said about a picture in an office file for those who cannot see it."""

import re
from typing import Any

_FILE_NAME = re.compile(r".*\.(?:png|jpe?g|gif|bmp|tiff?|svg|emf|wmf|webp)", re.IGNORECASE)


def alternative_text(properties: Any) -> str:
    """On one line; without the name of the file, which programs put there when nobody wrote a word."""
    words = " ".join(str(properties.get("descr") or "").split())
    return "" if _FILE_NAME.fullmatch(words) else words
