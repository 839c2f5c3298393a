"""CSV and TSV by the standard library: the delimiter is the one that divides the first lines most evenly."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import text as plain
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.rows import write_rows

_DELIMITERS = ",;\t|"
_LONGEST_CELL = 1 << 20
_MOST_CELLS = 2_000_000
_MOST_COLUMNS = 16_384  # as many as a sheet may have
_SAMPLE_LINES = 20
_END = "\x1e\x1f\x1e"  # behind the last line
_SAID = re.compile(r"sep=([,;\t|^~:])\n")


def read(source: Source) -> Extracted:
    text = plain.decode(source)
    said = _SAID.match(text)
    delimiter = said[1] if said else _delimiter(text, source)
    csv.field_size_limit(_LONGEST_CELL)
    draft = Draft({"kind": "office"})
    try:
        rows = _tabbed(text) if delimiter == "\t" else _rows(_closed(text, delimiter, draft.warnings))
    except csv.Error as error:
        raise TaskFailed("damaged", "a cell that never ends") from error
    if said:
        rows[0] = []  # a word to Excel, not to the reader; the rows keep their numbers
    write_rows(draft, rows)
    return draft.finish()


def _rows(reader: Iterable[list[str]]) -> list[list[str]]:
    rows: list[list[str]] = []
    cells = 0
    for row in reader:
        cells += len(row)
        if cells > _MOST_CELLS or len(row) > _MOST_COLUMNS:
            raise TaskFailed("too_large", "too many cells")
        rows.append([" ".join(cell.split()) for cell in row])
    return rows


def _closed(text: str, delimiter: str, warnings: list[str]) -> Iterator[list[str]]:
    """A quote that nothing closes would make one cell of all that follows: from its row on, quotes are just quotes."""
    reader = csv.reader(chain(io.StringIO(text), [_END]), delimiter=delimiter)
    done = 0  # lines
    try:
        for row in reader:
            if row == [_END]:
                return
            if row and row[-1].endswith(_END):
                break
            yield row
            done = reader.line_num
    except csv.Error:
        pass  # longer than any cell
    warnings.append(
        f"a quote in line {done + 1} never ends: from there on, quotes are read as any other character"
    )
    for row in csv.reader(islice(io.StringIO(text), done, None), delimiter=delimiter, quoting=csv.QUOTE_NONE):
        yield [_unquoted(cell) for cell in row]


def _tabbed(text: str) -> list[list[str]]:
    """Between tabs a quote is often just one, an inch say: if as a quote it made cells of whole rows, it is none."""
    try:
        return _rows(_quoted(text))
    except csv.Error:
        plainly = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
        return [[_unquoted(cell) for cell in row] for row in _rows(plainly)]


def _quoted(text: str) -> Iterator[list[str]]:
    for row in csv.reader(io.StringIO(text), delimiter="\t", strict=True):
        if any("\t" in cell and "\n" in cell for cell in row):
            raise csv.Error("rows in a cell")
        yield row


def _unquoted(cell: str) -> str:
    whole = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if whole else cell


def _delimiter(text: str, source: Source) -> str:
    if source.mime_type in {"text/tsv", "text/tab-separated-values"}:
        return "\t"
    sample = [line for line in text[:65536].splitlines() if line.strip()][:_SAMPLE_LINES]
    best, chosen = 0.0, ","
    for delimiter in _DELIMITERS:
        counts = [
            len(row) - 1 for row in csv.reader(sample, delimiter=delimiter) if row
        ]  # quotes count as quotes
        usual = max(set(counts), key=counts.count) if counts else 0
        score = usual and counts.count(usual) + usual / 1000
        if score > best:
            best, chosen = score, delimiter
    return chosen
