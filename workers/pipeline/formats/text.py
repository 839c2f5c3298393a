"""Plain text: decode it, keep it. Also how every other text-based format gets its characters."""

import codecs
import re

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted, Unit

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What the standard of the web reads under these names.
_WESTERN = {"ascii", "iso8859-1", "cp1252"}
_LARGER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
}
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_ASCII_BYTES = bytes(range(128))
_ENOUGH = 20  # bytes, to tell one script from another
_SAMPLE = 4096
_LINE_ENDS = re.compile("\r\n?")
_SURROGATES = re.compile("[\ud800-\udfff]")
_FOLDED = {"text/calendar", "text/vcard"}
_FOLD = re.compile(r"\n[ \t]")
_ESCAPED = re.compile(r"\\([,;\\nN])")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def read(source: Source) -> Extracted:
    text = decode(source)
    if source.mime_type in _FOLDED:
        text = unfolded(text)
    return Extracted(text, units(text, source))


def units(text: str, source: Source) -> list[Unit]:
    del source
    return [Unit("text", 0, len(text), {"kind": "text"})]


def decode(source: Source) -> str:
    """Byte order mark, declared charset if it fits, UTF-16 by its zero bytes, UTF-8 if most of it is, and at last a guess."""
    data = bytes(source.data)
    text = clean(_decoded(data, source.charset))
    sample = text[: 16 * _SAMPLE]
    if len(sample) >= 256 and len(_CONTROLS.findall(sample)) * 10 > len(sample):
        raise TaskFailed("damaged", "not text")
    return text


def unfolded(calendar: str) -> str:
    """Long lines of a calendar are broken in the middle of words; its commas have a backslash, and its line ends are one."""
    return _ESCAPED.sub(lambda mark: "\n" if mark[1] in "nN" else mark[1], _FOLD.sub("", calendar))


def clean(text: str) -> str:
    """Line feeds for line ends, and nothing that a database or UTF-8 refuses."""
    if "\r" in text:
        text = _LINE_ENDS.sub("\n", text)
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _decoded(data: bytes, declared: str | None) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    guessed = _utf16_without_mark(data)
    for encoding in [*_meant_by(declared), *([guessed] if guessed else ["utf-8"])]:
        try:
            # Half a surrogate pair, as JSON allows it, costs that character, not the encoding of the whole text.
            return data.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
        except (UnicodeError, LookupError):
            continue
    text = data.decode("utf-8", "replace")
    lost = text.count("\ufffd")
    if lost < sum(map(len, _BEYOND_ASCII.findall(text))) - lost:
        return text  # a few bytes that do not fit: a cut in the middle of a character, a stray one
    return _in_another_script(data) or data.decode("cp1252", "replace")


def _in_another_script(data: bytes) -> str | None:
    """Greek, Cyrillic, Chinese and the like by their statistics; western text has few letters beyond ASCII and is no case."""
    sample = data[: 4 * _SAMPLE]
    sample = sample[: sample.rfind(b"\n") + 1] or sample  # not cut in the middle of a character
    beyond = len(sample.translate(None, _ASCII_BYTES))
    if beyond < _ENOUGH or beyond * 5 < len(sample):
        return None
    from charset_normalizer import from_bytes  # noqa: PLC0415 - seldom needed

    best = from_bytes(sample).best()
    try:
        return data.decode(best.encoding) if best else None
    except (UnicodeError, LookupError):
        return None


def _meant_by(declared: str | None) -> list[str]:
    """The charset of this name as it is used: Latin-1 is Windows' Western, and often UTF-8 that was not asked."""
    if declared is None:
        return []
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return []
    return ["utf-8", "cp1252"] if name in _WESTERN else [_LARGER.get(name, name)]


def _utf16_without_mark(data: bytes) -> str | None:
    """Text in most scripts has a zero in every other byte, always on the same side."""
    sample = data[:_SAMPLE]
    if b"\x00" not in sample or len(data) % 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > half * 0.3 and even < half * 0.05:
        return "utf-16-le"
    if even > half * 0.3 and odd < half * 0.05:
        return "utf-16-be"
    return None
