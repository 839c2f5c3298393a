"""XML as people and programs write it: remarks between the words, names of characters, marks in front."""

import codecs

import pytest

from workers.pipeline.extract import FORMATS, Source, extract


def seen(document: str | bytes) -> str:
    data = document.encode() if isinstance(document, str) else document
    return extract(Source(data, "application/xml", "file.xml"), FORMATS["xml"]).text


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("<r><p><!-- a remark -->Hello <b>there</b></p></r>", "p: Hello there"),
        ("<r><p><?page 3?>Hello <b>there</b> you</p></r>", "p: Hello there you"),
        ("<r><p>One<!-- a remark --> word</p></r>", "p: One word"),
        ("<p><b>x <!-- a remark -->y</b> z</p>", "p: x y z"),
    ],
)
def test_words_beside_a_remark_are_read_and_the_remark_is_not(document: str, text: str):
    assert seen(document) == text


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("<p>five&nbsp;apples &mdash; J&uuml;rg &amp; I</p>", "p: five apples — Jürg & I"),
        ("<!DOCTYPE article SYSTEM 'x.dtd'><p>five&nbsp;apples<b>x</b></p>", "p: five applesx"),
        ("<p><![CDATA[written &nbsp; so]]> &eacute;</p>", "p: written &nbsp; so é"),
        ("<!DOCTYPE article SYSTEM 'x.dtd'><p>&product;<b>two</b></p>", "p: &product;two"),
    ],
)
def test_a_character_by_its_name_is_read_whoever_declares_it(document: str, text: str):
    assert seen(document) == text


def test_blank_lines_behind_a_byte_order_mark_cost_nothing():
    assert seen(codecs.BOM_UTF8 + b"\n<?xml version='1.0'?>\n<a>x</a>") == "a: x"
