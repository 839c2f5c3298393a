"""What `catchment ingest` finds in the folders it is given, and by which name each file is known from then on."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import InvalidRequest

# What a folder holds besides knowledge.
LEFT_OUT = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".catchment"}
# A file by which a folder says that it is a cache (bford.info/cachedir) or an installation of Python.
SIGNS_OF_LEFT_OUT = ("CACHEDIR.TAG", "pyvenv.cfg")


@dataclass
class Item:
    path: Path
    source_id: str
    outcome: str = ""
    status: str = ""
    reason: str = ""
    job_id: str | None = None

    @property
    def ending(self) -> str:
        return "duplicate" if self.outcome == "duplicate" else self.status

    @property
    def shown(self) -> str:
        """On one line, whatever the name holds: a question mark stands for what has no form of its own."""
        return "".join(letter if letter.isprintable() else "?" for letter in str(self.path))

    @property
    def is_noteworthy(self) -> bool:
        """To be named even where a bar shows the rest."""
        return self.status in {"failed", "skipped"}

    def left_out(self, status: str, reason: str) -> "Item":
        self.outcome, self.status, self.reason = "refused", status, reason
        return self


def given(text: str) -> Path:
    """A path as it was typed. `Path("")` is the folder one is in, and nobody who says nothing means that."""
    if not text:
        raise InvalidRequest("An empty path names nothing: say . for the folder you are in.")
    return Path(text)


def walk(paths: list[Path]) -> Iterator[Item]:
    """Each file once. Two that would be known by one name are refused, for one would replace the other."""
    known: dict[str, Path] = {}
    for item in _found(paths):
        other = known.setdefault(item.source_id, item.path)
        if other is item.path:
            yield item
        elif os.path.realpath(item.path) != os.path.realpath(other):
            raise InvalidRequest(
                f"{other} and {item.path} would both be known as {item.source_id}: name the folder that holds both."
            )


def _found(paths: list[Path]) -> Iterator[Item]:
    for path in paths:
        if path.is_file():
            yield Item(path, path.name)
        elif path.is_dir():
            yield from _in_folder(path)
        else:
            raise InvalidRequest(f"There is no file or folder {path}.")


def _in_folder(path: Path) -> Iterator[Item]:
    root = path.absolute() if path.name != ".." else path.resolve()
    above = root.parent if path.name else root
    inside = os.path.realpath(path)
    unread: list[OSError] = []

    def item(found: Path) -> Item:
        return Item(found, str((root / found.relative_to(path)).relative_to(above)))

    for place, folders, files in os.walk(path, onerror=unread.append):
        if any(sign in files for sign in SIGNS_OF_LEFT_OUT) and Path(place) != path:
            folders.clear()
            continue
        folders[:] = sorted(set(folders) - LEFT_OUT)
        linked = {name for name in folders if Path(place, name).is_symlink()}  # which os.walk does not follow
        for name in sorted((set(files) - LEFT_OUT) | linked):
            found = Path(place, name)
            if found.is_symlink() and not Path(os.path.realpath(found)).is_relative_to(inside):
                yield item(found).left_out("skipped", "a link that leads out of the folder")
            elif found.is_file():
                yield item(found)
    for error in unread:
        yield item(Path(error.filename)).left_out("failed", str(error.strerror))
