"""Mail as programs really send it: which of several versions is read, and what an invitation says."""

import pytest

from workers.pipeline.extract import FORMATS, Source, extract

_INVITATION = (
    "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Kick-off in the har\r\n bour\r\nLOCATION:Room 5\\, first floor\r\n"
    "DTSTART:20260601T080000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


def mail(*parts: tuple[str, str], kind: str = "alternative") -> str:
    lines = ["From: a@example.org", "Subject: Kick-off", "MIME-Version: 1.0"]
    lines += [f"Content-Type: multipart/{kind}; boundary=b", ""]
    for mime_type, words in parts:
        lines += ["--b", f"Content-Type: {mime_type}; charset=utf-8", "", words]
    read = extract(Source("\r\n".join([*lines, "--b--", ""]).encode(), "message/rfc822"), FORMATS["eml"])
    return read.text[read.units[1].text_start :] if len(read.units) > 1 else ""


@pytest.mark.parametrize("plain", [(), (("text/plain", " \r\n"),)], ids=["no plain text", "an empty one"])
def test_the_page_of_an_invitation_is_read_although_the_calendar_comes_last(
    plain: tuple[tuple[str, str], ...],
):
    page = ("text/html", "<p>Please bring the plans.</p>")
    assert mail(*plain, page, ("text/calendar", _INVITATION)) == "Please bring the plans."


def test_an_invitation_that_is_nothing_else_says_what_for_and_where():
    said = mail(("text/plain", ""), ("text/calendar", _INVITATION))
    assert "SUMMARY:Kick-off in the harbour" in said
    assert "LOCATION:Room 5, first floor" in said


def test_a_subject_that_is_not_encoded_is_taken_for_western():
    read = extract(
        Source("From: a@b\nSubject: Rückruf für Größe 5\n\nx".encode("cp1252"), "message/rfc822"),
        FORMATS["eml"],
    )
    assert read.text.startswith("Subject: Rückruf für Größe 5\n")


_INVOICE = "<h1>Invoice 4711</h1><p>Two pumps of the Nord series, due on 30 June: EUR 1280.</p>"


@pytest.mark.parametrize("related", [False, True])
def test_a_plain_part_that_only_says_look_elsewhere_leaves_the_word_to_the_page(related: bool):
    stub = "Your mail program does not support HTML. View in your browser: https://example.org/v/1"
    page = ("text/html", _INVOICE)
    if related:
        page = ("multipart/related; boundary=c", f"--c\r\nContent-Type: text/html\r\n\r\n{_INVOICE}\r\n--c--")
    said = mail(("text/plain", stub), page)
    assert said == "Invoice 4711\nTwo pumps of the Nord series, due on 30 June: EUR 1280."


@pytest.mark.parametrize(
    "page",
    [
        "<h1>Invoice 4711</h1><p>Two pumps, due on 30 June.</p><p>Imprint. Unsubscribe.</p>",
        "<p>View in your browser</p>",
        "<p hidden>many words that nobody sees of this page at all</p><p>Invoice</p>",
        "<div>" * 3_000,
    ],
)
def test_a_plain_part_that_says_what_the_page_says_is_read(page: str):
    plain = "Invoice 4711\r\n\r\nTwo pumps, due on 30 June."
    assert mail(("text/plain", plain), ("text/html", page)) == plain.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("parameters", "written", "read"),
    [
        ("; format=flowed; delsp=yes", "A long lin \ne.\n> quot \n> ed\nanswer", "A long line.\n> quoted\nanswer"),
        ("; format=flowed", "A long \nline.\n>> one \n> two\n from\n-- \nAnna", "A long line.\n>> one \n> two\nfrom\n-- \nAnna"),
        ("", "A list: \nof two", "A list: \nof two"),
    ],
)  # fmt: skip
def test_lines_that_flow_are_one(parameters: str, written: str, read: str):
    data = f"From: a@b\nContent-Type: text/plain{parameters}\n\n{written}"
    assert extract(Source(data.encode(), "message/rfc822"), FORMATS["eml"]).text.split("\f")[1] == read
