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
