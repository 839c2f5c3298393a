"""What XML says to programs alone: scripts and styles of pages and drawings inside it, and how a drawing is drawn."""

from typing import Any

from workers.pipeline.formats.web_values import HIDES, quiet, said_by

_DRAWING, _PAGE = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"
_PROGRAMS = frozenset({"script", "style", "template", "metadata"})
_SAID = frozenset({"aria-label", "aria-description", "title", "alt"})
_HIDING = frozenset({"display", "opacity", "visibility", "font-size"})


def silence(root: Any) -> None:
    """Empties what nobody sees and leaves it in its place, which other elements are counted by."""
    spaces = [f"{{{_DRAWING}}}*", f"{{{_PAGE}}}*", *(["{}*"] if root.tag == "svg" else [])]
    unseen: list[Any] = []
    for element in root.iter(*spaces):
        space, _, name = str(element.tag).rpartition("}")
        if name in _PROGRAMS or "hidden" in element.attrib or _is_hidden(element):
            unseen.append(element)
        elif space[1:] != _PAGE:
            for key in list(element.attrib):
                if key.rpartition("}")[2] not in _SAID:
                    del element.attrib[key]
    for element in unseen:
        element.clear(keep_tail=True)


def _is_hidden(element: Any) -> bool:
    """By what a drawing says in attributes of its own, or by its style."""
    styles = [f"{name}:{value}" for name, value in element.attrib.items() if name in _HIDING]
    said = said_by(quiet(";".join([*styles, element.get("style") or ""])))
    return any(name in _HIDING and found == HIDES for name, (_, found) in said.items())
