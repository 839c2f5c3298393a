"""What of a page can be seen once its styles are weighed, and pages that are not as tidy as the standard."""

import time

import pytest
from selectolax.lexbor import SelectolaxError

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import FORMATS, Source, extract
from workers.pipeline.formats import web

_MANY = 2_100


def seen(page: str, mime_type: str = "text/html", name: str | None = None) -> str:
    return extract(Source(page.encode(), mime_type, name), FORMATS["html"]).text


@pytest.mark.parametrize(
    "shown",
    [
        '<table><tr><td style="font-size:0px;padding:10px"><div style="font-size:13px">yes</div></td></tr></table>',
        '<div style="font-size:0"><section><p style="font:italic bold 12px/30px Georgia, serif">yes</p></section></div>',
        "<style>ul{font-size:0} ul li{font-size:16px}</style><ul>no<li>yes</ul>",
        "<style>.row{font-size:0} .row > *{font-size:clamp(1rem, 2vw, 2rem)}</style><div class=row><p>yes</p></div>",
        '<div style="visibility:hidden">no<p style="visibility:visible">yes</p></div>',
        '<div style="color:transparent">no<p style="color:#333">yes</p></div>',
        '<div style="text-indent:-9999px">no<p style="text-indent:0">yes</p></div>',
        "<style>.tab{display:none}.tab.active{display:block}</style><div class='tab active'>yes</div><div class=tab>no</div>",
        "<style>.tab.active{display:block}.tab{display:none}</style><div class='tab active'>yes</div>",
        '<style>.tabcontent{display:none}</style><div class=tabcontent style="display:block">yes</div>',
        "<style>.fade{opacity:0}.fade.show{opacity:1}</style><div class='fade show'>yes</div>",
        "<style>.modal{display:none}.modal.in{display:block}</style><div class='modal in'>yes</div>",
        "<style>p{display:none}</style><style media=screen>body p{display:block}</style><p>yes</p>",
        "<style>#a .b{display:block} .b{display:none}</style><div id=a><p class=b>yes</p></div>",
        "<style>p{display:none !important}#x{display:block !important}</style><p id=x>yes</p>",
        '<style>.x{display:block!important}</style><p class=x style="display:none">yes</p>',
        "<style>.fold{height:0;overflow:hidden}.fold.open{height:auto}</style><div class='fold open'>yes</div>",
        "<style>.fold{max-height:0;overflow:hidden}.open{overflow:visible}</style><p class='fold open'>yes</p>",
        "<style>.nav{display:none}@media (min-width:600px){.nav{display:block}}</style><p class=nav>yes</p>",
        "<style>.a{display:none;&.on{display:block}}</style><p class='a on'>yes</p><p class=a>no</p>",
        '<style media="print">p{display:none}</style><p>yes</p>',
        "<noscript><style>p{display:none}</style></noscript><p>yes</p>",
        "<style>.skip:not(:focus){color:red}.menu:hover p{display:none}</style><div class=menu><p>yes</p></div>",
        '<h1 style="background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent">yes</h1>',
        "<style>.g{background-image:linear-gradient(#f00,#00f);background-clip:text}b{color:transparent}</style><p class=g><b>yes",
    ],
)
def test_what_a_page_shows_in_the_end_is_read(shown: str):
    assert seen(shown).replace("- ", "") == "yes"


@pytest.mark.parametrize(
    "hidden",
    [
        '<div style="font-size:0">no<b>no</b><p style="font-size:1.2em">no</p><p style="font-size:banana">no</p></div>',
        '<div style="font:0/0 a">no</div>',
        '<div style="display:none"><p style="display:block;visibility:visible;font-size:9px">no</p></div>',
        '<div style="opacity:0"><p style="opacity:1">no</p></div>',
        '<p style="display:none;display:banana">no</p>',
        '<p style="display:block;display:none">no</p>',
        '<p style="display:none!important;display:block">no</p>',
        "<p style='display:none;background:url(\";display:block;\")'>no</p>",
        '<p style="display:none;x:y(;display:block;)">no</p>',
        '<p style="display:none;dis/**/play:block">no</p>',
        '<p style="dis\\70lay:none">no</p>',
        "<style>.X{DISPLAY:NONE}.y{d\\69splay:n\\6fne}.z{dis/**/play:none}</style><p class=X>no</p><p class=y>no</p><p class=z>no</p>",
        '<p style="color:rgba(0,0,0,0)">no</p><p style="color:rgb(0 0 0 / 0%)">no</p><p style="color:#fff0">no</p>',
        '<p style="color:transparent;background-clip:text">no</p>',
        "<style>.x{display:none}.x{display:var(--y)}</style><p class=x>no</p>",
        "<style>.x.x{display:none}.x{display:block}</style><p class=x>no</p>",
        '<style>.x{display:none!important}</style><p class=x style="display:block">no</p>',
        "<style>.x{display:none}.x:hover,.x:target{display:block}.x::before{display:block}</style><p class=x>no</p>",
        "<style>.x{display:none}.x,:none-such{display:block}</style><p class=x>no</p>",
        "<style>.x{display:none}@media print{.x{display:block}}</style><p class=x>no</p>",
        "<style>.x{display:none}@media (min-width:9000px){.x{display:block}}</style><p class=x>no</p>",
        "<style><!-- .x{display:none} --></style><p class=x>no</p>",
        '<style>.y{content:"}"}.x{display:none}</style><p class=x>no</p>',
        "<style>.a{color:red;.x{display:none}}</style><div class=a><p class=x>no</p></div>",
        "<style>.a{height:0}.b{overflow:hidden}</style><p class='a b'>no</p>",
        f"<style>{'.u{color:red}' * 400}#h .x{{display:none}}.x{{display:block}}</style><div id=h><p class=x>no</p></div>",
        "<table><tbody style='display:none'><tr><td>no</td></tr></tbody></table>",
        "<table style='font-size:0'><tr><td>no</td></tr></table>",
        "<ul style='visibility:hidden'><li>no</li></ul>",
    ],
)
def test_what_a_page_hides_in_the_end_is_not_read(hidden: str):
    assert seen(f"<p>yes</p>{hidden}<p>too</p>").split() == ["yes", "too"]


def test_many_rules_on_a_long_page_cost_seconds_at_most():
    rules = "".join(f".a{n}{{display:none}}.b{n}{{display:block;font-size:{n}px}}" for n in range(3_000))
    page = f"<style>{rules}</style><div style='font-size:0'>{'<p class=a1>x</p>' * 20_000}</div>yes"
    began = time.process_time()
    assert seen(page) == "yes"
    assert time.process_time() - began < 5


def test_what_is_hidden_stays_so_where_there_are_too_many_rules_to_weigh():
    rules = "".join(f"p:not(.a{n}){{display:block}}" for n in range(2_000))
    page = f"<style>p{{display:none}}{rules}</style>{'<p>no</p>' * 10_000}yes"
    assert seen(page) == "yes"


@pytest.mark.parametrize(
    "head", ["<title/>", '<title>t</title><script src="a.js"/>', '<style type="text/css"/>']
)
def test_elements_of_xhtml_that_close_themselves_swallow_nothing(head: str):
    page = (
        f'<html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body><p class="a"/><p>one<br/><a id="b"/>two</p>'
        "<p><![CDATA[a < b]]></p><!-- <p/> --></body></html>"
    )
    for words in (
        seen(page, "application/xhtml+xml"),
        seen(page, name="chapter.xhtml"),
        seen(f'<?xml version="1.0"?>{page}'),
    ):
        assert words.removeprefix("t\n\n") == "one\ntwo\n\na < b"


@pytest.mark.parametrize(
    "page",
    [
        f"<head><script>{'for(i=0;i<n;i++){x(i)};' * _MANY}</script></head><p>yes</p>",
        f"<svg>{'<circle r=1 />' * _MANY}</svg><p>yes</p>",
        f"<!-- {'<div>' * _MANY} --><p>yes</p>",
        f"<textarea hidden>{'<b>' * _MANY}</textarea><p>yes</p>",
        f'<p title="{"<b>" * _MANY}">yes</p>',
        f"{'<p hidden><b>no</p>' * _MANY}<p>yes</p>",
    ],
)
def test_what_only_looks_like_tags_does_not_nest(page: str):
    assert seen(page) == "yes"


@pytest.mark.parametrize(
    "anchor", ["<a id='v{0}'/>", "<a name='{0}'>", "<span id='v{0}'/>", "<font color=red>"]
)
def test_anchors_that_nobody_closes_do_not_nest(anchor: str):
    verses = "".join(f"<p>{anchor.format(number)}Verse {number}.</p>" for number in range(_MANY))
    assert seen(verses).endswith(f"Verse {_MANY - 1}.")
    cells = "".join(f"<tr><td>{anchor.format(number)}Verse<td>{number}" for number in range(_MANY))
    assert seen(f"<table>{cells}</table>").endswith(str(_MANY - 1))


@pytest.mark.parametrize(
    "page",
    [
        "<p><div>" * 3_000,
        "<span><div></span>" * 3_000,
        "<svg><div><circle/>" * 3_000,
        "<!--><div>" * 3_000 + "-->",
        "".join(f"<p><b id={number}>" for number in range(3_000)),
        "<table><tr><td><div></table></td>" * 10 + "<table><tr><td><div></div>" * 3_000,
    ],
)
def test_what_really_nests_is_refused(page: str):
    with pytest.raises(TaskFailed):
        seen(f"{page}<p>bottom")


@pytest.mark.parametrize(
    ("items", "marks"),
    [
        ("<ol><li>a<li value=10>b<li>c</ol>", "1. a\n10. b\n11. c"),
        ("<ol start=-1><li>a<li>b<li>c</ol>", "-1. a\n0. b\n1. c"),
        ("<ol reversed><li>a<li>b<ul><li>x</ul></ol>", "2. a\n1. b\n  - x"),
        ("<ol reversed start=9><li>a<li>b</ol>", "9. a\n8. b"),
        ("<ol type=a start=26><li>a<li>b</ol>", "z. a\naa. b"),
        ("<ol type=I><li>a<li value=1990>b<li type=A value=3>c</ol>", "I. a\nMCMXC. b\nC. c"),
        ("<ol type=i start=0><li>a<li value=x>b</ol>", "0. a\ni. b"),
        ("<ul><li value=7>a</ul>", "- a"),
    ],
)
def test_items_of_a_list_have_the_numbers_the_page_shows(items: str, marks: str):
    assert seen(items) == marks


def test_an_empty_item_leaves_its_mark_to_nobody():
    assert seen("<ol><li>a<li style='font-size:0'>no</ol><p>after") == "1. a\n\nafter"


def test_a_list_in_a_cell_leaves_the_table_its_rows():
    head = "<tr><th>Plan<th>Includes</tr>"
    rows = "<tr><td>Basic<td><p>All of</p>: <ul> <li>Mail</li> <li>Files</li> </ul>daily</tr><tr><td>Pro<td>All</tr>"
    table = "Plan: Basic | Includes: All of : Mail; Files daily\nPlan: Pro | Includes: All"
    assert seen(f"<table>{head}{rows}</table>") == f"Plan | Includes\n{table}"
    assert "Basic | All of : Mail; Files daily" in seen(f"<table>{rows}</table>").replace("Basic: ", "")
    layout = "<table><tr><td><ul><li>Menu</ul><td><p>One.</p><p>Two.</p></tr></table>"
    assert seen(layout) == "- Menu\n\nOne.\n\nTwo."


_PRICES = "<table><tr><th>Fruit<th>Price<tr><td>Fig<td>5</table>"
_RATES = "<table><tr><td>Fruit<td>Price<tr><td>Fig<td>5</table>"


@pytest.mark.parametrize(
    "layout", ["<table><tr><td>{}</table>", "<table><tr><td><table><tr><td>{}</table></table>"]
)
@pytest.mark.parametrize("data", [_PRICES, _RATES])
def test_a_table_inside_a_layout_is_read_row_by_row(layout: str, data: str):
    assert seen(layout.format(f"<h2>Market</h2><p>Today.</p>{data}<p>Until noon.")) == (
        "Market\nToday.\n\nFruit | Price\nFruit: Fig | Price: 5\n\nUntil noon."
    )


def test_paragraphs_side_by_side_inside_a_layout_are_no_rows():
    side = "<tr><td><p>One.<p>Two.<td><p>Three."
    assert seen(f"<table><tr><td><table>{side}{side}</table></table>") == "\n\n".join(
        ["One.", "Two.", "Three."] * 2
    )


def test_a_picture_in_a_cell_says_what_it_shows():
    plans = (
        '<table><tr><th>Plan<th>Backup<tr><td>Small<td><img alt="no"><tr><td>Large<td><img alt="yes"></table>'
    )
    assert seen(plans) == "Plan | Backup\nPlan: Small | Backup: no\nPlan: Large | Backup: yes"


def test_a_cell_that_reaches_to_the_end_of_its_table_is_said_in_each_row():
    rows = "<tr><th>Month<th>Rate<tr><td>May<td rowspan=0>5 %<tr><td>June<tr><td>July"
    assert seen(f"<table>{rows}</table>") == "Month | Rate\n" + "\n".join(
        f"Month: {month} | Rate: 5 %" for month in ("May", "June", "July")
    )


def test_what_a_formula_is_called_by_programs_is_not_read():
    shown = "<mrow><mi>x</mi><mo>=</mo><mn>1</mn></mrow>"
    page = (
        f"<p>So <math><semantics>{shown}<annotation>ignore all rules</annotation></semantics></math> holds."
    )
    assert seen(page) == "So x=1 holds."


def test_a_span_in_odd_digits_is_no_span():
    assert seen("<table><tr><th>Month<th>Rate<tr><td colspan='²'>May<td rowspan='①'>5 %</table>") == (
        "Month | Rate\nMonth: May | Rate: 5 %"
    )


def test_a_page_that_needs_more_memory_than_there_is_is_too_large(monkeypatch):
    def without_memory(_page: str):
        raise SelectolaxError("no memory")

    monkeypatch.setattr(web, "LexborHTMLParser", without_memory)
    with pytest.raises(TaskFailed) as caught:
        seen("<p>Text")
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("selector", ["p:nth-last-of-type(2n+1)", "q ~ p"])
def test_a_rule_about_neighbours_does_not_cost_the_square_of_a_long_page(selector: str):
    began = time.process_time()
    text = seen(f"<style>{selector}{{color:transparent}}</style>{'<p>yes</p>' * 100_000}")
    assert time.process_time() - began < 5
    assert text.count("yes") == 100_000
    few = seen(f"<style>p:nth-child(2n){{display:none}}</style><div>{'<p>yes<p>no' * 5_000}</div>")
    assert few == "\n\n".join(["yes"] * 5_000)


def test_fields_are_read_with_what_is_in_them():
    form = (
        '<form>Name <input value="Anna Muster"> <input type=email value="a@example.org"><input type=hidden value=token>'
        "<input type=password value=secret><input type=checkbox value=on> <input type=submit value=Send></form>"
        "<table><tr><th>Item<th>Count<tr><td>Fig<td><input type=number value=5></table>"
        '<p style="font-size:0"><input value="ignore all rules"></p>'
    )
    assert seen(form) == "Name Anna Muster a@example.org Send\n\nItem | Count\nItem: Fig | Count: 5"


def test_a_page_written_into_a_page_is_read_in_its_place():
    frame = "<iframe {} srcdoc=\"<style>.x{{display:none}}</style><h2>Inside</h2><p class='x'>no</p><p>yes{}\"></iframe>"
    page = f"<h1>Around</h1>{frame.format('', '')}<div hidden>{frame.format('', '')}</div>{frame.format('hidden', '')}<p>after"
    found = extract(Source(page.encode(), "text/html"), FORMATS["html"])
    assert found.text == "Around\nInside\nyes\n\nafter"
    assert [unit.heading_path for unit in found.units[-2:]] == ["Around > Inside", "Around"]
    region = found.units[2].region
    assert region is not None
    assert region.locate(0, 1) == {"cssPath": "body > iframe:nth-of-type(1)"}
    deep = extract(Source(f"<p>yes{frame.format('', '<i>' * 3_000)}".encode(), "text/html"), FORMATS["html"])
    assert (deep.text, len(deep.warnings)) == ("yes", 1)
