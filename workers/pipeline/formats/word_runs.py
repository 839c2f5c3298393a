"""The words of a Word paragraph, run by run: also signs that are stored as a place in a symbol font, what was ticked or chosen in
the fields of a form, and formulas.
"""

from collections.abc import Callable
from typing import Any

from workers.pipeline.formats.drawings import alternative_text
from workers.pipeline.formats.formulas import FORMULA, formula_text
from workers.pipeline.formats.word_numbering import W as _W
from workers.pipeline.formats.word_numbering import value_of as _value

FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_A_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
_PICTURE = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
_FIELD = f"{_W}fldChar"
_UNREAD = {
    f"{_W}txbxContent", f"{_W}pPr", f"{_W}rPr", f"{_W}del", f"{_W}moveFrom", f"{_W}instrText", f"{_W}rt", f"{_W}ffData",
    FALLBACK,
}  # fmt: skip
_OFF = {"0", "false", "off"}
_PRIVATE = 0xF000  # where Word puts the signs of such fonts
_TICKED, _EMPTY = "☒", "☐"
# By the place of a sign in its font.
_SYMBOL = dict(zip(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\xa3\xa5\xac\xae\xb0\xb1\xb3\xb4\xb6\xb7\xb8\xb9\xbb\xce\xd1\xd6\xdb\xde\xe5\xf2-",
    "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ≤∞←→°±≥×∂•÷≠≈∈∇√⇔⇒∑∫−",
    strict=True,
))  # fmt: skip
_WINGDINGS = dict(zip(
    b"(*JLlno\xa7\xa8\xd8\xdf\xe0\xe7\xe8\xef\xf0\xfb\xfc\xfd\xfe", "☎✉☺☹●■□▪☐➢←→←➔⇦⇨✗✓☒☑", strict=True
))  # fmt: skip
_WINGDINGS_2 = dict(zip(b"OPQRSTU\xa3", "✗✓☒☑☒☒☒☐", strict=True))
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}


def text_of(paragraph: Any) -> str:
    """The paragraph's own words, and what is said about its pictures: without its text boxes and what tracked changes
    deleted or moved away.
    """
    pieces: list[str] = []
    fields: list[bool] = []  # that are open: whether this is still what they ask, and not their answer
    stack = [iter(paragraph)]
    while stack:
        element = next(stack[-1], None)
        if element is None:
            stack.pop()
        elif element.tag == _FIELD:
            pieces.append(_field(element, fields))
        elif (said := _SAYS.get(element.tag)) is not None:
            if not any(fields[:-1]):  # the answer of a field inside a question shows nowhere
                pieces.append(said(element))
        elif element.tag not in _UNREAD:
            stack.append(iter(element))
    return "".join(pieces)


def _field(mark: Any, fields: list[bool]) -> str:
    kind = mark.get(f"{_W}fldCharType")
    if kind == "begin":
        fields.append(True)
        return _filled_in(mark)
    if fields and kind == "separate":
        fields[-1] = False
    elif fields and kind == "end":
        fields.pop()
    return ""


def _filled_in(mark: Any) -> str:
    """What stands in a field of a form of the older kind; words that were typed follow as its answer."""
    box, choice = (mark.find(f"{_W}ffData/{_W}{name}") for name in ("checkBox", "ddList"))
    if box is not None:
        said = next(filter(_exists, map(box.find, (f"{_W}checked", f"{_W}default"))), None)
        return _EMPTY if said is None or _value(said) in _OFF else _TICKED
    if choice is not None:
        entries = [_value(entry) for entry in choice.iterchildren(f"{_W}listEntry")]
        said = next(filter(_exists, map(choice.find, (f"{_W}result", f"{_W}default"))), None)
        number = _value(said)[:4] or "0"
        return entries[int(number)] if number.isdecimal() and int(number) < len(entries) else ""
    return ""


def _exists(element: Any) -> bool:
    return element is not None


def _symbol(sign: Any) -> str:
    try:
        place = int(str(sign.get(f"{_W}char")), 16)
    except ValueError:
        return ""
    font = _FONTS.get(str(sign.get(f"{_W}font")).lower())
    if font is not None or _PRIVATE <= place < _PRIVATE + 256:
        return (font or {}).get(place % 256, "")
    return chr(place) if place < 0xD800 else ""


def _picture(properties: Any) -> str:
    words = alternative_text(properties)
    return f"\n{words}\n" if words else ""


def _written(element: Any) -> str:
    return element.text or ""


_SAYS: dict[str, Callable[[Any], str]] = {
    f"{_W}t": _written,
    _A_TEXT: _written,
    FORMULA: formula_text,
    f"{_W}tab": lambda _: "\t",
    f"{_W}ptab": lambda _: "\t",
    f"{_W}br": lambda _: "\n",
    f"{_W}cr": lambda _: "\n",
    f"{_W}noBreakHyphen": lambda _: "-",
    f"{_W}sym": _symbol,
    _PICTURE: _picture,
}
