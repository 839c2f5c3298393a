"""Under which name an original is saved."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.originals import saved_as


def name_in(header: str) -> str:
    found = re.fullmatch(r"attachment; filename=\"[^\"\\]*\"; filename\*=UTF-8''([^;\" ]+)", header)
    assert found, header
    return unquote(found.group(1))


@pytest.mark.parametrize(
    ("title", "mime_type", "name"),
    [
        ("report.pdf", "application/pdf", "report.pdf"),
        ("Größe 文.docx", "application/msword", "Größe 文.docx"),
        ("SSO reset", "text/plain; charset=utf-8", "SSO reset.txt"),
        ("Page", "text/html", "Page.html"),
        ("Something", "not a type", "Something"),
        ('../../etc/"x"\r\nSet-Cookie: a', None, "_.._etc__x___Set-Cookie_ a"),
        ("invoice\u202efdp.exe", None, "invoice_fdp.exe"),
        ("", "application/pdf", "the-id.pdf"),
        (" . ", None, "the-id"),
        ("a" * 1000 + ".pdf", None, "a" * 150 + ".pdf"),
    ],
)
def test_an_original_is_saved_under_the_name_of_its_document(title: str, mime_type: str | None, name: str):
    assert name_in(saved_as(title, mime_type, "the-id")) == name


@given(st.text(), st.text() | st.none())
def test_no_title_leaves_the_header_or_the_folder(title: str, mime_type: str | None):
    header = saved_as(title, mime_type, "the-id")
    assert re.fullmatch(r"[ -~]+", header)
    assert not set('/\\:\r\n\0"') & set(name_in(header))
