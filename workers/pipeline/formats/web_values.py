"""What one declaration of a style says about whether its element can be seen.

Only the properties by which a page hides text, and only values that a browser would take: what it would ignore, or what
nobody can tell without it (variables, sums of lengths), does not count and leaves standing what was said before.
"""

import re
from collections.abc import Callable, Mapping

SHOWS, HIDES, AS_AROUND = 0, 1, 2
Said = dict[str, tuple[bool, int]]  # property → whether it is important, and what it says

# Inherited: a child that says otherwise ends it. The others hide all that is inside.
INHERITED = ("visibility", "font-size", "color", "text-indent")
WHOLE = (
    "display", "opacity", "transform", "scale", "left", "right", "top", "bottom", "clip", "clip-path", "height",
    "max-height", "width", "max-width",
)  # fmt: skip
NO_ROOM = ("height", "max-height", "width", "max-width")  # hide only what is also cut off
CUT_OFF = ("overflow-x", "overflow-y")
CLIPPED = "background-clip"  # HIDES: the background is seen through the letters
PAINTED = ("background", "background-color")  # HIDES: there is none


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COMMENT = "\x1f"
_NOISE = re.compile(
    r"""/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*+(?:"|(?=\n)|\\?\Z)|'(?:[^'\\\n]|\\.)*+(?:'|(?=\n)|\\?\Z)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|([^\n]))")
_AT_ONE_LEVEL = re.compile(r"[;()\[\]{}]")
_NUMBER = re.compile(r"([+-]?)(\d++(?:\.\d++)?|\.\d++)(?:e[+-]?\d++)?([a-z]*|%)")
_OFF_THE_PAGE = re.compile(r"-\d{4}")
_NO_SCALE = re.compile(r"scale(?:3d|[xy])?\(\s*0*+(?:\.0*+)?\s?[,)%]")
_TRANSFORM = re.compile(
    r"none|(?:(?:matrix|translate|scale|rotate|skew|perspective)(?:3d|[xyz])?\([^()]*\)\s*)+"
)
_FUNCTION = re.compile(r"(?:rgb|hsl|hwb|(?:ok)?lab|(?:ok)?lch|color)a?\(([^()]*)\)")
_HEX = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_NO_ALPHA = re.compile(r"0*+(?:\.0*+)?%?")
_SUMS = ("calc(", "max(", "clamp(")
_ANY = {"initial": SHOWS, "inherit": AS_AROUND, "unset": AS_AROUND, "revert": AS_AROUND}
_DISPLAYS = _names(
    """block inline inline-block flex inline-flex grid inline-grid flow flow-root list-item contents run-in math ruby
    ruby-base ruby-text table inline-table table-row table-cell table-caption table-column table-row-group
    table-column-group table-header-group table-footer-group -webkit-box -webkit-inline-box -webkit-flex
    -webkit-inline-flex"""
)
_SIZES = _names("xx-small x-small small medium large x-large xx-large xxx-large")
_OWN_ROOM = _names("auto none min-content max-content fit-content")
_RELATIVE = _names("em ex ch ic cap lh %")
_UNITS = _RELATIVE | _names("px pt pc cm mm in q rem vw vh vmin vmax vi vb svw svh lvw lvh dvw dvh")
_COLOURS = _names(
    """aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet brown burlywood
    cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue darkcyan darkgoldenrod darkgray
    darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange darkorchid darkred darksalmon darkseagreen
    darkslateblue darkslategray darkslategrey darkturquoise darkviolet deeppink deepskyblue dimgray dimgrey dodgerblue
    firebrick floralwhite forestgreen fuchsia gainsboro ghostwhite gold goldenrod gray green greenyellow grey honeydew
    hotpink indianred indigo ivory khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan
    lightgoldenrodyellow lightgray lightgreen lightgrey lightpink lightsalmon lightseagreen lightskyblue lightslategray
    lightslategrey lightsteelblue lightyellow lime limegreen linen magenta maroon mediumaquamarine mediumblue mediumorchid
    mediumpurple mediumseagreen mediumslateblue mediumspringgreen mediumturquoise mediumvioletred midnightblue mintcream
    mistyrose moccasin navajowhite navy oldlace olive olivedrab orange orangered orchid palegoldenrod palegreen
    paleturquoise palevioletred papayawhip peachpuff peru pink plum powderblue purple rebeccapurple red rosybrown
    royalblue saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue slateblue slategray slategrey snow
    springgreen steelblue tan teal thistle tomato turquoise violet wheat white whitesmoke yellow yellowgreen
    canvastext windowtext buttontext linktext graytext"""
)


def quiet(style: str) -> str:
    """Without comments, and without strings that hold what would end a declaration or a rule."""
    if "/*" in style or '"' in style or "'" in style:
        style = _NOISE.sub(lambda found: _quieted(found.group()), style)
    return style


def _quieted(noise: str) -> str:
    if noise.startswith("/*"):
        return _COMMENT
    return '""' if any(mark in noise for mark in ";{}()/\\") else noise


def said_by(style: str) -> Said:
    """What the declarations say, the last one of a property or the important one; `style` is quiet."""
    said: Said = {}
    for declaration in _declarations(style):
        name, colon, value = declaration.partition(":")
        if not colon:
            continue
        if "\\" in declaration:
            name, value = (_ESCAPE.sub(_unescaped, part) for part in (name, value))
        name, torn = _name(name)
        if (judges := _JUDGES.get(name)) is None:
            continue
        value, mark, word = " ".join(value.replace(_COMMENT, " ").lower().split()).rpartition("!")
        important = bool(mark) and word.strip() == "important"
        if not important:
            value += mark + word
        for property_, judge in judges:
            found = judge(value.rstrip())
            before = said.get(property_)
            if found is None or (torn and found != HIDES) or (before and before[0] and not important):
                continue
            said[property_] = (important, found)
    return said


def _declarations(style: str) -> list[str]:
    """Split where they end: not inside brackets."""
    if "(" not in style and "[" not in style and "{" not in style:
        return style.split(";")
    pieces: list[str] = []
    depth = begun = 0
    for mark in _AT_ONE_LEVEL.finditer(style):
        sign = mark.group()
        if sign == ";":
            if depth == 0:
                pieces.append(style[begun : mark.start()])
                begun = mark.end()
        else:
            depth = depth + 1 if sign in "([{" else max(0, depth - 1)
    pieces.append(style[begun:])
    return pieces


def _name(name: str) -> tuple[str, bool]:
    """And whether a comment tears it apart: such a one is believed only where it hides."""
    name = name.strip(f"{_COMMENT} \t\n\r\f").lower()
    if _COMMENT not in name:
        return name, False
    return re.sub(rf"[{_COMMENT}\s]", "", name), True


def _unescaped(found: re.Match[str]) -> str:
    number, letter = found.groups()
    if number is None:
        return letter
    code = int(number, 16)
    return chr(code) if 0 < code < 0x110000 else "\ufffd"


# -- values


def _display(value: str) -> int | None:
    if value == "none":
        return HIDES
    words = value.split()
    return SHOWS if value in _ANY or (words and all(map(_DISPLAYS.__contains__, words))) else None


def _visibility(value: str) -> int | None:
    if value in {"hidden", "collapse"}:
        return HIDES
    return SHOWS if value == "visible" else _ANY.get(value)


def _opacity(value: str) -> int | None:
    number = _NUMBER.fullmatch(value)
    if number is None or number.group(3) not in {"", "%"}:
        return SHOWS if value in _ANY else None
    return HIDES if number.group(1) == "-" or not float(number.group(2)) else SHOWS


def _length(value: str) -> tuple[float, str] | None:
    number = _NUMBER.fullmatch(value)
    if number is None:
        return None
    size, unit = float(number.group(1) + number.group(2)), number.group(3)
    return (size, unit) if unit in _UNITS or (not size and not unit) else None


def _is_sum(value: str) -> bool:
    """Of lengths that are not all nothing."""
    return value.startswith(_SUMS) and value.endswith(")") and any(digit in value for digit in "123456789")


def _size(value: str) -> int | None:
    if value in _SIZES:
        return SHOWS
    if value in {"smaller", "larger"}:
        return AS_AROUND
    length = _length(value)
    if length is None:
        if not _is_sum(value):
            return _ANY.get(value)
        return AS_AROUND if re.search(r"%|[\d.](?:em|ex|ch)\b", value) else SHOWS
    size, unit = length
    return None if size < 0 else HIDES if not size else AS_AROUND if unit in _RELATIVE else SHOWS


def _font(value: str) -> int | None:
    """Of `italic 12px/1.5 Georgia` the size; without a family behind it the whole is ignored."""
    words = re.sub(" ?/ ?", "/", value).split()
    for word in words[:-1]:
        size = word.partition("/")[0]
        if size in _SIZES or size in {"smaller", "larger"} or _length(size) is not None:
            return _size(size)
    return _ANY.get(value)


def _colour(value: str) -> int | None:
    if value == "transparent":
        return HIDES
    if value == "currentcolor":
        return AS_AROUND
    if _HEX.fullmatch(value):
        digits = len(value) - 1
        alpha = value[4:] if digits == 4 else value[7:] if digits == 8 else "f"
        return HIDES if not alpha.strip("0") else SHOWS
    if found := _FUNCTION.fullmatch(value):
        parts = re.split(r"[,/]", found.group(1))
        see_through = len(parts) == 4 or (len(parts) == 2 and "/" in found.group(1))
        return HIDES if see_through and _NO_ALPHA.fullmatch(parts[-1].strip()) else SHOWS
    return SHOWS if value in _COLOURS else _ANY.get(value)


def _offset(value: str) -> int | None:
    if _OFF_THE_PAGE.match(value):
        return HIDES
    return SHOWS if value in _ANY or value == "auto" or _length(value) is not None else None


def _indent(value: str) -> int | None:
    found = _offset(value.partition(" ")[0])
    return _ANY.get(value, found)


def _transform(value: str) -> int | None:
    if _NO_SCALE.search(value):
        return HIDES
    return SHOWS if value in _ANY or _TRANSFORM.fullmatch(value) else None


def _scale(value: str) -> int | None:
    numbers = [_NUMBER.fullmatch(word) for word in value.split()]
    if not numbers or None in numbers:
        return SHOWS if value in _ANY or value == "none" else None
    return HIDES if any(number and not float(number.group(2)) for number in numbers) else SHOWS


def _clip(value: str) -> int | None:
    if value.startswith("rect("):
        return HIDES
    return SHOWS if value in _ANY or value == "auto" else None


def _clip_path(value: str) -> int | None:
    if re.match(r"inset\(\s*(?:[5-9]\d|100)%", value):
        return HIDES
    return SHOWS if value in _ANY or value == "none" or re.match(r"[a-z-]+\(", value) else None


def _room(value: str) -> int | None:
    length = _length(value)
    if length is not None:
        return None if length[0] < 0 else HIDES if not length[0] else SHOWS
    return SHOWS if value in _ANY or value in _OWN_ROOM or _is_sum(value) else None


def _overflow(value: str) -> int | None:
    if value in {"hidden", "clip"}:
        return HIDES
    return SHOWS if value in _ANY or value in {"visible", "auto", "scroll"} else None


def _overflow_both(number: int) -> Callable[[str], int | None]:
    def judge(value: str) -> int | None:
        words = value.split()[:2]
        return _overflow(words[min(number, len(words) - 1)]) if words else None

    return judge


def _background_clip(value: str) -> int | None:
    if value == "text":
        return HIDES
    return SHOWS if value in _ANY or value in {"border-box", "padding-box", "content-box"} else None


def _background(value: str) -> int | None:
    painted = re.search(r"gradient\(|url\(|var\(", value) or SHOWS in map(_colour, value.split())
    return SHOWS if painted and value not in _ANY else HIDES


_JUDGES: Mapping[str, tuple[tuple[str, Callable[[str], int | None]], ...]] = {
    "display": (("display", _display),),
    "visibility": (("visibility", _visibility),),
    "opacity": (("opacity", _opacity),),
    "font-size": (("font-size", _size),),
    "font": (("font-size", _font),),
    "color": (("color", _colour),),
    "text-indent": (("text-indent", _indent),),
    "transform": (("transform", _transform),),
    "-webkit-transform": (("transform", _transform),),
    "scale": (("scale", _scale),),
    "clip": (("clip", _clip),),
    "clip-path": (("clip-path", _clip_path),),
    "overflow": (("overflow-x", _overflow_both(0)), ("overflow-y", _overflow_both(1))),
    "overflow-x": (("overflow-x", _overflow),),
    "overflow-y": (("overflow-y", _overflow),),
    "background-clip": ((CLIPPED, _background_clip),),
    "-webkit-background-clip": ((CLIPPED, _background_clip),),
    "background": (("background", _background),),
    "background-image": (("background", _background),),
    "background-color": (("background-color", _background),),
    **{side: ((side, _offset),) for side in ("left", "right", "top", "bottom")},
    **{side: ((side, _room),) for side in NO_ROOM},
}
