"""Blocks, headings and parts become one text; places survive masking."""

import pytest

from workers.pipeline.chunk import chunk
from workers.pipeline.extracted import LINE, PARAGRAPH, PART
from workers.pipeline.formats.draft import Draft, Places
from workers.pipeline.formats.rows import column_name, write_rows
from workers.pipeline.formats.tables import lines_of


def test_headings_nest_and_stay_with_what_they_head():
    draft = Draft({"kind": "office"}, sections=True)
    draft.heading(0, "Title")
    draft.heading(1, "One")
    draft.block("under one")
    draft.heading(2, "Deeper")
    draft.heading(1, "Two")
    draft.block("under two")
    found = draft.finish()
    assert found.text == "Title\nOne\nunder one\n\nDeeper\nTwo\nunder two"
    assert [unit.heading_path for unit in found.units][-1] == "Title > Two"
    assert [unit.level for unit in found.units] == [PART, LINE, LINE, 2, LINE, LINE]
    assert found.units[2].locator == {"kind": "office", "section": "Title > One"}


def test_parts_share_no_chunk_and_blank_blocks_leave_nothing():
    draft = Draft({"kind": "office"})
    for number in (1, 2):
        draft.part(f"Slide {number}")
        draft.block("  \n")
        draft.block(f"words {number}", slide=number)
        draft.block("more", slide=number)
    found = draft.finish()
    assert [unit.level for unit in found.units] == [PART, PARAGRAPH, PART, PARAGRAPH]
    assert [item.locator["slide"] for item in chunk(found, language="en")] == [1, 2]


def test_rows_know_their_cells_also_after_masking():
    draft = Draft({"kind": "office"})
    rows = [["Name", "Mail"], *([f"person {n}", f"p{n}@example.org"] for n in range(2, 400))]
    write_rows(draft, rows, first_row=3, first_column=2, sheet="S")
    found = draft.finish()
    spans = [
        (start := found.text.index(f"p{n}@example.org"), start + len(f"p{n}@example.org"), "[mail]")
        for n in range(2, 400)
    ]
    for text in (found, found.replace_spans(spans)):
        chunks = list(chunk(text, language="en"))
        assert len(chunks) > 5
        after = 2
        for item in chunks:
            first, last = (int(cell[1:]) for cell in item.locator["cellRange"].split(":"))
            lines = item.text.split("\n")
            assert (first, last) == (after + 1, after + len(lines))
            assert lines[-1].startswith(f"Name: person {last - 2}")
            after = last
        assert after == len(rows) + 2


def test_the_range_of_cells_is_as_wide_as_its_widest_row():
    draft = Draft({})
    write_rows(draft, [["Price list"], ["Item", "Unit", "Price"], ["bolt", "piece", "3"], ["", "All net"]])
    (item,) = chunk(draft.finish(), language="en")
    assert item.locator["cellRange"] == "A1:C4"


def test_a_blank_row_parts_two_tables():
    draft = Draft({})
    write_rows(draft, [["A", "B"], ["1", "2"], ["", ""], ["C", "D"], ["3", "4"]])
    assert draft.finish().text == "A | B\nA: 1 | B: 2\n\nC | D\nC: 3 | D: 4"


def test_a_table_without_names_stays_as_it_is():
    assert lines_of([["1", "2"], ["3", "4"]]) == ["1 | 2", "3 | 4"]
    assert lines_of([["same", "same"], ["3", "4"]]) == ["same | same", "3 | 4"]
    assert lines_of([["only"], ["one"]]) == ["only", "one"]
    assert lines_of([["Report"], ["Name", ""], ["Name", "Age"], ["Anna", "30"]])[-1] == "Name: Anna | Age: 30"


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([["Region", "2024", "2025"], ["Nord", "1", "2"]], "Region: Nord | 2024: 1 | 2025: 2"),
        ([["", "2024/25", "2025/26"], ["Umsatz", "1990", "2"]], "Umsatz | 2024/25: 1990 | 2025/26: 2"),
        (
            [["Kennzahl", "2023", "2024", "2025"], ["Betrag", "1", "2", "3"], ["Datum", "4", "5", "6"]],
            "Kennzahl: Betrag | 2023: 1 | 2024: 2 | 2025: 3",
        ),
        ([["Task", "2025", "2026"], ["Roof", "planned", "done"]], "Task: Roof | 2025: planned | 2026: done"),
        ([["2024", "2025"], ["1", "2"]], "2024: 1 | 2025: 2"),
        (
            [["Konto", "31.12.2025", "31.12.2024", "+/- %"], ["Kasse", "1'200.50", "", "3"]],
            "Konto: Kasse | 31.12.2025: 1'200.50 | +/- %: 3",
        ),
    ],
)
def test_years_and_days_name_columns(rows: list[list[str]], line: str):
    assert lines_of(rows)[1] == line


@pytest.mark.parametrize(
    "rows",
    [
        [["Anna", "1985", "2010"], ["Bob", "1990", "2015"]],
        [["Beginn", "01.01.2026", "Ende", "31.12.2026"], ["Ort", "Bern", "Land", "Schweiz"]],
        [["Zeitraum", "01.01.2026", "31.12.2026"], ["Kunde", "Muster AG", ""]],
        [["bolt", "2000", "1850"], ["nut", "300", "12"]],
        [["Region", "2024", "x1"], ["Nord", "1", "2"]],
    ],
)
def test_years_and_days_that_are_values_name_none(rows: list[list[str]]):
    assert lines_of(rows) == [" | ".join(filter(None, row)) for row in rows]


@pytest.mark.parametrize(
    "rows",
    [
        [["Benutzer", "anna"], ["Kennwort", "Winter2025x"], ["Server", "vpn.example.org"]],
        [["Utilisateur", "anna"], ["Mot de passe", "Kx9mmQ2z"]],
        [["Usuario:", "anna"], ["Lo demás:", "nada"]],
        [["Name", "Anna Meier"], ["Geburtsdatum", "12.03.1980"], ["Telefon", "044 268 12 12"]],
        [["Customer", "Muster AG"], ["City", "Bern"], ["Contact", "Bo Li"]],
        [["Capital", "Bern"], ["Population", "8 902 308"]],
        [["Docs", "docs.example.org"], ["Wiki", "wiki.example.org"]],
        [["Opened", "in May"], ["Seats", "120"], ["Tickets", "box@example.org"]],
        [["Benutzer", "anna", "Kennwort", "Winter2025x"], ["Server", "vpn", "Port", "5432"]],
    ],
)
def test_a_list_of_pairs_has_no_head(rows: list[list[str]]):
    assert lines_of(rows) == [" | ".join(row) for row in rows]
    assert lines_of([["All about it", ""], *rows])[1:] == [" | ".join(row) for row in rows]


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (["User", "Password"], ["anna", "Winter2025x"]),
        (["Setting", "Value"], ["Password", "Winter2025x"]),
        (["PIN", "Beschreibung"], ["4821", "Haustür"]),
        (["Feld", "Inhalt"], ["Name", "Anna Meier"]),
        (["Begriff", "Bedeutung"], ["Passwort", "geheimes Wort"]),
        (["Name", "Ort"], ["Anna", "Ulm"]),
        (["Typ", "Anzahl"], ["Telefon", "5"]),
        (["Region", "Umsatz"], ["Nord", "12"]),
        (["Host", "Port", "User", "Rolle"], ["db1", "5432", "anna", "admin"]),
    ],
)
def test_what_names_the_columns_is_a_head_also_over_names_of_fields(head: list[str], row: list[str]):
    named = " | ".join(f"{name}: {cell}" for name, cell in zip(head, row, strict=True))
    assert lines_of([head, row]) == [" | ".join(head), named]


def test_numbers_below_a_word_have_a_head_although_some_are_called_like_fields():
    rows = [["Konto", "Bestand"], ["Kasse", "10"], ["Bank", "20"]]
    assert lines_of(rows)[-1] == "Konto: Bank | Bestand: 20"
    country = [["Capital", "Bern"], ["Population", "8 902 308"], ["Area", "41 285"]]
    assert lines_of(country)[-1] == "Area | 41 285"


def test_a_head_of_two_rows_names_each_column_by_both():
    head = [["Name", "Score", ""], ["Name", "first", "second"]]
    assert (
        lines_of([*head, ["Anna", "1", "2"]], range(2))[-1] == "Name: Anna | Score first: 1 | Score second: 2"
    )
    titled = [["All results", "", ""], *head, ["Anna", "1", "2"]]
    assert lines_of(titled, range(3))[-1] == "Name: Anna | Score first: 1 | Score second: 2"
    endless = [[f"Row {number}", "and more"] for number in range(9)]
    assert lines_of(endless, range(8))[-1] == "Row 0: Row 8 | and more: and more"
    assert lines_of([["Title", ""], ["Name", "Age"], ["Anna", "30"]], range(1))[-1] == "Name: Anna | Age: 30"


def test_columns_have_letters():
    assert [column_name(number) for number in (1, 26, 27, 702, 703, 16384)] == [
        "A",
        "Z",
        "AA",
        "ZZ",
        "AAA",
        "XFD",
    ]


def test_a_place_is_found_in_the_middle_of_a_line():
    places = Places.of_lines(
        ["abc", "def", "ghi"], ["one", "two", "three"], lambda a, b: {"from": a, "to": b}
    )
    assert places.locate(1, 2) == {"from": "one", "to": "one"}
    assert places.locate(2, 9) == {"from": "one", "to": "three"}
