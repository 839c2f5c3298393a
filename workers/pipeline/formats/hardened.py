"""XML from strangers: no entities, no network, no depth or size beyond what the parser takes by default."""

import zipfile
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - a compiled module without stubs

from gateway.corpus.child import TaskFailed


def parse_xml(data: bytes) -> Any:
    """The root element, without remarks. Documents that declare entities are refused: nothing of ours needs them."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,  # what stands behind one would be its tail, not words of the element
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise TaskFailed("damaged", "not well-formed XML") from error
    except ValueError as error:
        raise TaskFailed("damaged", "not XML") from error
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise TaskFailed("damaged", "declares entities")
    return root


def entry(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (KeyError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise TaskFailed("damaged", "a part is missing or broken") from error
