"""Plain text: whatever the encoding, the characters come out right and storable."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.corpus.child import TaskFailed
from gateway.corpus.sniffing import sniff
from workers.pipeline.extract import Source, format_of
from workers.pipeline.extract import extract as extract_source
from workers.pipeline.formats import text as plain

SENTENCE = "Zürich, naïve café: 10 €, “quoted” – and more of the same.\n"


def decoded(data: bytes, charset: str | None = None) -> str:
    return plain.decode(Source(data, "text/plain", charset=charset))


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"]
)
def test_encodings_are_recognised_without_being_told(encoding):
    assert decoded(SENTENCE.encode(encoding)) == SENTENCE


def test_byte_order_marks_of_the_rarer_kinds():
    assert decoded(codecs.BOM_UTF16_BE + SENTENCE.encode("utf-16-be")) == SENTENCE
    assert decoded(codecs.BOM_UTF32_BE + SENTENCE.encode("utf-32-be")) == SENTENCE


def test_a_declared_charset_counts_if_it_fits():
    cyrillic = "Привет, мир"
    assert decoded(cyrillic.encode("cp1251"), "cp1251") == cyrillic
    assert decoded(SENTENCE.encode(), "ascii") == SENTENCE
    assert decoded(SENTENCE.encode(), "no-such-charset") == SENTENCE
    assert decoded(SENTENCE.encode(), "zip") == SENTENCE


@pytest.mark.parametrize("label", ["iso-8859-1", "latin1", "us-ascii", "ISO-8859-1"])
def test_latin_1_means_what_browsers_and_mail_programs_take_it_for(label: str):
    assert decoded(SENTENCE.encode("cp1252"), label) == SENTENCE
    assert decoded(SENTENCE.encode(), label) == SENTENCE, "UTF-8 under the wrong name"


@pytest.mark.parametrize(
    ("words", "written", "label"),
    [
        ("\u9555\u57fa", "gbk", "gb2312"),
        ("①髙橋", "cp932", "shift_jis"),
        ("똠방각하", "cp949", "ks_c_5601-1987"),
    ],
)
def test_the_larger_set_is_read_under_the_name_of_the_smaller(words: str, written: str, label: str):
    assert decoded(words.encode(written), label) == words


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        ("Привет мир, это обычный русский текст для проверки кодировки.\n", "cp1251"),
        ("Αυτό είναι ένα ελληνικό κείμενο για δοκιμή κωδικοποίησης.\n", "cp1253"),
        ("これは日本語のテキストです。文字コードの判定を確認します。\n", "shift_jis"),
        ("这是一个用于测试字符编码检测的中文文本。今天天气很好。\n", "gbk"),
    ],
)
async def test_other_scripts_are_told_by_their_statistics(words: str, encoding: str):
    for text in (words, words * 400):
        assert decoded(text.encode(encoding)) == text
        assert await sniff(text.encode(encoding), "notes.txt") == "text/plain"


def test_a_few_umlauts_are_no_other_script():
    for words in ("Größe café Ä", "çà et là: élève, forêt, œuvre, naïveté", "ÄÖÜ äöü ß §§ éèê"):
        assert decoded(words.encode("cp1252")) == words


def test_a_stray_byte_costs_that_byte_and_not_all_umlauts():
    assert decoded(SENTENCE.encode() + b"\xff and on") == SENTENCE + "\ufffd and on"
    assert decoded((SENTENCE + "10 €").encode()[:-1], "utf-8") == SENTENCE + "10 \ufffd"


def test_line_ends_are_line_feeds_and_what_no_database_takes_is_replaced():
    assert decoded(b"a\r\nb\rc\n") == "a\nb\nc\n"
    assert decoded(b"a\x00b") == "a\ufffdb"
    assert decoded("half \ud800 a pair é".encode("utf-8", "surrogatepass")) == "half \ufffd a pair é"


@given(st.text())
def test_any_text_sent_as_utf8_can_be_stored(text):
    kept = decoded(text.encode("utf-8", "surrogatepass"), "utf-8")
    assert "\x00" not in kept
    assert "\r" not in kept
    assert kept.encode().decode() == kept


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"   \n\t \n", "no_text"), (bytes(range(32)) * 40, "damaged")],
)
def test_what_is_not_text_has_its_reason(data, reason):
    with pytest.raises(TaskFailed) as caught:
        extract_source(Source(data, "text/plain"), format_of("text/plain", None))
    assert caught.value.reason == reason


def test_broken_lines_of_a_calendar_are_whole_and_those_of_a_text_are_its_own():
    folded = "SUMMARY:Board meet\r\n ing\\, room 5\r\nLOCATION:Ulm\r\n"
    calendar, text = (
        extract_source(Source(folded.encode(), mime_type), format_of(mime_type, None)).text
        for mime_type in ("text/calendar", "text/plain")
    )
    assert calendar == "SUMMARY:Board meeting, room 5\nLOCATION:Ulm\n"
    assert text == folded.replace("\r", "")


def test_line_ends_that_a_calendar_writes_out_are_line_ends():
    said = "DESCRIPTION:Bring\\nplans\\, pens\\Nand C:\\\\new\n"
    found = extract_source(Source(said.encode(), "text/calendar"), format_of("text/calendar", None))
    assert found.text == "DESCRIPTION:Bring\nplans, pens\nand C:\\new\n"
