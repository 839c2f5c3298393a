"""Source code: the file is one unit; its definitions are found when it is cut."""

from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted, OffsetMap, SourceLines, Unit, newline_offsets
from workers.pipeline.formats import text as plain
from workers.pipeline.languages import language_of


def read(source: Source) -> Extracted:
    text = plain.decode(source)
    return Extracted(text, units(text, source))


def units(text: str, source: Source) -> list[Unit]:
    locator = {"kind": "code", "path": source.file_name}
    region = SourceLines(newline_offsets(text), OffsetMap.plain(len(text), 0))
    language = language_of(source.mime_type, source.file_name) or ""
    return [Unit("code", 0, len(text), locator, code_language=language, region=region)]
