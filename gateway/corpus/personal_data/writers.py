"""Who writes to whom: the people that mails, minutes, calendars and cards name in a form of their own.

The rooms of `people` go by a label beside one name. Here are lists of names, the line a mail program puts above what it
quotes, signatures, and sentences in which somebody gives their name.
"""

import re
from collections.abc import Iterator

from gateway.corpus.masking import Span, windows
from gateway.corpus.personal_data.people import FULL, LIKE_ANYTHING, THINGS, UPPER, WORD, is_office
from gateway.corpus.personal_data.stretches import Seen, needles

_SENDERS = r"From|To|Cc|Bcc|Reply-To|Von|An|De|À|Para"
_PRESENT = (
    r"Attendees|Present|Apologies|Participants|Minutes by|Note taker|Teilnehmer(?:innen|:innen|\*innen)?|Teilnehmende|Anwesende?|Entschuldigt|"
    r"Protokoll(?:führer(?:in)?|ant(?:in)?)?|Verteiler|Présents?|Excusés?|Asistentes|Ausentes|Participantes"
)
_LINE = re.compile(
    rf"\n[ \t>*\-•|#_]{{0,12}}+(?=[A-ZÀ])(?:{_SENDERS}|{_PRESENT})[*_]{{0,2}}[ \u00a0]?:[*_]{{0,2}}[ \t\u00a0](?P<names>[^\n|]{{3,600}})"
)
_BETWEEN = re.compile(r"[,;/]|[ ](?:und|and|et|y|e|&)[ ]")
_ONE_OF_THEM = re.compile(
    rf"[ \t\"']{{0,4}}(?P<value>{FULL})[\"']?[ ]?(?:\([^()\n]{{0,60}}\)|<[^<>\n]{{0,120}}>|\[[^\[\]\n]{{0,120}}\])?[ .]{{0,2}}\Z"
)
_REVERSED = re.compile(rf"[ \"']{{0,2}}(?P<value>{WORD}, {WORD})[\"']?(?=[ ]*(?:[\[<(;]|\Z))")
_QUOTED = re.compile(
    rf"(?:[Oo]n [^\n]{{4,60}}?, ?|schrieb |, )(?P<value>{FULL})[ \u00a0]?(?:(?:<[^<>\n]{{3,120}}>|\[[^\[\]\n]{{3,120}}\])[ \u00a0]?)?"
    r"(?:(?:wrote|a écrit|escribió)[ \u00a0]?:|(?=[ \u00a0]?:))"
)
_QUOTES = needles("wrote:", "wrote :", "schrieb ", "a écrit", "escribió")
_SIGNED = re.compile(rf"\n[ \t>]{{0,4}}--[ ]?\n[ \t>]{{0,4}}(?P<value>{FULL})[ \t]*(?=\n|\Z|,|\|)")
_THANKS = re.compile(
    r"\n[ \t>]{0,8}+(?=[A-Zgt])(?:(?:Many )?[Tt]hank(?:s| you)(?: (?:in advance|and regards))?|(?:Vielen |Besten |Herzlichen )?Dank(?:e)?(?: im Voraus)?|Merci(?: d['’]avance)?|"
    r"(?:Muchas )?[Gg]racias|Best|All the best|(?:Kind|Best|Warm) regards|Yours \w+|Mit (?:freundlichen|besten|herzlichen) Gr(?:ü|ue)(?:ß|ss)en|"
    rf"Hochachtungsvoll|Atentamente|Cordialement)[,.!]?[ \t]*\n{{1,5}}[ \t>]{{0,8}}(?P<value>{FULL})[ \t]*(?=\n|\Z|,|\|)"
)
_ON_ONE_LINE = re.compile(
    r"\n[ \t>]{0,8}+(?=[A-Zbkw])(?:(?:[Kk]ind|[Bb]est|[Ww]arm) [Rr]egards|(?:Viele|Beste|Liebe|Herzliche|Schöne) Gr(?:ü|ue)(?:ß|ss)e|Freundliche Gr(?:ü|ue)(?:ß|ss)e|Un saludo|Cordialement),?"
    rf"[ ](?P<value>{WORD}(?: {WORD}){{0,2}})[ \t]*(?=\n|\Z)"
)
_ALSO = re.compile(rf", (?:liebe[rs]?|dear|chère?|querid[oa]) (?P<value>[{UPPER}][\w\-]+)(?=[,!:])")
_ALSO_TO = needles(", lieb", ", dear", ", chèr", ", querid")
_INTRODUCED = re.compile(
    rf"(?<!\w)(?:[Mm]y name is|[Mm]ein Name ist|[Ii]ch hei(?:ß|ss)e|[Jj]e m['’]appelle|[Mm]on nom est|[Mm]e llamo|[Mm]i nombre es|"
    r"(?:Ansprechpartner(?:in)?|Kontaktperson|[Cc]ontact person) (?:ist|is)|(?:[Ss]igned|[Uu]nterzeichnet|[Uu]nterschrieben)(?: by| von)?:?|gez\.|"
    rf"[Ss]igné par|[Ff]irmado por|@author|Dipl\.-(?:Ing|Inf|Kfm|Phys)\.) (?P<value>{FULL})(?![\w@])"
)
_GIVEN = needles("ame is", "Name ist", "ch hei", "appelle", "nom est", "llamo", "nombre es", "igned", "nterzeichnet", "nterschrieben", "gez. ",
          "igné par", "irmado por", "@author", "Dipl.-", "partner", "ontaktperson", "ontact person")  # fmt: skip
_CARD = re.compile(
    rf"\n(?:FN(?:;[^:\n]{{0,60}})?:(?P<full>{FULL})|N(?:;[^:\n]{{0,60}})?:(?P<parts>[{UPPER}][\w'’\- ]*;[{UPPER}][\w'’\- ]*))|"
    rf"(?:ATTENDEE|ORGANIZER)(?:;[^\n:]{{0,200}}?)?;CN=\"?(?P<guest>{FULL})"
)


def find_writers(seen: Seen) -> Iterator[Span]:
    text = seen.text
    lined = "\n" + text.replace("\f", "\n")
    for line in _LINE.finditer(lined):
        yield from _listed(lined, *line.span("names"))
    yield from _cards(lined, seen.low)
    for pattern in (_SIGNED, _THANKS, _ON_ONE_LINE):
        for match in pattern.finditer(lined):
            if _is_somebody(match["value"]):
                yield Span(match.start("value") - 1, match.end("value") - 1, "person")
    for pattern, at, before in (
        (_QUOTED, seen.at_exactly(_QUOTES), 200),
        (_ALSO, seen.at(_ALSO_TO), 1),
        (_INTRODUCED, seen.at_exactly(_GIVEN), 24),
    ):
        for start, end in windows(at, before=before, after=120, length=len(text)):
            for match in pattern.finditer(text, start, end):
                if _is_somebody(match["value"]):
                    yield Span(*match.span("value"), "person")


def _cards(lined: str, low: str) -> Iterator[Span]:
    if "attendee;" in low or "organizer;" in low or "begin:vcard" in low:
        for match in _CARD.finditer(lined):
            kind = match.lastgroup or ""
            yield Span(match.start(kind) - 1, match.end(kind) - 1, "person")


def _listed(lined: str, start: int, end: int) -> Iterator[Span]:
    if match := _REVERSED.match(lined[start:end]):  # `Muster, Anna`
        yield Span(start + match.start("value") - 1, start + match.end("value") - 1, "person")
        start += match.end()
    places = [start, *(at for match in _BETWEEN.finditer(lined, start, end) for at in match.span()), end]
    for left, right in zip(places[::2], places[1::2], strict=True):
        one = _ONE_OF_THEM.match(lined[left:right])
        if one and _is_somebody(one["value"]):
            yield Span(left + one.start("value") - 1, left + one.end("value") - 1, "person")


def _is_somebody(value: str) -> bool:
    return not is_office(value) and THINGS.isdisjoint(value.split()) and not LIKE_ANYTHING.search(value)
