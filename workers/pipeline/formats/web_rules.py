"""The rules of a page's own style sheets as they are written: which count on a screen, about what, and how much each weighs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from workers.pipeline.formats.web_values import Said, quiet

_BRACE = re.compile(r"[{}]")
_MARKUP = re.compile(r"<!--|-->|<!\[CDATA\[|\]\]>")
_SCREENS = frozenset({"", "all", "screen", "only screen", "only all"})
_WIDER = re.compile(r"(?:(?:only )?(?:screen|all) and )?\(min-width ?: ?(\d{1,4})(?:\.\d+)?(px|r?em)\)")
_DESK = {"px": 1280, "em": 80, "rem": 80}
_ELSEWHERE = ("@container", "@keyframes", "@-webkit-keyframes", "@starting-style", "@page", "@font-face")
_WHERE = re.compile(r":where\([^()]*\)")
_IDS = re.compile(r"#[\w-]")
_CLASSES = re.compile(r"\.[\w-]|\[|(?<!:):(?!:|not\b|is\b|has\b)[\w-]")
_TAGS = re.compile(r"(?:^|[\s>+~(,])[a-zA-Z]")
_DEEPEST = 8  # rules inside rules
LONGEST_SELECTOR = 500


@dataclass(slots=True)
class Rule:
    selectors: str
    body: str
    shows_only: bool  # wide screens: who reads at one sees it, and elsewhere it is as it was
    said: Said | None = None


def rules_of(tree: LexborHTMLParser) -> Iterator[Rule]:
    for style in tree.css("style"):
        around = style.parent
        media = style.attributes.get("media") or ""
        if (around is not None and around.tag == "noscript") or _on_screen(media) is not False:
            continue
        sheet = quiet(style.text() or "")
        yield from _parsed(_MARKUP.sub(" ", sheet))


def _parsed(sheet: str) -> Iterator[Rule]:
    """Rules for print and small screens do not count; a rule inside a rule is about what the outer one is about."""
    stack: list[
        tuple[str, bool | None]
    ] = []  # selectors, and what `_on_screen` says; "" for rules about conditions
    position = 0
    for brace in _BRACE.finditer(sheet):
        text, position = sheet[position : brace.start()], brace.end()
        selectors, shows_only = stack[-1] if stack else ("", False)
        if brace.group() == "{":
            said, _, prelude = text.rpartition(";")
            if said and selectors and shows_only is not None:
                yield Rule(selectors, said.lower(), shows_only)
            stack.append(_opened(prelude.replace("\x1f", " ").strip(), selectors, shows_only, len(stack)))
        elif stack:
            stack.pop()
            if selectors and shows_only is not None and text.strip():
                yield Rule(selectors, text.lower(), shows_only)


def _opened(prelude: str, around: str, shows_only: bool | None, depth: int) -> tuple[str, bool | None]:
    if depth > _DEEPEST:
        return "", None
    if prelude.startswith("@"):
        name = prelude.lower()
        if name.startswith("@media"):
            screen = _on_screen(name.removeprefix("@media"))
            return around, None if shows_only is None or screen is None else shows_only or screen
        return around, None if name.startswith(_ELSEWHERE) else shows_only
    if not around or not prelude:
        return prelude, shows_only
    outer = f":is({around})" if "," in around else around
    inner = prelude.replace("&", outer) if "&" in prelude else f"{outer} {prelude}"
    return (inner, shows_only) if len(inner) <= LONGEST_SELECTOR else ("", None)


def _on_screen(media: str) -> bool | None:
    """False: on every screen. True: on wide ones, as on a desk. None: elsewhere."""
    queries = [" ".join(query.split()) for query in media.lower().split(",")]
    if any(query in _SCREENS for query in queries):
        return False
    wider = (_WIDER.fullmatch(query) for query in queries)
    return True if any(found and int(found[1]) <= _DESK[found[2]] for found in wider) else None


def selectors_of(listed: str) -> Iterator[str]:
    depth = begun = 0
    for mark in re.finditer(r"[,()\[\]]", listed):
        sign = mark.group()
        if sign == "," and depth == 0:
            yield listed[begun : mark.start()].strip()
            begun = mark.end()
        elif sign != ",":
            depth += 1 if sign in "([" else -1
    yield listed[begun:].strip()


def specificity(selector: str) -> tuple[int, int, int]:
    selector = _WHERE.sub("", selector)
    return len(_IDS.findall(selector)), len(_CLASSES.findall(selector)), len(_TAGS.findall(selector))
