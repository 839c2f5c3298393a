"""What a reader refuses or bounds by itself, before the limits of its child would end it."""

import email.message
import io
import json
import stat
import zipfile

import pytest
from pptx import Presentation
from reportlab.lib.utils import ImageReader

from gateway.corpus.child import TaskFailed
from tests.fixtures import mail_files, office_files
from tests.fixtures.format_files import picture as small_picture
from tests.unit.workers.pipeline.formats import pdf_files
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.formats import mail, picture, web


def read(name: str, data: bytes, mime_type: str = "", **fields):
    return extract(Source(data, mime_type, **fields), FORMATS[name])


def reason(name: str, data: bytes, mime_type: str = "") -> str:
    with pytest.raises(TaskFailed) as caught:
        read(name, data, mime_type)
    return caught.value.reason


def test_pages_nested_too_deeply_are_refused_before_they_are_parsed():
    assert reason("html", b"<div>" * 3_000) == "damaged"
    deep = b"<div>" * 300 + b"<p>bottom</p>" + b"</div>" * 300
    assert read("html", deep).text == "bottom"
    web.check_depth("<p>unclosed <li>item " * 5_000)  # neither nests


def test_more_attachments_than_allowed_are_named_not_taken():
    message = mail_files.mail("Many", "Text")
    for number in range(mail.MOST_ATTACHMENTS + 3):
        message.add_attachment(b"x", maintype="application", subtype="pdf", filename=f"{number}.pdf")
    found = read("eml", mail_files.as_bytes(message))
    assert len(found.attachments) == mail.MOST_ATTACHMENTS
    assert len(found.warnings) == 3


def test_attachments_share_one_budget(monkeypatch):
    monkeypatch.setattr(mail, "ATTACHMENT_BYTES", 1000)
    message = mail_files.mail("Large", "Text")
    for number, size in enumerate((600, 600, 300)):
        message.add_attachment(
            bytes([65]) * size, maintype="application", subtype="pdf", filename=f"{number}.pdf"
        )
    found = read("eml", mail_files.as_bytes(message))
    assert [item.name for item in found.attachments] == ["0.pdf", "2.pdf"]


def test_a_mail_with_endless_parts_or_depth_is_refused():
    parts = b"".join(b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n" for _ in range(mail.MOST_PARTS + 1))
    head = b"Subject: s\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    assert reason("eml", head + parts + b"--b--\r\n") == "too_large"
    inner: email.message.EmailMessage = mail_files.mail("inner", "x")
    for number in range(mail.DEEPEST + 5):
        outer = mail_files.mail(f"m{number}", "x")
        outer.add_attachment(inner)
        inner = outer
    assert reason("eml", mail_files.as_bytes(inner)) == "damaged"


def test_json_nested_too_deeply_is_refused():
    assert reason("json", b"[" * 100_000 + b"]" * 100_000) == "damaged"
    assert reason("json", b"[" * 300 + b"1" + b"]" * 300) == "damaged"


@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY e SYSTEM "file:///etc/hostname">', '<!ENTITY a "ha"><!ENTITY e "&a;&a;&a;">'],
)
def test_entities_are_refused_in_xml_and_in_containers(declaration):
    xml = f"<!DOCTYPE a [{declaration}]><a>&e;</a>"
    assert reason("xml", xml.encode()) == "damaged"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("content.xml", xml)
    assert reason("odt", buffer.getvalue()) == "damaged"


def test_repeats_in_open_documents_are_bounded():
    body = '<office:body><office:text><text:p>a<text:s text:c="2000000000"/>b</text:p></office:text></office:body>'
    assert len(read("odt", office_files.open_document(office_files.ODT, body)).text) == 102


def test_a_cell_that_never_ends_is_damage():
    assert reason("csv", b'a,b\n"' + b"x" * (2 << 20)) == "damaged"


def test_a_csv_that_a_browser_calls_excel_is_read():
    assert read("xls", b"Name;Ort\nAnna;Ulm\n", "application/vnd.ms-excel").text.endswith(
        "Name: Anna | Ort: Ulm"
    )


def test_a_line_per_record_is_json_too():
    lines = "\n".join(json.dumps({"n": number}) for number in range(3)).encode()
    assert read("json", lines).text == "n: 0\n\nn: 1\n\nn: 2"


def test_a_picture_is_read_where_an_engine_is_installed(tmp_path, monkeypatch):
    program = tmp_path / "tesseract"
    program.write_text(
        "#!/bin/sh\n[ \"$1 $2\" = 'stdin stdout' ] && head -c 4 | grep -q PNG && printf 'Words in a picture\\n\\nand below\\f'\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(picture, "_FOLDERS", str(tmp_path))
    picture.engine.cache_clear()
    try:
        assert read("image", small_picture()).text == "Words in a picture\n\nand below"
        image = ImageReader(io.BytesIO(small_picture()))
        scan = pdf_files.pdf(
            lambda canvas: canvas.drawImage(image, 0, 0, 200, 200), pdf_files.lines(["A page of text."])
        )
        found = read("pdf", scan)
        assert [unit.locator["page"] for unit in found.units] == [1, 2]
        assert found.text == "Words in a picture\n\nand below\fA page of text."
    finally:
        picture.engine.cache_clear()


def test_without_an_engine_scanned_pages_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(picture, "_FOLDERS", str(tmp_path))
    picture.engine.cache_clear()
    try:
        image = ImageReader(io.BytesIO(small_picture()))
        pages = [lambda canvas: canvas.drawImage(image, 0, 0, 200, 200), pdf_files.lines(["A page of text."])]
        found = read("pdf", pdf_files.pdf(*pages))
        assert found.text == "A page of text."
        assert found.warnings == ["1 scanned pages were left out: no OCR engine is installed"]
        assert reason("pdf", pdf_files.pdf(pages[0])) == "needs_ocr"
        assert reason("image", small_picture()) == "needs_ocr"
    finally:
        picture.engine.cache_clear()


def altered(data: bytes, entry: str, old: bytes, new: bytes) -> bytes:
    """An office file with one of its parts written otherwise."""
    saved = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as given, zipfile.ZipFile(saved, "w") as archive:
        for name in given.namelist():
            content = given.read(name)
            assert name != entry or old in content
            archive.writestr(name, content.replace(old, new) if name == entry else content)
    return saved.getvalue()


def wide_apart() -> bytes:
    return office_files.workbook(office_files.far_apart)


def deck() -> bytes:
    saved = io.BytesIO()
    Presentation().save(saved)
    return saved.getvalue()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("xls", lambda: office_files.old_workbook([["City", "Number"], ["Bonn", 5.0]])[:4683]),
        ("xlsx", lambda: altered(wide_apart(), "xl/styles.xml", b"<fonts", b"<fonts x='<")),
        ("xlsx", lambda: altered(wide_apart(), "[Content_Types].xml", b"PartName", b"PartNme")),
        ("xlsx", lambda: altered(wide_apart(), "xl/worksheets/sheet1.xml", b"</sheetData>", b"")),
        ("pptx", lambda: altered(deck(), "ppt/_rels/presentation.xml.rels", b" Type=", b" Tyqe=")),
        ("rtf", lambda: rb"{\rtf1\ansi\uc words}"),
    ],
)
def test_what_the_engine_stumbles_over_is_damage_and_no_crash(name, make):
    assert reason(name, make()) == "damaged"


def test_a_date_beyond_all_years_does_not_cost_the_mail():
    message = b"From: a@example.org\r\nDate: Mon, 13 Nov 99999999999 09:00:00 +0100\r\n\r\nThe text.\r\n"
    assert "The text." in read("eml", message).text
