"""OpenDocument texts and slides: what is hidden, how lists and headings are numbered, what stands in cells and boxes."""

import pytest

from tests.fixtures.office_files import ODP, ODT, open_document
from workers.pipeline.chunk import chunk
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.extracted import Extracted

_HIDES = (
    '<office:automatic-styles><style:style style:name="H"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="I" style:parent-style-name="H"/><style:style style:name="S" style:parent-style-name="H">'
    '<style:text-properties text:display="true"/></style:style></office:automatic-styles>'
)


def read(body: str, *, before: str = "", styles: str = "") -> Extracted:
    content = f"{before}<office:body><office:text>{body}</office:text></office:body>"
    return extract(Source(open_document(ODT, content, styles), ODT), FORMATS["odt"])


def p(words: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{words}</text:p>'


def items(*inner: str, attributes: str = "") -> str:
    return f"<text:list {attributes}>{''.join(f'<text:list-item>{item}</text:list-item>' for item in inner)}</text:list>"


def level(number: int, form: str, more: str = "") -> str:
    return f'<text:list-level-style-number text:level="{number}" style:num-format="{form}" {more}/>'


def list_style(name: str, *levels: str) -> str:
    return f'<office:automatic-styles><text:list-style style:name="{name}">{"".join(levels)}</text:list-style></office:automatic-styles>'


@pytest.mark.parametrize(
    "hidden",
    [
        p("no", "H"),
        p("no", "I"),
        '<text:h text:style-name="H">no</text:h>',
        p('<text:span text:style-name="I">no</text:span>'),
        f'<text:section text:display="none">{p("no")}</text:section>',
        f'<text:section text:display="condition" text:is-hidden="true">{p("no")}</text:section>',
        p('<text:hidden-text text:is-hidden="true">no</text:hidden-text>'),
        items(p("no", "H")),
        f"<table:table><table:table-row><table:table-cell>{p('no', 'H')}</table:table-cell></table:table-row></table:table>",
    ],
)
def test_what_a_text_hides_is_not_read(hidden: str):
    assert read(p("yes") + hidden, before=_HIDES).text == "yes"


def test_what_only_could_be_hidden_is_read():
    shown = f'<text:section text:display="condition" text:is-hidden="false">{p("one")}</text:section>{p("two", "S")}'
    assert read(shown, before=_HIDES).text == "one\n\ntwo"


def test_a_list_has_the_numbers_that_its_style_says():
    style = list_style(
        "L",
        level(1, "1", 'style:num-suffix="."'),
        level(2, "a", 'style:num-prefix="(" style:num-suffix=")" text:start-value="3"'),
        level(3, "I", 'text:display-levels="3"'),
        '<text:list-level-style-bullet text:level="4"/>',
    )
    deep = items(p("part") + items(p("point")))
    inner = items(p("first") + deep, p("second"))
    listed = items(
        p("one") + p("more of one"), p("two") + inner, p("three"), attributes='text:style-name="L"'
    )
    assert read(listed, before=style).text.split("\n") == [
        "1. one", "more of one", "2. two", "  (c) first", "    2.c.I part", "      - point", "  (d) second", "3. three",
    ]  # fmt: skip


def test_a_list_begins_anew_or_goes_on_as_it_says():
    style = list_style("L", level(1, "1", 'style:num-suffix=")"'))
    of_style = 'text:style-name="L"'
    text = read(
        items(p("one"), attributes=of_style)
        + items(p("two"), attributes=f'{of_style} text:continue-numbering="true"')
        + items(p("one again"), attributes=of_style)
        + '<text:list text:style-name="L"><text:list-header><text:p>over it</text:p></text:list-header>'
        '<text:list-item text:start-value="7"><text:p>seven</text:p></text:list-item></text:list>',
        before=style,
    ).text
    assert text.split("\n\n") == ["1) one", "2) two", "1) one again", "over it\n7) seven"]


def test_headings_that_the_outline_numbers_say_their_number():
    outline = "".join(
        f'<text:outline-level-style text:level="{number}" style:num-format="{form}" text:display-levels="{number}"/>'
        for number, form in ((1, "1"), (2, "1"), (3, ""))
    )
    heads = "".join(
        f'<text:h text:outline-level="{rank}" {more}>{words}</text:h>'
        for rank, words, more in (
            (1, "Bridges", ""),
            (2, "Arches", ""),
            (2, "Cables", ""),
            (3, "Steel", ""),
            (1, "Sources", 'text:is-list-header="true"'),
            (1, "Tunnels", ""),
        )
    )
    text = read(
        heads, styles=f"<office:styles><text:outline-style>{outline}</text:outline-style></office:styles>"
    ).text
    assert text.split() == [
        "1",
        "Bridges",
        "1.1",
        "Arches",
        "1.2",
        "Cables",
        "Steel",
        "Sources",
        "2",
        "Tunnels",
    ]


def test_a_rank_that_is_no_number_is_the_first():
    assert read('<text:h text:outline-level="²">Bridges</text:h>').units[0].level == 0
    assert read('<text:h text:outline-level="²">Bridges</text:h>').text == "Bridges"


def test_a_box_in_a_cell_and_words_about_a_picture_are_read():
    box = f"<draw:frame><draw:text-box>{p('boxed')}</draw:text-box></draw:frame>"
    picture = (
        "<draw:frame><draw:image/><svg:title>The pump</svg:title><svg:desc>cut open</svg:desc></draw:frame>"
    )
    row = "<table:table-row>{}</table:table-row>"
    cells = [
        "".join(f"<table:table-cell>{p(words)}</table:table-cell>" for words in cells)
        for cells in (("Part", "Note"), ("bolt", f"see{box}"))
    ]
    table = f"<table:table>{''.join(map(row.format, cells))}</table:table>"
    assert read(table).text == "Part | Note\nPart: bolt | Note: see; boxed"
    assert read(p(f"See{picture}here")).text.split() == ["See", "The", "pump", "cut", "open", "here"]


def test_the_rows_that_a_table_repeats_are_its_head():
    row = "<table:table-row>{}</table:table-row>"
    rows = [
        row.format("".join(f"<table:table-cell>{p(cell)}</table:table-cell>" for cell in cells))
        for cells in (("Zone", "A"), ("1", "2"), ("x", "3"))
    ]
    table = f"<table:table><table:table-header-rows>{rows[0]}{rows[1]}</table:table-header-rows>{rows[2]}</table:table>"
    assert read(table).text.endswith("\nZone 1: x | A 2: 3")


def test_a_remark_on_a_slide_is_a_comment_on_it():
    page = f'<draw:page><draw:frame presentation:class="title"><draw:text-box>{p("Plan")}</draw:text-box></draw:frame>{{}}</draw:page>'
    remark = f"<office:annotation>{p('Is it so?')}</office:annotation>"
    content = f"<office:body><office:presentation>{page.format('')}{page.format(remark)}</office:presentation></office:body>"
    extracted = extract(Source(open_document(ODP, content), ODP), FORMATS["odp"])
    (*_, comment) = chunk(extracted, language="en")
    assert (comment.text, comment.locator["slide"], comment.locator["section"]) == (
        "Is it so?",
        2,
        "Comments",
    )


def test_the_place_of_a_slides_number_is_none_of_its_words():
    box = "<draw:frame><draw:text-box>{}</draw:text-box></draw:frame>"
    number = box.format(p("<text:page-number>&lt;number&gt;</text:page-number>"))
    notes = f"<presentation:notes>{box.format(p('Breathe.'))}{number}</presentation:notes>"
    page = f"<draw:page>{box.format(p('Plan'))}{notes}</draw:page>"
    content = f"<office:body><office:presentation>{page}</office:presentation></office:body>"
    assert extract(Source(open_document(ODP, content), ODP), FORMATS["odp"]).text.split() == [
        "Plan",
        "Breathe.",
    ]
