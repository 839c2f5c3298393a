"""What is really inside a zip-based file is counted, whatever its headers say."""

import io
import mmap
import os
import struct
import tracemalloc
import zipfile

import pytest

from gateway.corpus.child import TaskFailed
from workers.pipeline import zip_guard
from workers.pipeline.zip_guard import check_zip

MIB = 1 << 20


def archive(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return buffer.getvalue()


def zeros(size: int) -> bytes:
    """An archive of one entry with so many zero bytes, made without holding them."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("word/document.xml", "w") as entry,
    ):
        for _ in range(size // MIB):
            entry.write(bytes(MIB))
    return buffer.getvalue()


def declaring(data: bytes, size: int) -> bytes:
    """The same archive, but its one entry claims to be `size` bytes long."""
    claimed = bytearray(data)
    struct.pack_into("<I", claimed, data.find(b"PK\x03\x04") + 22, size)
    struct.pack_into("<I", claimed, data.rfind(b"PK\x01\x02") + 24, size)
    return bytes(claimed)


def reason(data: bytes) -> str:
    with pytest.raises(TaskFailed) as failed:
        check_zip(data)
    return failed.value.reason


def test_a_sound_archive_passes_as_bytes_and_as_a_map() -> None:
    data = archive({"a.xml": b"<a/>" * 100_000, "b.bin": os.urandom(200_000), "empty": b""})
    check_zip(data)
    with mmap.mmap(-1, len(data)) as mapped:
        mapped.write(data)
        check_zip(mapped)


def test_a_ratio_of_a_thousand_to_one_is_no_offence() -> None:
    data = archive({"slide.xml": bytes(20 * MIB)})
    assert 20 * MIB / len(data) > 900
    check_zip(data)


def test_a_declared_bomb_is_refused_before_anything_is_inflated() -> None:
    assert reason(zeros(201 * MIB)) == "too_large"


def test_one_entry_may_not_be_huge() -> None:
    assert reason(zeros(101 * MIB)) == "too_large"


def test_a_bomb_that_declares_little_is_counted_in_little_memory() -> None:
    data = declaring(zeros(300 * MIB), 5_000)
    tracemalloc.start()
    try:
        assert reason(data) == "too_large"
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_the_total_counts_although_no_entry_is_huge() -> None:
    assert reason(archive({f"{number}.xml": bytes(70 * MIB) for number in range(3)})) == "too_large"


def test_a_small_lie_is_damage() -> None:
    assert reason(declaring(archive({"a.xml": b"x" * 1000}), 10)) == "damaged"


@pytest.mark.parametrize("count", [5_001, 60_000])
def test_many_entries_are_refused(count: int) -> None:
    assert reason(archive({f"{number}": b"" for number in range(count)}, zipfile.ZIP_STORED)) == "too_large"


def test_an_encrypted_entry_is_told_from_damage() -> None:
    data = bytearray(archive({"a.xml": b"x" * 1000}))
    data[data.find(b"PK\x03\x04") + 6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    assert reason(bytes(data)) == "encrypted"


def test_an_office_file_behind_a_password_is_encrypted() -> None:
    compound = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600)
    )
    assert reason(compound) == "encrypted"


def test_a_document_whose_manifest_names_encryption_is_encrypted() -> None:
    manifest = (
        b"<m>" + b" " * (zip_guard._PIECE - 10) + b"<manifest:encryption-data/></m>"
    )  # across two pieces
    assert reason(archive({"META-INF/manifest.xml": manifest})) == "encrypted"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_no_office_writes_are_not_tried(method: int) -> None:
    assert reason(archive({"a.xml": bytes(1000)}, method)) == "unsupported"


def test_what_is_no_archive_is_damaged() -> None:
    data = archive({"a.xml": os.urandom(5000), "b.xml": os.urandom(5000)})
    broken = bytearray(data)
    broken[2000] ^= 0xFF
    assert reason(b"PK\x03\x04") == "damaged"
    assert reason(os.urandom(4096)) == "damaged"
    assert reason(data[: len(data) // 2]) == "damaged"
    assert reason(bytes(broken)) == "damaged"


def test_an_archive_in_an_archive_is_not_opened() -> None:
    check_zip(archive({"inner.zip": zeros(300 * MIB)}))
