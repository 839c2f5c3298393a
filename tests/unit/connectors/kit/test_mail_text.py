"""What an author said is found in mails of many clients and four languages, and quickly in hostile ones."""

import time

import pytest

from connectors.kit.mail_text import clean_email_body
from tests.unit.connectors.kit.mail_fixtures import MAILS, Mail


@pytest.mark.parametrize("mail", MAILS, ids=lambda mail: mail.name)
def test_what_the_author_said(mail: Mail) -> None:
    assert clean_email_body(mail.body, content_type=mail.content_type) == mail.said


def test_cleaning_what_is_clean_changes_nothing() -> None:
    for mail in MAILS:
        assert clean_email_body(mail.said, content_type="text") == mail.said


def test_the_limit_is_kept_and_words_stay_whole() -> None:
    text = clean_email_body("word " * 1000, content_type="text", max_chars=103)
    assert len(text) <= 103
    assert text.endswith("word")
    assert len(clean_email_body("x" * 1000, content_type="text", max_chars=50)) == 50


HOSTILE = {
    "on on on": "On " * 200_000,
    "attributions": "On Mon, Jan 1, 2026 at 10:00\n" * 20_000,
    "heads": "From: a\nSent: b\n" * 20_000,
    "one long line": "Am 12.03.2026 schrieb " * 50_000,
    "quotes": "> x\n" * 200_000,
    "spaces": " " * 1_000_000,
    "closings": "Kind regards,\nAnna\nPhone: 1\n" * 20_000,
    "forwards": "---------- Forwarded message ---------\n" * 20_000,
    "forwards of forwards": "x\n---------- Forwarded message ---------\n" * 20_000,
    "small print": "confidential intended " * 50_000,
    "brackets": "[cid:" * 200_000,
    "angles": "<https://" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("content_type", ["text", "html"])
def test_no_mail_takes_long(name: str, content_type: str) -> None:
    """A generous bound: patterns that run away need minutes."""
    begun = time.perf_counter()
    clean_email_body(HOSTILE[name], content_type=content_type)  # pyright: ignore[reportArgumentType]
    assert time.perf_counter() - begun < 20


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 200_000,
        "<b><p>" * 100_000,
        "<blockquote type=cite>" * 50_000 + "x",
        "<table><tr><td>" * 50_000,
        "<" * 1_000_000,
    ],
)
def test_no_markup_takes_long(html: str) -> None:
    begun = time.perf_counter()
    clean_email_body(html, content_type="html")
    assert time.perf_counter() - begun < 20
