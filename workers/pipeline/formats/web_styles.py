"""Which of a page's elements can be seen: its style rules and inline styles, weighed as a browser weighs them.

Importance, then inline before rules, then specificity, then order; and what is inherited ends where a child says otherwise.
Asking the whole page for every rule of a large sheet would take longer than reading it. So at first only the rules that hide
are looked for, and what else is said of a property only once something on the page is hidden by it.
"""

import re
from collections import Counter
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from workers.pipeline.formats.web_rules import LONGEST_SELECTOR, Rule, rules_of, selectors_of, specificity
from workers.pipeline.formats.web_values import (
    CLIPPED,
    CUT_OFF,
    HIDES,
    INHERITED,
    NO_ROOM,
    PAINTED,
    SHOWS,
    WHOLE,
    Said,
    quiet,
    said_by,
)

Weight = tuple[bool, tuple[int, int, int], int]  # important, specificity, order
Ruled = dict[int, tuple[Weight, int]]  # element → the rule that wins there, and what it says

_HIDING = frozenset((*INHERITED, *WHOLE, CLIPPED))
_NOTHING: tuple[Said, bool] = ({}, False)
_BIT = {name: 1 << number for number, name in enumerate((*INHERITED, CLIPPED))}
_UNREADABLE = _BIT["visibility"] | _BIT["font-size"] | _BIT["text-indent"]
# No rule hides without one of these; most rules have none and are not looked at further.
_MAY_HIDE = re.compile(
    r"none|hidden|collapse|transparent|:\s*text|:\s*[-+]?[0.]|\b0+(?:[a-z]{1,4}|%)?[\s/]|[,/]\s*+0*+(?:\.0*+)?%?\s*+\)|"
    r"#[0-9a-f]{3}(?:0|[0-9a-f]{3}00)\b|rect\(|inset\(|-\d{4}|scale|\\"
)
_SIGNS = frozenset("\\\x1f")  # a name with an escape or a torn one is not found by itself
# Nothing is so while one only reads, and what is drawn before and after an element is not the element.
_AT_REST = re.compile(r":not\(\s*:(?:hover|active|target|visited|focus(?:-within|-visible)?)\s*\)")
_IN_USE = re.compile(r"::|:(?:before|after|first-l|hover|active|target|visited|focus|-)")
_SUBJECT = re.compile(r"[^\s>+~]+$")
_NAMES = re.compile(r"[.#]?[\w-]+")
_SEVERAL = 300  # rules; from here on it pays to know which names the page uses, as few of a large sheet's are
_MOST_VISITS = 30_000_000  # of elements by selectors
_COST, _COST_FOUND = 300, 100  # of a selector and of each element it finds, in visits
_MOST_FOUND = 200_000
_AMONG_SIBLINGS = re.compile(r":nth-|-of-type|~")
_LOOKS_PER_VISIT = 16


class Styles:
    """Asked on a walk down the page, for each element once."""

    def __init__(self, tree: LexborHTMLParser, size: int) -> None:
        self._tree = tree
        self._cost = size + _COST
        self._visits = _MOST_VISITS
        self._siblings: int | None = None  # pairs of them
        self._rules = list(rules_of(tree))
        self._inline: dict[str, tuple[Said, bool]] = {}
        self._ruled: dict[str, Ruled] = {}
        self._names: dict[str, set[str]] = {}
        self._hidden: dict[str, set[int]] = {}
        self._touched: set[int] = set()
        self._known = (
            set(_names_of(tree.css("*"))) if len(self._rules) > _SEVERAL and size < _MOST_FOUND else None
        )
        self._find_hidden()

    @property
    def hide(self) -> bool:
        """Whether any rule hides anything."""
        return bool(self._touched)

    def sight(self, node: LexborNode, style: str | None, around: int) -> int | None:
        """How its words can be seen, given how those around it can; None if all that is inside is hidden."""
        touched = bool(self._touched) and node.mem_id in self._touched
        said, hides = self._said_inline(style) if style else _NOTHING
        if not (touched or around or hides):
            return 0
        return self._weighed(node.mem_id, said, around)

    def _weighed(self, element: int, said: Said, around: int) -> int | None:
        if said or element in self._touched:
            if any(self._hides(name, element, said) for name in WHOLE if name not in NO_ROOM):
                return None
            if any(self._hides(name, element, said) for name in NO_ROOM) and any(
                self._hides(name, element, said, asked=True) for name in CUT_OFF
            ):
                return None
        for name in INHERITED:
            found = self._winner(name, element, said, asked=bool(around & _BIT[name]))
            if found == HIDES:
                around |= _BIT[name]
            elif found == SHOWS:
                around &= ~_BIT[name]
        if self._hides(CLIPPED, element, said) and any(
            self._winner(name, element, said, asked=True) == SHOWS for name in PAINTED
        ):
            around |= _BIT[CLIPPED]
        return around

    def _hides(self, name: str, element: int, said: Said, *, asked: bool = False) -> bool:
        return self._winner(name, element, said, asked=asked) == HIDES

    def _winner(self, name: str, element: int, said: Said, *, asked: bool) -> int | None:
        """What is said of the property in the end; None if nothing is. Rules that show are `asked` for only if it matters."""
        important, own = said.get(name, (False, None))
        if important:
            return own
        hidden = element in self._hidden.get(name, ())
        if not (asked or own == HIDES or hidden):
            return own
        ruled = self._all_rules(name).get(element)
        if ruled is None:
            return HIDES if hidden and own is None else own
        return ruled[1] if own is None or ruled[0][0] else own

    def _said_inline(self, style: str) -> tuple[Said, bool]:
        found = self._inline.get(style)
        if found is None:
            said = said_by(quiet(style))
            found = self._inline[style] = (said, bool(_hidden_by(said)))
        return found

    # -- rules

    def _find_hidden(self) -> None:
        for rule in self._rules:
            if rule.shows_only or not _MAY_HIDE.search(rule.body):
                continue
            said = self._said(rule)
            names = _hidden_by(said)
            if not names:
                continue
            for _, nodes in self._matches(rule, strictly=False):
                elements = {node.mem_id for node in nodes}
                self._touched |= elements
                for name in names:
                    self._hidden.setdefault(name, set()).update(elements)
                    if name in WHOLE:
                        self._names.setdefault(name, set()).update(_names_of(nodes))
            if self._visits <= 0 or len(self._touched) > _MOST_FOUND:
                break

    def _all_rules(self, name: str) -> Ruled:
        """What the rules say of the property, element by element; of what is not inherited only where something hides."""
        found = self._ruled.get(name)
        if found is not None:
            return found
        found = self._ruled[name] = {}
        names = self._names.get(name, set()) if name in WHOLE else None
        hint = name.partition("-")[0]
        for order, rule in enumerate(self._rules):
            if hint not in rule.body and _SIGNS.isdisjoint(rule.body):
                continue
            if (said := self._said(rule).get(name)) is None or (rule.shows_only and said[1] != SHOWS):
                continue
            important, state = said
            among = None if important else names
            for selector, nodes in self._matches(rule, strictly=state != HIDES, among=among):
                weight = (important, specificity(selector), order)
                for node in nodes:
                    before = found.get(node.mem_id)
                    if before is None or before[0] <= weight:
                        found[node.mem_id] = (weight, state)
            if self._visits <= 0 or len(found) > _MOST_FOUND:
                found.clear()  # half of what is said may be the wrong half: what is hidden stays so
                break
        return found

    def _said(self, rule: Rule) -> Said:
        if rule.said is None:
            rule.said = said_by(rule.body)
        return rule.said

    def _price(self, selector: str) -> int:
        """In visits. Each element looks at all of those beside it where its number or what stands before it is asked for."""
        if not _AMONG_SIBLINGS.search(selector):
            return self._cost
        if self._siblings is None:
            beside = Counter(node.parent.mem_id for node in self._tree.css("*") if node.parent is not None)
            self._siblings = sum(count * count for count in beside.values())
        return self._cost + self._siblings // _LOOKS_PER_VISIT

    def _matches(
        self, rule: Rule, *, strictly: bool, among: set[str] | None = None
    ) -> list[tuple[str, list[LexborNode]]]:
        """Selector by selector. `strictly`: one that no browser knows costs the rule; `among`: names of elements asked for."""
        found: list[tuple[str, list[LexborNode]]] = []
        for selector in selectors_of(_AT_REST.sub("", rule.selectors)):
            if _IN_USE.search(selector):
                continue
            if self._visits <= 0 or len(selector) > LONGEST_SELECTOR:
                return [] if strictly else found
            if (names := self._known if among is None else among) is not None and not _may_be(
                selector, names
            ):
                continue
            price = self._price(selector)
            if price > self._visits:
                self._visits = 0 if strictly else self._visits
                continue
            self._visits -= price
            try:
                nodes = self._tree.css(selector)
            except (SelectolaxError, ValueError):  # one that only browsers know, or not even they
                if strictly:
                    return []
                continue
            self._visits -= _COST_FOUND * len(nodes)
            found.append((selector, nodes))
        return found


def _hidden_by(said: Said) -> list[str]:
    return [name for name in said if name in _HIDING and said[name][1] == HIDES]


def readable(sight: int) -> bool:
    """Whether text so seen can be read; letters without colour can where the background shines through them."""
    if not sight:
        return True
    return not sight & _UNREADABLE and (not sight & _BIT["color"] or bool(sight & _BIT[CLIPPED]))


def pictured(sight: int) -> bool:
    """A picture needs neither size nor colour of letters."""
    return not sight & _BIT["visibility"]


def _may_be(selector: str, names: set[str]) -> bool:
    """False if the elements of these names cannot be meant."""
    subject = _SUBJECT.search(selector)
    if subject is None or any(mark in subject.group() for mark in "([:*|\\"):
        return True
    return all(name.lower() in names for name in _NAMES.findall(subject.group()))


def _names_of(nodes: list[LexborNode]) -> Iterator[str]:
    for node in nodes:
        yield node.tag or ""
        attributes = node.attributes
        if identity := attributes.get("id"):
            yield f"#{identity.lower()}"
        for name in (attributes.get("class") or "").split():
            yield f".{name.lower()}"
