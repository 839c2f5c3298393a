"""Values that a label announces: assignments, headers, tables, flags, tags and sentences in four languages.

After a label the ways to give a value are tried from the surest to the loosest. How secret-like the value must be
depends on how sure the label and the way are: after `"password":` a plain word is enough, after "the token is" it is not.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gateway.corpus.field_names import describes, names_a_field, names_values
from gateway.corpus.masking import Span
from gateway.corpus.secrets.labels import Grade, Label
from gateway.corpus.secrets.values import (
    Strength,
    is_made_up,
    is_one_word,
    is_spelled,
    names_a_secret,
    strength,
)

_LONGEST = 1024
_SPACE = r"[^\S\n\f]"
_CLOSE = r"""[\\"'`*_\])”»]{0,4}(?:\[\d{0,4}\])?"""
_ASSIGN = re.compile(
    rf"{_CLOSE}(?:\.(?=[:：]))?{_SPACE}{{0,8}}(?P<sep>:=|=>|={{1,3}}|!==?|::(?= )|[:：]|→|->|⇒|➡|👉)(?!//)[*_`]{{0,3}}{_SPACE}{{0,8}}"
)
_TYPED = re.compile(rf"[A-Za-z_][\w\[\]., |]{{0,40}}?{_SPACE}?={_SPACE}{{0,4}}(?!=)")
_TAG_OPEN = re.compile(r"<(?:\w{1,20}:)?\Z")
_TAG = re.compile(r"(?: [^<>\n]{0,80})?>\s{0,4}(?:<!\[CDATA\[)?")
_TAGS = r"(?:</?[A-Za-z][A-Za-z0-9]{0,9}(?:\s[^<>\n]{0,80})?>\s{0,4})"
# `<b>Password:</b> …`, `<dt>Password</dt><dd>…`
_MARKED_UP = re.compile(
    rf"[:：]\s{{0,4}}{_TAGS}{{1,6}}|\s{{0,4}}{_TAGS}{{1,3}}[:：]\s{{0,4}}{_TAGS}{{0,3}}|\s{{0,4}}</(?:td|th|dt)>\s{{0,4}}<(?:td|dd)[^<>\n]{{0,80}}>\s{{0,4}}{_TAGS}{{0,3}}",
    re.IGNORECASE,
)
_CELL = re.compile(rf"{_CLOSE}[:：]?[*_]{{0,2}}{_SPACE}{{0,8}}(?:\||\t){_SPACE}{{0,40}}")
# In a table with a head both cells are named: `Setting: Password | Value: …`.
_CELL_START = re.compile(r"(?:\A|[|\t]|: )[\s*_\"'`]{0,8}\Z")
_CELL_NAME = re.compile(rf"(?P<name>[^|:\n\f]{{1,120}}):{_SPACE}{{1,4}}")
_CELL_END = re.compile(rf"{_CLOSE}{_SPACE}{{0,8}}(?:\||\n|\f|\Z)")
_MEMBER = re.compile(
    r"""(?:\.|["']\s{0,3}:\s{0,3}\{\s{0,20}["'])(?!(?i:user|login|name|id|type|url|host|count|length|created|expir))"""
    r"""[\w\-]{1,40}["']?\s{0,3}[:=]\s{0,3}"""
)
_COMMA = re.compile(r"""[\\]?["'`]\s{0,8},\s{0,8}(?=\\?["'`])""")
_CALL = re.compile(r"\(\s{0,4}(?=[\"'`])")
_FLAG = re.compile(r"[ =](?!-)")
_FLAG_END = re.compile(r"[\"']|\s+-|\s*(?:\n|\Z)")
_WORD = rf"{_SPACE}{{1,3}}[(\[]?(?!policy|length|reset|manager|field|must|should|muss|doit|debe)[\w'’./@\-]{{1,30}}!?[)\]]?"
_VERB = re.compile(
    rf"(?:(?:{_WORD}){{0,6}}?,?{_SPACE}{{1,3}}(?:is|are|was|ist|lautet|war|est|c['’]est|était|es|era|será|sera)|['’]s)(?:{_SPACE}(?:now|jetzt|nun|"
    rf"maintenant|ahora))?{_SPACE}?[:：]?(?:{_SPACE}{{1,3}}|{_SPACE}{{0,3}}\n[ \t>]{{0,4}})"
)
_LOOSE = re.compile(rf"(?:{_WORD}){{1,6}}?{_SPACE}{{0,3}}(?:[:：]|{_SPACE}[-–—→]){_SPACE}{{1,8}}")
_TO = re.compile(rf"(?:{_WORD}){{0,5}}?{_SPACE}{{1,3}}(?:to|auf|en|à|a|por){_SPACE}{{1,3}}")
_DASH = re.compile(rf"{_SPACE}{{1,3}}[-–—]{_SPACE}{{1,3}}")
_GAP = re.compile(rf"{_SPACE}{{1,4}}")
_NEXT_LINE = re.compile(
    rf"{_CLOSE}[:：]?[*_]{{0,2}}{_SPACE}{{0,40}}\n{{1,2}}{_SPACE}{{0,40}}(?=\S{{5,256}}{_SPACE}{{0,8}}(?:\n|\f|\Z))"
)

_BLOCK = re.compile(
    rf"[|>][+\-]?\d?{_SPACE}{{0,4}}\n{_SPACE}{{1,40}}"
)  # of YAML: the value begins on the next line
_PHRASE = re.compile(rf"[a-z]{{3,12}}(?:[ \-][a-z]{{3,12}}){{3,9}}(?={_SPACE}{{0,4}}(?:\n|\f|\Z))")
# A name and its value each in a place of their own: `name: X, value: Y`, `<add key="X" value="Y">`, `<property name="X">Y<`.
_NAME_OF = re.compile(
    r"""(?<!\w)(?:(?P<tag>[\w.\-]{1,40})@)?(?:name|key|id|variable|property|setting|label|field|option|param)["']?\s{0,3}[:=]\s{0,3}["']?
        (?:[\w\-]{1,24}[ ]){0,3}\Z|<(?P<key>key)>\s{0,4}(?:[\w\-]{1,24}[ ]){0,3}\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_VALUE_OF = re.compile(
    r"""["']?\s{0,3},?\s{0,40}["']?(?:[\w\-]{1,40}[.@]){0,4}(?:string)?value["']?\s{0,3}[:=]\s{0,3}""",
    re.IGNORECASE,
)
_TEXT_OF = re.compile(r"""["'][^<>\n]{0,80}>\s{0,4}(?=[^\s<])""")
# `<key>X</key> <string>Y</string>` of a property list, and as it reads here: `key: X`, on the next line `string: Y`.
_LISTED = re.compile(r"</key>\s{0,40}<(?:string|data|integer)>|\n(?:string|data|integer): ")
_ATTRIBUTES = 10  # that may stand between the name and the words

_OPEN = re.compile(r"""(?:[bBrRfFuU@$]{0,2})(\\?["'`]|[“„”«‚‘])""")
_CLOSERS = {"“": "”“", "„": "“”", "”": "”", "«": "»", "‚": "‘’", "‘": "’"}
_UNQUOTED = re.compile(r"[^\s|]{1,1024}")
# Where an unquoted value ends although no space follows: a closing quote or tag, the next pair of a list.
_CUT = re.compile(
    r"""\\?["'`](?=[,;:)}\]>\s]|\Z)|</?[a-zA-Z]|&(?:amp;)?[\w.\-]+=|[,;]\\?["']?[\w.\-]+\\?["']?[:=]|\\[nrt](?=\W|\Z)|[)}\]];?\Z"""
)
_PUNCTUATION = ".,;:*_\"'`)]}"
_STATEMENT_END = re.compile(rf"[.;]?{_SPACE}*(?:\n|\f|\Z|\||</)")
_PAIR_END = re.compile(r"[;&\s\"']|\Z")
_LINE_START = re.compile(r"[\s>*\-+|#\"'_`]*")
_SETTING_START = re.compile(r"(?:export |set |ENV |\$env:)?")
_PAIR_START = re.compile(r"[;?&]\s?\Z")
_CONNECTION = re.compile(r"\b(?:host|user|dbname|port)=\S{1,128}\s{1,3}\Z")
_SETTER = re.compile(r"(?:define|put|setproperty|setdefault|setenv|putenv)\(\s{0,4}[\"'`]\Z", re.IGNORECASE)
_LOGIN = re.compile(r"\blogin\s+(?!and|or|und|oder|et|ou|y|o|with|name|the)\S{1,64}\s+\Z")
_CODE_LINE = re.compile(r"\b(?:def|function|fn|func|lambda|interface|struct|class)\b|=>|->|::|\);?\s*$")
_DIGITS = re.compile(r"\d{4,8}")


class Value(NamedTuple):
    start: int
    end: int
    quoted: bool


def find_labelled(text: str, labels: Iterable[Label]) -> Iterator[Span]:
    reached = 0
    for label in labels:
        if label.start < reached:
            continue  # a part of the value before
        value = _pin(text, label) if label.kind == "pin" else _announced(text, label)
        if value is not None:
            reached = value.end
            yield Span(value.start, value.end, label.kind)


def _announced(text: str, label: Label) -> Value | None:
    for way in (
        _assigned,
        _of_a_member,
        _paired,
        _tagged,
        _marked_up,
        _in_cell,
        _as_argument,
        _as_flag,
        _said,
        _on_next_line,
    ):
        value = way(text, label)
        if value is not None and (label.grade > Grade.SOFT or is_one_word(text[value.start : value.end])):
            return value
    return None


def read_value(text: str, at: int) -> Value | None:
    """The value that begins here, without its quotes and without the punctuation after it."""
    opening = _OPEN.match(text, at)
    if opening:
        end = _closing(text, opening.end(), opening[1])
        if end is not None:
            inner = text[opening.end() : end]
            start = end - len(inner.lstrip())
            return Value(start, start + len(inner.strip()), quoted=True) if inner.strip() else None
        at = opening.end()
    run = _UNQUOTED.match(text, at)
    if run is None:
        return None
    cut = _CUT.search(text, at, run.end())
    end = cut.start() if cut else run.end()
    while end > at and text[end - 1] in _PUNCTUATION:
        end -= 1
    return Value(at, end, quoted=False) if end > at else None


def _closing(text: str, at: int, quote: str) -> int | None:
    if quote.startswith("\\"):
        end = text.find(quote, at, at + _LONGEST)
        return end if end >= 0 and "\n" not in text[at:end] else None
    closers = _CLOSERS.get(quote, quote)
    for position in range(at, min(at + _LONGEST, len(text))):
        character = text[position]
        if character == "\n":
            return None
        if character in closers and (text[position - 1] != "\\" or position == at):
            return position
    return None


def _judge(text: str, value: Value | None, needed: Strength) -> Value | None:
    if value is None:
        return None
    word = text[value.start : value.end]
    return value if strength(word, quoted=value.quoted) >= needed and not names_a_secret(word) else None


def _assigned(text: str, label: Label) -> Value | None:
    match = _ASSIGN.match(text, label.end)
    if match is None:
        return None
    at = match.end()
    if "phrase" in text[label.core : label.end].lower() and (phrase := _PHRASE.match(text, at)):
        return (
            None
            if any(strength(word, quoted=True) is Strength.NONE for word in phrase[0].split())
            else Value(*phrase.span(), quoted=False)
        )
    if block := _BLOCK.match(text, at):
        at = block.end()
    if match["sep"] in ":：" and (typed := _TYPED.match(text, at)):
        at = typed.end()
    value = read_value(text, at)
    found = _judge(text, value, Strength.STRONG)
    if found is None and value is not None and _plain_is_enough(text, label, match["sep"], value):
        found = _judge(text, value, Strength.PLAIN)
    return found


def _plain_is_enough(text: str, label: Label, sep: str, value: Value) -> bool:
    word = text[value.start : value.end]
    if value.quoted:
        if any(character.isspace() for character in word):
            name = text[label.core : label.end].lower()
            return "phrase" in name or "frase" in name or (label.grade is Grade.HARD and is_spelled(word))
        return len(word) >= 4 and (
            label.grade is Grade.HARD or (label.grade is Grade.KEY and len(word) >= 12 and word.isalnum())
        )
    if (
        label.grade is not Grade.HARD
        or len(word) < 4
        or not (word[0].isalnum() and word.replace("-", "a").isalnum())
    ):
        return False
    if text.startswith(" | ", value.end) and names_a_field(word):
        return False  # the names of a list of pairs, under the first of them
    before = _line_before(text, label.start)
    if _CONNECTION.search(before) and sep == "=":
        return bool(_PAIR_END.match(text, value.end))
    if _PAIR_START.search(before) and "=" in sep:
        return bool(_PAIR_END.match(text, value.end))
    if not _STATEMENT_END.match(text, value.end) or _CODE_LINE.search(before):
        return False
    # `password = word` begins a line of a settings file; further in it is code.
    return sep not in {"=", "=="} or bool(_SETTING_START.fullmatch(before))


def _line_before(text: str, at: int) -> str:
    """What stands before on the same line; of a very long line its last part."""
    start = text.rfind("\n", max(0, at - 400), at)
    return text[start + 1 if start >= 0 else max(0, at - 400) : at]


def _paired(text: str, label: Label) -> Value | None:
    named = _NAME_OF.search(text, max(0, label.start - 64), label.start)
    if named is None:
        return None
    sure = _VALUE_OF.match(text, label.end)
    after = sure or _TEXT_OF.match(text, label.end)
    if named["key"] or named[0].lower().startswith("key:"):
        after = after or _LISTED.match(text, label.end)
    at = after.end() if after else _words_below(text, label.end, named["tag"])
    if at is None:
        return None
    value = read_value(text, at)
    if value is None or not is_one_word(text[value.start : value.end]):
        return None
    return _judge(text, value, Strength.PLAIN if sure and label.grade is Grade.HARD else Strength.STRONG)


def _words_below(text: str, at: int, tag: str | None) -> int | None:
    """As an XML file reads here: `string@name: api_key`, perhaps other attributes, and then `string: …`."""
    for _ in range(_ATTRIBUTES if tag else 0):
        if text.startswith(f"\n{tag}: ", at):
            return at + len(f"\n{tag}: ")
        if not text.startswith(f"\n{tag}@", at):
            return None
        at = text.find("\n", at + 1, at + _LONGEST)
        if at < 0:
            return None
    return None


def _tagged(text: str, label: Label) -> Value | None:
    """`<password>…</password>`"""
    match = (
        _TAG.match(text, label.end) if _TAG_OPEN.search(text, max(0, label.start - 24), label.start) else None
    )
    if match is None:
        return None
    end = text.find("</", match.end(), match.end() + _LONGEST)
    if end <= match.end() or label.grade is Grade.SOFT:
        return None
    end -= len("]]>") if text.startswith("]]>", end - len("]]>")) else 0
    inner = Value(match.end(), end, quoted=True)
    return _judge(text, inner, Strength.PLAIN if label.grade is Grade.HARD else Strength.STRONG)


def _marked_up(text: str, label: Label) -> Value | None:
    match = _MARKED_UP.match(text, label.end) if label.grade > Grade.SOFT else None
    return _judge(text, read_value(text, match.end()), Strength.STRONG) if match else None


def _of_a_member(text: str, label: Label) -> Value | None:
    """`passwords.db: …`, as JSON reads here, and `"passwords": {"db": "…"`"""
    if label.end - label.core < len("tokens") or text[label.end - 1] not in "sn":
        return None
    match = _MEMBER.match(text, label.end)
    value = read_value(text, match.end()) if match else None
    if value is None or not is_one_word(text[value.start : value.end]):
        return None
    return _judge(text, value, Strength.STRONG)


def _in_cell(text: str, label: Label) -> Value | None:
    match = _CELL.match(text, label.end)
    if match is None:
        return None
    found = _judge(text, read_value(text, match.end()), Strength.STRONG)
    return found or _in_named_cell(text, label, match.end())


def _in_named_cell(text: str, label: Label, at: int) -> Value | None:
    named = _CELL_NAME.match(text, at)
    if named is None or not _CELL_START.search(_line_before(text, label.start)):
        return None
    value = read_value(text, named.end())
    if value is None or describes(named["name"]) or not _CELL_END.match(text, value.end):
        return None
    plain = label.grade is Grade.HARD and names_values(named["name"]) and value.end - value.start >= 4
    return _judge(text, value, Strength.PLAIN if plain else Strength.STRONG)


def _as_argument(text: str, label: Label) -> Value | None:
    """`put("password", "…")` and `setPassword("…")`"""
    match = _COMMA.match(text, label.end) or _CALL.match(text, label.end)
    if match is None:
        return None
    sets = label.grade is Grade.HARD and (
        text[label.start : label.core].lower().rstrip("_").endswith(("set", "with"))
        or _SETTER.search(text, max(0, label.start - 24), label.start) is not None
    )
    value = read_value(text, match.end())
    if value is None or (sets and not is_one_word(text[value.start : value.end])):
        return _judge(text, value, Strength.STRONG)
    return _judge(text, value, Strength.PLAIN if sets else Strength.STRONG)


def _as_flag(text: str, label: Label) -> Value | None:
    match = _FLAG.match(text, label.end) if text.startswith("--", label.start) else None
    if match is None:
        return None
    value = read_value(text, match.end())
    found = _judge(text, value, Strength.STRONG)
    ends = _PAIR_END if match[0] == "=" else _FLAG_END
    if found is None and value and label.grade is Grade.HARD and ends.match(text, value.end):
        found = _judge(text, value, Strength.PLAIN)
    return found if found and not text[found.start : found.end].isupper() else None


def _said(text: str, label: Label) -> Value | None:
    """In a sentence: "the password is …", "Passwort für das WLAN: …", `PASSWORD '…'`, "mot de passe « … »"."""
    if label.grade is Grade.HARD:
        ways = (_VERB, _DASH, _LOOSE, _TO, _GAP)
    elif label.grade is Grade.KEY:
        ways = (_VERB, _DASH, _LOOSE)
    else:
        ways = (_VERB, _DASH)
    for way in ways:
        match = way.match(text, label.end)
        if match is None:
            continue
        value = read_value(text, match.end())
        found = _judge(text, value, _needed(text, label, value, way, match[0])) if value else None
        if way is _TO and found is not None and not is_made_up(text[found.start : found.end]):
            continue
        if found is not None and (way is not _GAP or _stands_alone(text, found, label)):
            return found
    return None


def _needed(text: str, label: Label, value: Value, way: re.Pattern[str], said: str) -> Strength:
    if value.quoted and label.grade >= Grade.KEY:
        sql = way is _GAP and text[label.core : label.end].isupper()
        return Strength.PLAIN if way is _VERB or sql else Strength.STRONG
    if label.grade is Grade.HARD:
        # In German nothing but the value follows "lautet".
        lautet = way is _VERB and said.rstrip(" :").endswith("lautet") and "\n" not in said
        login = way is _GAP and _LOGIN.search(text, max(0, label.start - 80), label.start)
        return Strength.PLAIN if lautet or login else Strength.STRONG
    made_up = label.kind == "password" and is_made_up(text[value.start : value.end])  # "la clave es …"
    return Strength.STRONG if made_up else Strength.RANDOM


def _stands_alone(text: str, value: Value, label: Label) -> bool:
    """After a mere gap: not `password2`, not `password base64-encoded`."""
    word = text[value.start : value.end]
    if value.quoted or _LOGIN.search(text, max(0, label.start - 80), label.start):
        return True
    return "pass" not in word.lower() and "-" not in word and any(c.isdigit() for c in word)


def _on_next_line(text: str, label: Label) -> Value | None:
    if label.grade is Grade.SOFT or not _LINE_START.fullmatch(_line_before(text, label.start)):
        return None
    match = _NEXT_LINE.match(text, label.end)
    return _judge(text, read_value(text, match.end()), Strength.STRONG) if match else None


def _pin(text: str, label: Label) -> Value | None:
    match = _ASSIGN.match(text, label.end) or _VERB.match(text, label.end)
    if match is None and (cell := _CELL.match(text, label.end)):
        match = _CELL_NAME.match(text, cell.end()) or cell
    digits = _DIGITS.match(text, match.end()) if match else None
    if digits is None or text[digits.end() : digits.end() + 1].isalnum():
        return None
    return Value(*digits.span(), quoted=False)
