"""Before a reader opens an office file or a book: how much is really in it.

These files are zip archives, and what their headers say about sizes is a claim. So everything is inflated once, in small
pieces that are thrown away, and counted. A sound file of ten megabytes costs a few milliseconds; a bomb is refused before
a reader that trusts it could allocate anything. There is no rule about compression ratios: sound slides reach 600 to one.
Archives inside the archive are bytes like any others: nothing here opens them.
"""

import io
import mmap
import zipfile
import zlib
from typing import cast

from gateway.corpus.child import TaskFailed

MIB = 1 << 20
MOST_ENTRIES = 5_000
MOST_BYTES = 200 * MIB  # of all entries together
MOST_BYTES_PER_ENTRY = 100 * MIB
_PIECE = 64 * 1024
_MOST_AT_ONCE = 2 * MIB  # the directory of an archive is read in one go, before its entries can be counted

_ENCRYPTED_FLAG = 0x1
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_MANIFEST = "META-INF/manifest.xml"
_ENCRYPTION_DATA = b"encryption-data"


def check_zip(data: "bytes | mmap.mmap") -> None:
    """Raises TaskFailed: `too_large`, `encrypted`, `damaged` or `unsupported`."""
    if data[: len(_COMPOUND_FILE)] == _COMPOUND_FILE and data.find(_ENCRYPTED_PACKAGE) >= 0:
        raise TaskFailed("encrypted", "an office file behind a password")
    try:
        with zipfile.ZipFile(cast("io.BufferedIOBase", _View(data))) as archive:
            _check(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        raise TaskFailed("damaged", f"not a sound archive ({type(error).__name__})") from error


def _check(archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise TaskFailed("too_large", f"{len(entries)} entries in the archive")
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise TaskFailed("too_large", f"the archive declares more than {MOST_BYTES} bytes")
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise TaskFailed("encrypted", "an entry of the archive is encrypted")
        if entry.compress_type not in _METHODS:
            raise TaskFailed("unsupported", f"compression method {entry.compress_type}")
        _inflate(archive, entry)


def _inflate(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """An entry that lies about its length ends here; so what all of them declare is what all of them hold."""
    # Reading would end where the header says it does; and before it ends, the count must have had its say.
    declared, entry.file_size = entry.file_size, MOST_BYTES_PER_ENTRY + 2 * _PIECE
    is_manifest = entry.filename == _MANIFEST
    size, tail = 0, b""
    with archive.open(entry) as stream:
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > MOST_BYTES_PER_ENTRY:
                raise TaskFailed("too_large", f"an entry holds more than {MOST_BYTES_PER_ENTRY} bytes")
            if is_manifest:
                if _ENCRYPTION_DATA in tail + piece:
                    raise TaskFailed("encrypted", "a document behind a password")
                tail = piece[-len(_ENCRYPTION_DATA) :]
    if size != declared:
        raise zipfile.BadZipFile("an entry is not as long as its header says")


class _View(io.RawIOBase):
    """The content as the file that `zipfile` wants, without a copy of it; no single read may be large."""

    def __init__(self, data: "bytes | mmap.mmap") -> None:
        super().__init__()
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._data)}[whence]
        if start + offset < 0:
            raise OSError("before the start of the archive")
        self._position = start + offset
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        rest = max(0, len(self._data) - self._position)
        length = rest if size < 0 else min(size, rest)
        if length > _MOST_AT_ONCE:
            raise TaskFailed("too_large", "the directory of the archive is too long")
        piece = self._data[self._position : self._position + length]
        self._position += len(piece)
        return piece
