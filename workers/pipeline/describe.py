"""Which formats are read here, by what, within which limits: `python -m workers.pipeline.describe` prints it as JSON.

The command line asks this process rather than importing it: nothing imports the workers.
"""

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gateway.corpus.child import Limits
from workers.pipeline.extract import FORMATS, MIME_TYPES, POLICY_SKIPS, UNSTRUCTURED, Format
from workers.pipeline.formats import general, picture

STANDARD_LIBRARY = "python"


def formats() -> list[dict[str, Any]]:
    return [_described(format_) for format_ in FORMATS.values()]


def limits() -> dict[str, Any]:
    """Of one child, whatever it reads."""
    found = Limits()
    return {
        "memoryBytes": found.memory_bytes,
        "cpuSeconds": found.cpu_seconds,
        "wallSeconds": found.wall_seconds,
        "outputBytes": found.output_bytes,
    }


def engine_version(format_: Format) -> str | None:
    """None where the engine is not installed."""
    if not format_.engine:
        return ".".join(map(str, sys.version_info[:3]))
    if format_.engine == "tesseract":
        return picture.version()
    try:
        return version(format_.engine)
    except PackageNotFoundError:
        return None


def _described(format_: Format) -> dict[str, Any]:
    found = engine_version(format_)
    needs = general.NEEDS.get(format_.name)
    on = found is not None and (format_.engine != UNSTRUCTURED or general.available(format_.name))
    return {
        "format": format_.name,
        "on": on,
        "engine": format_.engine or STANDARD_LIBRARY,
        "version": found,
        "why": None if on else f"{needs or format_.engine} is not installed",
        "inputBytes": format_.input_bytes,
        "ownChild": format_.isolated,
        "otherEngine": UNSTRUCTURED
        if format_.engine != UNSTRUCTURED and format_.name in general.PARTITIONERS
        else None,
        "mimeTypes": sorted(mime for mime, name in MIME_TYPES.items() if name == format_.name),
    }


def main() -> None:
    sys.stdout.write(json.dumps({"formats": formats(), "limits": limits(), "leftOut": POLICY_SKIPS}) + "\n")


if __name__ == "__main__":
    main()
