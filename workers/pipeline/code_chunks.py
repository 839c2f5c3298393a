"""Source code in its own units: functions, classes, methods, and what stands between them.

Tree-sitter finds the definitions; comments and attributes right above one belong to it. The result covers the whole
file, so nothing is lost: a gap carries the symbol of what encloses it. A class is always opened, however small, because
a rule that depends on its size would re-cut the whole class when one line tips it over.
"""

import importlib
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import tree_sitter

from workers.pipeline.languages import GRAMMARS, Grammar

_LARGEST_PARSED = 4_000_000  # characters; what is larger was not written by hand
# The parser takes a quarter of a kilobyte for each, twice that for brackets that wait, and falls where there is no more.
_MOST_MARKS, _MOST_OPEN = 600_000, 50_000
_DEEPEST = 12  # namespaces and classes inside each other
_ATTACHED = frozenset({"comment", "line_comment", "block_comment", "attribute_item", "marginalia"})
_NAMES = frozenset(
    [
        "identifier",
        "field_identifier",
        "type_identifier",
        "qualified_identifier",
        "destructor_name",
        "operator_name",
        "object_reference",
    ]
)
_FUNCTION_VALUES = frozenset(
    ["arrow_function", "function_expression", "function", "generator_function", "class"]
)
_WORDS = re.compile(r"\w")


@dataclass(slots=True)
class Definition:
    start: int
    end: int
    symbol: str | None
    ast_path: str | None
    heading_path: str


@dataclass(slots=True)
class _Region:
    """A definition as bytes, with those inside it."""

    start: int
    end: int
    names: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    inner: list["_Region"] = field(default_factory=list["_Region"])


def definitions(text: str, language: str) -> list[Definition]:
    """The whole text as consecutive definitions and gaps; just one gap where there is no grammar."""
    grammar = GRAMMARS.get(language)
    if grammar is None or len(text) > _LARGEST_PARSED or not _is_written(text):
        return [Definition(0, len(text), None, None, "")]
    source = text.encode()
    root = _parser(grammar.module, grammar.function).parse(source).root_node
    file = _Region(0, len(source), inner=list(_regions(root, grammar, source, _Region(0, 0), 0)))
    return _merge_scraps(text, _in_characters(text, source, list(_flatten(file))))


def _is_written(text: str) -> bool:
    """By somebody, or by a program for programs: not just brackets and quotes."""
    if len(text) < _MOST_OPEN:
        return True
    unclosed = sum(abs(text.count(opening) - text.count(closing)) for opening, closing in ("()", "[]", "{}"))
    return unclosed <= _MOST_OPEN and sum(map(text.count, string.punctuation)) <= _MOST_MARKS


def prepare() -> None:
    """Load every grammar, before a fork rather than after."""
    for grammar in GRAMMARS.values():
        _parser(grammar.module, grammar.function)


@lru_cache(maxsize=32)
def _parser(module: str, function: str) -> tree_sitter.Parser:
    grammar: object = getattr(importlib.import_module(module), function)()
    return tree_sitter.Parser(tree_sitter.Language(grammar))


def _regions(
    node: tree_sitter.Node, grammar: Grammar, source: bytes, outer: _Region, depth: int
) -> Iterator[_Region]:
    attached: tree_sitter.Node | None = None  # first of the comments that touch what comes next
    previous: tree_sitter.Node | None = None
    for child in node.children:
        # Rows are counted from bytes: the binding's points corrupt memory in tree-sitter 0.26.0.
        touching = previous is not None and source.count(b"\n", previous.end_byte, child.start_byte) <= 1
        if not touching:
            attached = None
        if child.type in _ATTACHED and _begins_line(source, child.start_byte):
            attached = attached or child
        else:
            region = _region(child, grammar, source, outer, depth)
            if region is not None:
                region.start = _line_start(source, (attached or child).start_byte)
                region.end = _line_end(source, region.end)
                yield region
            attached = None
        previous = child


def _region(
    node: tree_sitter.Node, grammar: Grammar, source: bytes, outer: _Region, depth: int
) -> _Region | None:
    inner = _unwrapped(node, grammar)
    if inner.type not in grammar.leaves and inner.type not in grammar.containers:
        return None
    name = _name(inner, source)
    # Code without line breaks between its definitions is generated: its definitions are nobody's reading units.
    if name is None or not _begins_line(source, node.start_byte) or not _ends_line(source, node.end_byte):
        return None
    region = _Region(
        node.start_byte, node.end_byte, (*outer.names, name), (*outer.path, f"{inner.type}:{name}")
    )
    if inner.type in grammar.containers and depth < _DEEPEST:
        body = inner.child_by_field_name("body") or inner
        region.inner = list(_regions(body, grammar, source, region, depth + 1))
    return region


def _unwrapped(node: tree_sitter.Node, grammar: Grammar) -> tree_sitter.Node:
    while node.type in grammar.wrappers:
        inside = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
        if inside is None:
            known = grammar.leaves | grammar.containers | grammar.wrappers
            inside = next((child for child in node.children if child.type in known), None)
        if inside is None:
            break
        node = inside
    return node


def _name(node: tree_sitter.Node, source: bytes) -> str | None:
    """What the definition is called; None if it is not really one, such as a plain variable."""
    if node.type in {"lexical_declaration", "variable_declaration"}:
        declarator = next((child for child in node.children if child.type == "variable_declarator"), None)
        value = declarator and declarator.child_by_field_name("value")
        if declarator is None or value is None or value.type not in _FUNCTION_VALUES:
            return None
        return _text(declarator.child_by_field_name("name"), source)
    if node.type == "linkage_specification":
        return 'extern "C"'
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")):
        owner = _text(_first(receiver, {"type_identifier"}), source)  # Go: the method's name says whose it is
        return f"{owner}.{_text(node.child_by_field_name('name'), source)}"
    named = node.child_by_field_name("name")
    if named is None and node.type == "impl_item":
        named = node.child_by_field_name("type")
    if named is None:
        named = _first(node.child_by_field_name("declarator") or node, _NAMES)
    return _text(named, source)


def _first(
    node: tree_sitter.Node, types: Sequence[str] | frozenset[str] | set[str]
) -> tree_sitter.Node | None:
    """The first node of these types, looking through a few levels."""
    level = [node]
    for _ in range(5):
        for candidate in level:
            if candidate.type in types:
                return candidate
        level = [child for candidate in level for child in candidate.named_children]
    return None


def _text(node: tree_sitter.Node | None, source: bytes) -> str | None:
    if node is None:
        return None
    return " ".join(source[node.start_byte : node.end_byte].decode("utf-8", "replace").split())[:200] or None


def _flatten(region: _Region) -> Iterator[_Region]:
    position = region.start
    for inner in region.inner:
        if position < inner.start:
            yield _Region(position, inner.start, region.names, region.path)
        if position < inner.end:
            inner.start = max(position, inner.start)
            yield from _flatten(inner)
            position = inner.end
    if position < region.end:
        yield _Region(position, region.end, region.names, region.path)


def _in_characters(text: str, source: bytes, regions: Sequence[_Region]) -> list[Definition]:
    found: list[Definition] = []
    start_byte = start = 0
    ascii_only = len(source) == len(text)
    for region in regions:
        length = region.end - start_byte if ascii_only else len(source[start_byte : region.end].decode())
        symbol = ".".join(region.names) or None
        path = "/".join(region.path) or None
        found.append(Definition(start, start + length, symbol, path, " > ".join(region.names)))
        start_byte, start = region.end, start + length
    return found


def _merge_scraps(text: str, found: Sequence[Definition]) -> list[Definition]:
    """Brackets and blank lines between definitions are not worth a chunk: they stay with what precedes them."""
    merged: list[Definition] = []
    for definition in found:
        if merged and not _WORDS.search(text, definition.start, definition.end):
            merged[-1].end = definition.end
        else:
            merged.append(definition)
    return merged


def _line_start(source: bytes, position: int) -> int:
    return source.rfind(b"\n", 0, position) + 1


def _line_end(source: bytes, position: int) -> int:
    newline = source.find(b"\n", position)
    return newline + 1 if newline >= 0 else len(source)


def _begins_line(source: bytes, position: int) -> bool:
    return not source[_line_start(source, position) : position].strip()


def _ends_line(source: bytes, position: int) -> bool:
    """Nothing but punctuation or a comment follows on its last line."""
    rest = source[position : _line_end(source, position)].strip(b" \t\r\n;,)}")
    return not rest or rest.startswith((b"//", b"#", b"/*", b"--"))
