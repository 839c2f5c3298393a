"""Spreadsheets (xlsx, xlsm, xlsb, xls, ods) by calamine; openpyxl where calamine's dense grid would not fit.

Calamine makes a full rectangle of every sheet: two cells in opposite corners are seventeen thousand million cells, and it
aborts. So the corners are looked at first, and such a sheet is read cell by cell.
"""

import datetime as dt
import io
import zipfile
from collections.abc import Sequence
from typing import Any

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, ZipError

from gateway.corpus.child import TaskFailed
from workers.pipeline.extract import Source
from workers.pipeline.extracted import Extracted
from workers.pipeline.formats import csv_rows
from workers.pipeline.formats.draft import Draft
from workers.pipeline.formats.old_sheets import OldSheetParts
from workers.pipeline.formats.open_sheets import CONTENT, Merged, OpenSheetParts
from workers.pipeline.formats.rows import Place, write_lines, write_rows
from workers.pipeline.formats.workbook_parts import WorkbookParts
from workers.pipeline.zip_guard import check_zip

Parts = WorkbookParts | OpenSheetParts | OldSheetParts
MOST_CELLS = 3_000_000
_ZIP = b"PK"


def read(source: Source) -> Extracted:
    draft = Draft({"kind": "office"})
    if _is_compound(source):
        parts = OldSheetParts(bytes(source.data))
    else:
        if bytes(source.data[:2]) != _ZIP and source.mime_type == "application/vnd.ms-excel":
            return csv_rows.read(source)  # what browsers on Windows call a CSV file
        check_zip(source.data)
        archive = zipfile.ZipFile(io.BytesIO(source.data))
        parts = OpenSheetParts(archive) if CONTENT in archive.namelist() else WorkbookParts(archive)
        if parts.most_cells > MOST_CELLS:
            _read_sparse(source, draft)
            return draft.finish()
    for sheet in _sheets(source):
        _write(draft, sheet, parts)
    _finish(draft, parts)
    return draft.finish()


def _finish(draft: Draft, parts: Parts) -> None:
    for title in parts.chart_sheets():
        draft.part(title)
        draft.lines([words for _, words in parts.drawn(title)], sheet=title)
    if parts.without_value:
        draft.warnings.append(
            f"{parts.without_value} formulas have no stored result: their cells were left empty"
        )
    if parts.broken:
        draft.warnings.append("comments, drawings or formats of cells could not be read")


def _write(draft: Draft, sheet: CalamineSheet, parts: Parts) -> None:
    if sheet.total_height * sheet.total_width > MOST_CELLS:
        raise TaskFailed("too_large", "a sheet has too many cells")
    values = sheet.to_python(skip_empty_area=True)
    rows = [[_text(cell) for cell in row] for row in values]
    first_row, first_column = sheet.start or (0, 0)
    for row, column, form in parts.formats(sheet.name):
        across, down = column - 1 - first_column, row - 1 - first_row
        if 0 <= down < len(rows) and 0 <= across < len(rows[down]):
            value = values[down][across]
            if isinstance(value, int | float) and not isinstance(value, bool):
                rows[down][across] = form.text(value) or rows[down][across]
    merged = sheet.merged_cell_ranges or []
    if isinstance(parts, OpenSheetParts):
        merged = parts.merged(sheet.name)
    _fill_merged(rows, merged, first_row, first_column)
    draft.part(sheet.name)
    spanning = {top - first_row for (top, left), (_, right) in merged if right > left}
    write_rows(
        draft,
        rows,
        first_row=first_row + 1,
        first_column=first_column + 1,
        spanning=spanning,
        sheet=sheet.name,
    )
    _write_beside(draft, parts.drawn(sheet.name), sheet=sheet.name)
    _write_beside(draft, parts.comments(sheet.name), sheet=sheet.name, section="Comments")


def _write_beside(draft: Draft, found: list[tuple[Place, str]], *, sheet: str, **place: str) -> None:
    """What belongs to a cell without being in it."""
    draft.part(sheet)
    write_lines(draft, [words for _, words in found], [cell for cell, _ in found], sheet=sheet, **place)


def _is_compound(source: Source) -> bool:
    if bytes(source.data[:4]) != b"\xd0\xcf\x11\xe0":
        return False
    if source.data.find("EncryptedPackage".encode("utf-16-le")) >= 0:
        raise TaskFailed("encrypted", "a workbook behind a password")
    return True


def _sheets(source: Source) -> list[CalamineSheet]:
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(source.data))
        kinds = workbook.sheets_metadata
        return [workbook.get_sheet_by_name(kind.name) for kind in kinds if "Work" in str(kind.typ)]
    except PasswordError as error:
        raise TaskFailed("encrypted", "a workbook behind a password") from error
    except (CalamineError, ZipError, ValueError, OSError) as error:
        raise TaskFailed("damaged", f"not a workbook ({type(error).__name__})") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the engine, which has no class to name here
            raise
        raise TaskFailed("damaged", "not a workbook") from error


def _read_sparse(source: Source, draft: Draft) -> None:
    from openpyxl import load_workbook  # noqa: PLC0415 - slow to import, and hardly ever needed

    try:
        _write_sparse(load_workbook(io.BytesIO(source.data), read_only=True, data_only=True), draft)
    except (KeyError, ValueError, TypeError, SyntaxError, zipfile.BadZipFile) as error:
        raise TaskFailed("damaged", f"not a workbook ({type(error).__name__})") from error


def _write_sparse(workbook: Any, draft: Draft) -> None:
    for sheet in workbook.worksheets:
        sheet.reset_dimensions()  # what is stored there is a claim
        draft.part(sheet.title)
        lines: list[str] = []
        places: list[Place] = []
        found = 0
        for row in sheet.rows:
            cells = [cell for cell in row if cell.value is not None]
            found += len(row)
            if found > MOST_CELLS:
                raise TaskFailed("too_large", "a sheet has too many cells")
            if cells:
                lines.append(" | ".join(_text(cell.value) for cell in cells))
                places.append(Place(cells[0].row, cells[0].column, cells[-1].column))
        write_lines(draft, lines, places, sheet=sheet.title)


def _fill_merged(rows: list[list[str]], merged: Sequence[Merged], first_row: int, first_column: int) -> None:
    """A cell over several rows is said in each of them, so that each row can be read alone."""
    for (top, left), (bottom, _right) in merged:
        column = left - first_column
        if not 0 <= top - first_row < len(rows) or not 0 <= column < len(rows[0]):
            continue
        value = rows[top - first_row][column]
        for row in rows[top - first_row + 1 : bottom - first_row + 1]:
            row[column] = row[column] or value


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return " ".join(cell.split())
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.datetime):
        day = cell.time() == dt.time()
        return cell.date().isoformat() if day else cell.isoformat(sep=" ", timespec="seconds")
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    if isinstance(cell, dt.timedelta):  # a sheet of hours counts on after midnight
        minutes, seconds = divmod(round(cell.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(cell)
