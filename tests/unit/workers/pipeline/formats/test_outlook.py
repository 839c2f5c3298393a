"""Outlook messages whose body is not where one looks first."""

import struct
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import cast

import pytest

from gateway.corpus.child import TaskFailed
from tests.fixtures.mail_files import (
    BODY,
    DISPLAY_CC,
    HTML,
    MESSAGE_ID,
    SENDER_MAIL,
    SENDER_NAME,
    SUBJECT,
    Values,
    attached_message,
    msg,
)
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats.rtf_compressed import unpacked

_RTF, _SENDER_SMTP, _REPRESENTED_SMTP = 0x1009, 0x5D01, 0x5D02
# The two examples of MS-OXRTFCP.
_HELLO = "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
_CROSSING = "1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0"
_FROM_A_PAGE = (
    rb"{\rtf1\ansi\ansicpg1252\fromhtml1 {\fonttbl{\f0 Arial;}}{\*\htmltag19 <html>}{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 "
    rb"Words of \'fc{\*\htmltag84 <b>}\htmlrtf {\b\htmlrtf0  weight\htmlrtf }\htmlrtf0{\*\htmltag92 </b>}\htmlrtf\par}\htmlrtf0"
    rb"{\*\htmltag72 </p>}}"
)


def read(values: Values, *attachments: Values) -> Extracted:
    data = msg({SUBJECT: "Subject", **values}, tuple(map(attached_message, attachments)))
    return extract(Source(data, ""), FORMATS["msg"])


def plain(rtf: bytes) -> bytes:
    return struct.pack("<4I", len(rtf) + 12, len(rtf), 0x414C454D, 0) + rtf


def test_packed_rtf_is_unpacked():
    assert unpacked(bytes.fromhex(_HELLO)) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    assert unpacked(bytes.fromhex(_CROSSING)) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert unpacked(plain(b"{\\rtf1 a}")) == b"{\\rtf1 a}"
    assert unpacked(bytes.fromhex(_HELLO)[:-12]).startswith(b"{\\rtf1\\ansi\\ansicpg1252")


@pytest.mark.parametrize("data", [b"", b"short", bytes(16), struct.pack("<4I", 9, 1 << 30, 0x75465A4C, 0)])
def test_what_is_no_packed_rtf_is_damage(data: bytes):
    with pytest.raises(TaskFailed):
        unpacked(data)


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (bytes.fromhex(_HELLO), "hello world"),
        (plain(_FROM_A_PAGE), "Words of ü weight"),
        (plain(rb"{\rtf1 {\b one}\par two}"), "one\ntwo"),
    ],
)
def test_a_body_that_is_only_rtf_is_read(packed: bytes, text: str):
    extracted = read({_RTF: packed})
    assert extracted.text == f"Subject: Subject\f{text}"
    assert extracted.units[-1].locator["part"] == "body"


def test_a_body_of_broken_rtf_costs_itself():
    extracted = read({_RTF: b"broken"})
    assert extracted.text == "Subject: Subject"
    assert extracted.warnings


@pytest.mark.parametrize(
    ("values", "sender"),
    [
        ({SENDER_MAIL: "/o=Firm/cn=anna", _SENDER_SMTP: "anna@example.org"}, '"Anna" <anna@example.org>'),
        (
            {SENDER_MAIL: "/o=Firm/cn=anna", _REPRESENTED_SMTP: "anna@example.org"},
            '"Anna" <anna@example.org>',
        ),
        ({SENDER_MAIL: "anna@example.org"}, '"Anna" <anna@example.org>'),
        ({SENDER_MAIL: "/o=Firm/cn=anna"}, "Anna"),
    ],
)
def test_a_sender_within_a_company_has_the_address_people_know(values: Values, sender: str):
    assert f"\nFrom: {sender}\f" in read({SENDER_NAME: "Anna", **values, BODY: "Hello"}).text


def test_a_message_inside_keeps_its_page_and_what_its_head_says():
    inner: Values = {
        SUBJECT: "Inner",
        HTML: b"<p>Only a <b>page</b></p>",
        SENDER_NAME: "Bo",
        SENDER_MAIL: "bo@example.org",
        DISPLAY_CC: "Cy",
        MESSAGE_ID: "<inner@example.org>",
    }
    (attachment,) = read({BODY: "outer"}, inner).attachments
    mail = cast("EmailMessage", message_from_bytes(attachment.data, policy=default))
    assert (mail["From"], mail["Cc"], mail["Message-ID"]) == (
        "Bo <bo@example.org>",
        "Cy",
        "<inner@example.org>",
    )
    assert mail.get_content_type() == "text/html"
    assert "Only a <b>page</b>" in mail.get_content()


def test_a_message_inside_that_is_only_rtf_keeps_its_words():
    (attachment,) = read({BODY: "outer"}, {SUBJECT: "Inner", _RTF: bytes.fromhex(_HELLO)}).attachments
    assert b"hello world" in attachment.data
