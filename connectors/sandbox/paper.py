"""A PDF writer of a few lines: text, one content stream per page, nothing else. And a long manual to write with it."""

from collections.abc import Sequence
from textwrap import wrap

PAGES = 500
_PARTS = (
    "sluice",
    "intake",
    "spillway",
    "turbine",
    "culvert",
    "gauge",
    "pump",
    "filter",
    "transformer",
    "walkway",
)
_WORKS = (
    "is inspected",
    "is greased",
    "is photographed",
    "is measured",
    "is flushed",
    "is locked and tagged",
)
_WHEN = ("every Monday", "after heavy rain", "before the first frost", "once a quarter", "after each alarm")
_WHO = ("the engineer on duty", "two people together", "the shift leader", "the apprentice under supervision")
_TEILE = ("Das Schütz", "Der Einlauf", "Die Pumpe", "Der Pegel", "Der Rechen")


def pdf(pages: Sequence[str], *, title: str) -> bytes:
    """One page per text; lines are wrapped, paragraphs are kept."""
    objects: list[bytes] = [
        b"",
        b"",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    kids: list[str] = []
    for text in pages:
        stream = _stream(text)
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream))
        content = len(objects)
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % content
        )
        kids.append(f"{len(objects)} 0 R")
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>".encode()
    objects.append(b"<</Title(%s)>>" % _escaped(title))
    return _file(objects)


def _file(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets: list[int] = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size, info = len(objects) + 1, len(objects)
    out += b"trailer<</Size %d/Root 1 0 R/Info %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, info, start)
    return bytes(out)


def _stream(text: str) -> bytes:
    lines = [line for paragraph in text.split("\n") for line in (wrap(paragraph, 88) or [""])]
    shown = b" ".join(b"(%s) Tj T*" % _escaped(line) for line in lines)
    return b"BT /F1 11 Tf 14 TL 56 780 Td %s ET" % shown


def _escaped(text: str) -> bytes:
    return (
        text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("cp1252", errors="replace")
    )


def manual_page(number: int) -> str:
    """Every page says which it is, and something no other page says."""

    def pick(words: Sequence[str], step: int) -> str:
        return words[(number * step + number // 7) % len(words)]

    sentences = [
        f"The {pick(_PARTS, 3)} of section {number} {pick(_WORKS, 5)} {pick(_WHEN, 7)} by {pick(_WHO, 11)}.",
        f"Inspection code OM-{number:04d} is written on the plate; spare part number SP-{number * 37 % 9973:04d}.",
        f"If the reading is above {120 + number * 13 % 140} cm, {pick(_WHO, 2)} informs the control room at once.",
        f"{pick(_TEILE, 3)} in Abschnitt {number} wird nach Prüfplan {number * 17 % 911} kontrolliert.",
    ]
    return f"Operating manual of the water works, page {number}\n\n" + "\n".join(sentences)


def manual() -> bytes:
    return pdf(
        [manual_page(number) for number in range(1, PAGES + 1)], title="Operating manual of the water works"
    )
