"""Pictures by OCR, where an engine is installed: `tesseract`, called inside the child with what is left of its limits."""

import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats.draft import Draft

# The child's environment is built from nothing and has no PATH.
_FOLDERS = "/usr/local/bin:/usr/bin:/bin"
_SECONDS = 25


def read(source: Source) -> Extracted:
    draft = Draft({"kind": "text"})
    for paragraph in recognise(bytes(source.data)).split("\n\n"):
        draft.block(paragraph)
    return draft.finish()


@lru_cache(maxsize=1)
def engine() -> str | None:
    return shutil.which("tesseract", path=_FOLDERS)


def version() -> str | None:
    """What the engine calls itself."""
    if (program := engine()) is None:
        return None
    answer = subprocess.run(  # noqa: S603 - a fixed program
        [program, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    words = (answer.stdout or answer.stderr).split()
    return words[1] if len(words) > 1 else None


def recognise(image: bytes, environment: Mapping[str, str] | None = None) -> str:
    """The words in a picture. Raises TaskFailed("needs_ocr") where nothing can read them."""
    if (program := engine()) is None:
        raise TaskFailed("needs_ocr", "no OCR engine is installed")
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed program
            [program, "stdin", "stdout"],
            input=image,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise TaskFailed("too_slow", "OCR took too long") from error
    if answer.returncode != 0:
        raise TaskFailed("damaged", "the picture could not be read")
    return answer.stdout.decode("utf-8", "replace").replace("\f", "\n").strip()
