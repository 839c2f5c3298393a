"""What stands on a page in the place of words: pictures with what they show, fields with what was written into them."""

from selectolax.lexbor import LexborNode

from workers.pipeline.formats.web_styles import pictured, readable

REPLACED = frozenset({"img", "input"})
_NO_WORDS = frozenset({"hidden", "password", "checkbox", "radio", "file", "image", "color", "range"})


def instead_of_words(element: LexborNode, sight: int) -> str:
    attributes = element.attributes
    if element.tag == "img":
        said = attributes.get("alt") if pictured(sight) else None
    else:
        shows = (attributes.get("type") or "").lower() not in _NO_WORDS and (not sight or readable(sight))
        said = attributes.get("value") if shows else None
    return f" {said or ''} "
