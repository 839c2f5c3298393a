"""Formulas of office files (OMML) on one line: what stands over, under and around something says so."""

from typing import Any

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
FORMULA = f"{_M}oMath"


def formula_text(element: Any) -> str:
    """`(a+b)/2`, `x^2`, `√(x+1)`, `f(x)`."""
    tag = element.tag
    if tag == f"{_M}t":
        return element.text or ""
    if tag == f"{_M}f":
        return f"{_part(element, 'num')}/{_part(element, 'den')}"
    if tag == f"{_M}rad":
        return f"√{_part(element, 'e')}"
    if tag in {f"{_M}sSup", f"{_M}sSub", f"{_M}sSubSup", f"{_M}nary"}:
        sub, sup = _part(element, "sub"), _part(element, "sup")
        marks = (f"_{sub}" if sub else "") + (f"^{sup}" if sup else "")
        if tag == f"{_M}nary":
            return f"{_sign(element, 'nary', 'chr', '∫')}{marks} {_inside(element, 'e')}"
        return f"{_inside(element, 'e')}{marks}"
    if tag == f"{_M}d":
        inner = _sign(element, "d", "sepChr", "|").join(map(formula_text, element.iterchildren(f"{_M}e")))
        return f"{_sign(element, 'd', 'begChr', '(')}{inner}{_sign(element, 'd', 'endChr', ')')}"
    return "".join(formula_text(child) for child in element if isinstance(child.tag, str))


def _inside(element: Any, name: str) -> str:
    part = element.find(f"{_M}{name}")
    return "" if part is None else formula_text(part).strip()


def _part(element: Any, name: str) -> str:
    """In brackets where it is more than one thing."""
    text = _inside(element, name)
    return text if text.isalnum() or len(text) < 2 else f"({text})"


def _sign(element: Any, kind: str, name: str, usual: str) -> str:
    sign = element.find(f"{_M}{kind}Pr/{_M}{name}")
    return usual if sign is None else str(sign.get(f"{_M}val", ""))
