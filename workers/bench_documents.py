"""Documents of a realistic size for `bench extract`, one maker per format that can be written with what is installed."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from email.message import EmailMessage

_WORDS = (
    "river", "bridge", "report", "quarter", "budget", "meeting", "supplier", "contract", "delivery",
    "schedule", "inspection", "pressure", "valve", "turbine", "engineer", "drawing", "tolerance",
    "measurement", "record", "invoice", "payment", "account", "balance", "customer", "question",
    "answer", "proposal",
)  # fmt: skip

_OPENDOCUMENT = "application/vnd.oasis.opendocument."
_NAMESPACES = {"office": "office", "text": "text", "table": "table", "draw": "drawing"}


def sentence(rng: random.Random, words: int = 14) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words)).capitalize() + "."


def paragraph(rng: random.Random) -> str:
    return " ".join(sentence(rng) for _ in range(6))


def text(rng: random.Random) -> bytes:
    return "\n\n".join(paragraph(rng) for _ in range(120)).encode()


def markdown(rng: random.Random) -> bytes:
    parts = [f"## {sentence(rng, 4)}\n\n" + "\n\n".join(paragraph(rng) for _ in range(5)) for _ in range(25)]
    return "\n\n".join(parts).encode()


def docx(rng: random.Random) -> bytes:
    """About twenty pages."""
    from docx import Document  # noqa: PLC0415

    document = Document()
    for _ in range(20):
        document.add_heading(sentence(rng, 4), 1)
        for _ in range(5):
            document.add_paragraph(paragraph(rng))
        table = document.add_table(4, 3)
        for cell in (cell for row in table.rows for cell in row.cells):
            cell.text = sentence(rng, 3)
    return _saved(document.save)


def pptx(rng: random.Random) -> bytes:
    from pptx import Presentation  # noqa: PLC0415

    deck = Presentation()
    for _ in range(30):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = sentence(rng, 4)  # pyright: ignore[reportOptionalMemberAccess]
        slide.placeholders[1].text = "\n".join(sentence(rng, 8) for _ in range(6))  # pyright: ignore[reportAttributeAccessIssue]
    return _saved(deck.save)


def xlsx(rng: random.Random) -> bytes:
    from openpyxl import Workbook  # noqa: PLC0415

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Data")
    sheet.append(["Number", "Name", "Note", "Price", "Place"])
    for number in range(1500):
        sheet.append([number, sentence(rng, 2), sentence(rng, 5), rng.random() * 100, rng.choice(_WORDS)])
    return _saved(book.save)


def csv(rng: random.Random) -> bytes:
    rows = [f"{n},{sentence(rng, 2)},{sentence(rng, 5)},{rng.random():.4f}" for n in range(2000)]
    return "\n".join(["Number,Name,Note,Price", *rows]).encode()


def tsv(rng: random.Random) -> bytes:
    return csv(rng).replace(b",", b"\t")


def code(rng: random.Random) -> bytes:
    """A module of eighty functions, a dozen lines each."""
    functions: list[str] = []
    for n in range(80):
        names = [f"{rng.choice(_WORDS)}_{rng.choice(_WORDS)}" for _ in range(10)]
        body = "".join(
            f"    {name} = {rng.choice(names)}({rng.choice(_WORDS)}, {rng.randrange(1000)})\n"
            for name in names
        )
        functions.append(
            f'def {names[0]}_{n}(value):\n    """{sentence(rng)}"""\n{body}    return value\n\n\n'
        )
    return "".join(functions).encode()


def rst(rng: random.Random) -> bytes:
    parts = [f"{(title := sentence(rng, 4))}\n{'=' * len(title)}\n\n{paragraph(rng)}" for _ in range(40)]
    return "\n\n".join(parts).encode()


def org(rng: random.Random) -> bytes:
    return "\n\n".join(f"* {sentence(rng, 4)}\n\n{paragraph(rng)}" for _ in range(40)).encode()


def html(rng: random.Random) -> bytes:
    parts = [
        f"<section><h2>{sentence(rng, 4)}</h2>"
        + "".join(f"<p>{paragraph(rng)}</p>" for _ in range(6))
        + "</section>"
        for _ in range(30)
    ]
    return f"<html><head><title>Page</title></head><body><main>{''.join(parts)}</main></body></html>".encode()


def eml(rng: random.Random) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = sentence(rng, 4), "a@example.org", "b@example.org"
    message.set_content("\n\n".join(paragraph(rng) for _ in range(30)))
    message.add_attachment(rng.randbytes(40_000), maintype="application", subtype="pdf", filename="a.pdf")
    return message.as_bytes()


def rtf(rng: random.Random) -> bytes:
    body = "\\par\\par ".join(paragraph(rng) for _ in range(60))
    return f"{{\\rtf1\\ansi\\ansicpg1252 {body}\\par}}".encode()


def odt(rng: random.Random) -> bytes:
    body = "".join(
        f'<text:h text:outline-level="1">{sentence(rng, 4)}</text:h>'
        + "".join(f"<text:p>{paragraph(rng)}</text:p>" for _ in range(8))
        for _ in range(40)
    )
    return _opendocument("text", body)


def ods(rng: random.Random) -> bytes:
    rows = [["Number", "Name", "Note"], *([str(n), sentence(rng, 2), sentence(rng, 5)] for n in range(1500))]
    cells = [
        "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
            for cell in row
        )
        for row in rows
    ]
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    return _opendocument("spreadsheet", f'<table:table table:name="Data">{body}</table:table>')


def odp(rng: random.Random) -> bytes:
    slides = (
        "".join(
            f"<draw:frame><draw:text-box><text:p>{sentence(rng, 8)}</text:p></draw:text-box></draw:frame>"
            for _ in range(7)
        )
        for _ in range(30)
    )
    body = "".join(f'<draw:page draw:name="{n}">{slide}</draw:page>' for n, slide in enumerate(slides))
    return _opendocument("presentation", body)


def epub(rng: random.Random) -> bytes:
    chapters = {f"c{n}.xhtml": html(rng).decode() for n in range(8)}
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    container = '<container><rootfiles><rootfile full-path="content.opf"/></rootfiles></container>'
    package = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    files = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "content.opf": package}
    return _zipped(files | chapters)


def json_records(rng: random.Random) -> bytes:
    records = [{"id": n, "name": sentence(rng, 2), "notes": [paragraph(rng)]} for n in range(400)]
    return json.dumps({"records": records}).encode()


def xml(rng: random.Random) -> bytes:
    items = "".join(
        f'<item nr="{n}"><name>{sentence(rng, 3)}</name><text>{paragraph(rng)}</text></item>'
        for n in range(400)
    )
    return f"<list>{items}</list>".encode()


def notebook(rng: random.Random) -> bytes:
    cells = [
        {"cell_type": "markdown", "source": f"## {sentence(rng, 4)}\n\n{paragraph(rng)}"}
        if n % 2
        else {"cell_type": "code", "source": f"value_{n} = {n}\nprint(value_{n})", "outputs": []}
        for n in range(120)
    ]
    return json.dumps({"cells": cells, "metadata": {}}).encode()


def pdf(rng: random.Random) -> bytes:
    """Thirty pages of forty lines, written by hand: nothing that is installed writes PDF."""
    objects: list[bytes] = []
    pages = 30
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(pages))
    objects += [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {pages}/Kids[{kids}]>>".encode()]
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for n in range(pages):
        lines = "".join(f"({sentence(rng, 11)}) Tj T* " for _ in range(40))
        stream = f"BT /F1 11 Tf 16 TL 60 780 Td {lines}ET".encode()
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents {5 + 2 * n} 0 R>>"
        objects += [page.encode(), b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)]
    data = b"%PDF-1.4\n"
    offsets: list[int] = []
    for number, item in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, item)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return data + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)


# Format → its type and its maker. Nothing that is installed writes Outlook's own format and that of old spreadsheets.
MAKERS: dict[str, tuple[str, Callable[[random.Random], bytes]]] = {
    "pdf": ("application/pdf", pdf),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", docx),
    "pptx": ("application/vnd.openxmlformats-officedocument.presentationml.presentation", pptx),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", xlsx),
    "ods": (f"{_OPENDOCUMENT}spreadsheet", ods),
    "csv": ("text/csv", csv),
    "tsv": ("text/tab-separated-values", tsv),
    "html": ("text/html", html),
    "eml": ("message/rfc822", eml),
    "rtf": ("text/rtf", rtf),
    "odt": (f"{_OPENDOCUMENT}text", odt),
    "odp": (f"{_OPENDOCUMENT}presentation", odp),
    "epub": ("application/epub+zip", epub),
    "json": ("application/json", json_records),
    "xml": ("application/xml", xml),
    "ipynb": ("application/x-ipynb+json", notebook),
    "markdown": ("text/markdown", markdown),
    "text": ("text/plain", text),
    "code": ("text/x-python", code),
    "rst": ("text/x-rst", rst),
    "org": ("text/org", org),
}


def _opendocument(kind: str, body: str) -> bytes:
    names = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for short, name in _NAMESPACES.items()
    )
    content = (
        f"<office:document-content {names}><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{_OPENDOCUMENT}{kind}"/></manifest:manifest>'
    )
    return _zipped(
        {"mimetype": _OPENDOCUMENT + kind, "content.xml": content, "META-INF/manifest.xml": manifest}
    )


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def _zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()
