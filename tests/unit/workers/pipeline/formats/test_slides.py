"""Slides: marks of lists, and what readers remarked."""

import io

import pytest
from pptx import Presentation
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml

from workers.pipeline.chunk import chunk
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_A = "http://schemas.openxmlformats.org/drawingml/2006/main"


def read(deck) -> Extracted:
    saved = io.BytesIO()
    deck.save(saved)
    return extract(Source(saved.getvalue(), ""), FORMATS["pptx"])


def listed(*items: tuple[str, str]) -> str:
    """Each item with the properties of its paragraph."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    body = slide.shapes.add_textbox(0, 0, 9, 9).text_frame._txBody
    for properties, text in items:
        body.append(parse_xml(f'<a:p xmlns:a="{_A}">{properties}<a:r><a:t>{text}</a:t></a:r></a:p>'))
    return read(deck).text


def numbered(form: str, level: int = 0, start: str = "") -> str:
    return f'<a:pPr lvl="{level}"><a:buAutoNum type="{form}"{start}/></a:pPr>'


def test_a_numbered_list_on_a_slide_has_its_numbers():
    assert (
        listed(
            (numbered("arabicPeriod"), "one"),
            (numbered("alphaLcParenR", 1), "one a"),
            (numbered("alphaLcParenR", 1), "one b"),
            (numbered("arabicPeriod"), "two"),
            (numbered("alphaLcParenR", 1), "two a"),
            ("", "words"),
            (numbered("arabicPeriod"), "one again"),
            (numbered("romanUcParenBoth", start=' startAt="4"'), "four"),
        )
        == "1. one\n  a) one a\n  b) one b\n2. two\n  a) two a\nwords\n1. one again\n(IV) four"
    )


def test_bullets_on_a_slide_are_marked_where_they_show():
    assert (
        listed(
            ('<a:pPr><a:buChar char="•"/></a:pPr>', "marked"),
            ('<a:pPr lvl="1"/>', "below"),
            ('<a:pPr lvl="1"><a:buNone/></a:pPr>', "only indented"),
        )
        == "- marked\n  - below\n  only indented"
    )


def test_the_number_of_a_slide_is_none_of_its_words():
    field = '<a:fld id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}" type="slidenum"><a:t>‹#›</a:t></a:fld>'
    assert listed((field, "words")) == "words"


@pytest.mark.parametrize(
    "content",
    [
        (
            '<p:cmLst xmlns:p="urn:p"><p:cm authorId="0"><p:pos x="1" y="1"/><p:text>Is this\nso?</p:text></p:cm>'
            "<p:cm><p:text>It is.</p:text></p:cm></p:cmLst>"
        ),
        (
            f'<p:cmLst xmlns:p="urn:p" xmlns:a="{_A}"><p:cm><p:replyLst><p:reply><p:txBody><a:p><a:r><a:t>It </a:t></a:r><a:r><a:t>is.'
            "</a:t></a:r></a:p></p:txBody></p:reply></p:replyLst><p:txBody><a:p><a:r><a:t>Is this</a:t></a:r></a:p><a:p><a:r><a:t>so?"
            "</a:t></a:r></a:p></p:txBody></p:cm></p:cmLst>"
        ),
    ],
)
def test_comments_on_a_slide_are_read_after_it(content: str):
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Plan"
    for number, said in enumerate((content, "<broken")):
        name = PackURI(f"/ppt/comments/comment{number}.xml")
        part = Part(name, "application/xml", deck.part.package, said.encode())
        slide.part.relate_to(part, "http://schemas.example.org/relationships/comments")
    extracted = read(deck)
    assert extracted.text == "Plan\fIs this so?\nIt is."
    (_, comments) = chunk(extracted, language="en")
    assert (comments.locator["slide"], comments.locator["section"]) == (1, "Comments")
    assert comments.heading_path == "Plan"
