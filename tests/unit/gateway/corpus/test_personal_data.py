"""Personal data with a form or an announcement are found; numbers and names that mean nobody are left alone."""

import json
import os
import time
from pathlib import Path

import pytest

from gateway.corpus.personal_data import KINDS, canonical, find_personal_data
from tests.fixtures.canaries import PERSONAL, Canary
from tests.fixtures.ordinary_paragraphs import ordinary_paragraphs

REPOSITORY = Path(__file__).parents[4]
COLLECTIONS = Path(os.environ.get("CATCHMENT_COLLECTIONS", REPOSITORY.parent / "shared" / "data"))


def found(text: str) -> list[tuple[str, str]]:
    return [(kind, text[start:end]) for start, end, kind in find_personal_data(text)]


@pytest.mark.parametrize("canary", PERSONAL, ids=[canary.text[:60] for canary in PERSONAL])
def test_planted_personal_data_are_found_exactly(canary: Canary):
    assert (canary.kind, canary.values[0]) in found(canary.text)
    assert canary.kind in KINDS


def test_a_name_told_by_its_label_is_found_where_it_stands_without_one():
    text = "Name: Annabel Schmidtke\n\nDas hat Annabel Schmidtke so geschrieben."
    assert [value for _, value in found(text)] == ["Annabel Schmidtke"] * 2


def test_numbers_side_by_side_are_told_apart():
    assert [value for _, value in found("0171 1234567 0160 7654321")] == ["0171 1234567", "0160 7654321"]
    assert [value for _, value in found("Tel 030 901820 12.03.2024")] == ["030 901820"]
    assert [value for _, value in found("IBAN DE89 3704 0044 0532 0130 00 BIC X")] == [
        "DE89 3704 0044 0532 0130 00"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "4001546185708",  # an article number; its check digit is right for a card, too, one time in ten
        "1234 5678 9012 3456",  # no card: check digit
        "DE12 3456 7890 1234 5678 90",  # no account: check digits
        "[`0658424227`](x) and build 20260711",
        "01.02.2024 03.04.2025",
        "05.01.2006 04.30, 05. 01. 2006 04.30",
        "version 10.8.168.20, section 3.1.2.4, netmask 255.255.255.0, host 127.0.0.1",
        "logo@2x.png, git@host.example:org/repo.git, react@18.2.0",
        "std::vector<int> a::b",
        "12:30:45",
        "USt-IdNr. DE123456789",
        "Boston, MA 02110-1301",
        "Sehr geehrte Damen und Herren,",
        "Dear Sir or Madam, Dear Team, Hallo Zusammen,",
        "Kind regards\nYour Support Team",
        "Im Jahr 2024 Straße und Weg",
        "She was born in 1984.",
        "name: Build and test",
        "name: Build Docker",
        "name = 'Pango Markup'",
        "products.name: Blue Chair",
        "gpu.name: Tesla V100",
        "Vorname | Nachname | Geburtsdatum",
        "Kontakt: Siehe Anhang",
        "owner: Platform Engineering",
        "Kunde: Muster AG",
        "Reisepass 12.03.2025 verlängern",
        "Am Montag 7, 2026 Januar",
    ],
)
def test_what_only_looks_like_personal_data_is_left_alone(text: str):
    assert found(text) == []


def test_one_value_written_in_several_ways_is_one_value():
    assert canonical("phone", "+49 (0) 30 / 901820") == canonical("phone", "0049 30 901820")
    assert canonical("iban", "DE89 3704 0044 0532 0130 00") == canonical("iban", "DE89370400440532013000")
    assert canonical("email", "Anna@Firma.example") == canonical("email", "anna@firma.example")
    assert canonical("person", "Anna\u00a0Schmidtke") == canonical("person", "Anna Schmidtke")
    assert canonical("phone", "+49 30 901820") != canonical("phone", "+49 30 901821")


def test_false_positives_in_ordinary_paragraphs_stay_below_one_in_a_hundred(
    capsys: pytest.CaptureFixture[str],
):
    paragraphs = ordinary_paragraphs()
    wrong = [(sort, found(text)) for sort, text in paragraphs if find_personal_data(text)]
    with capsys.disabled():
        print(f"\npersonal data: {len(wrong)} of {len(paragraphs)} ordinary paragraphs touched: {wrong}")
    assert len(wrong) <= len(paragraphs) / 100


def test_in_real_abstracts_next_to_nothing_but_names_is_found(capsys: pytest.CaptureFixture[str]):
    """These do hold personal data: people thanked by name. Everything else would be a mistake."""
    texts = [
        record["text"]
        for folder in sorted(COLLECTIONS.glob("*/corpus.jsonl"))
        for record in map(json.loads, folder.read_text("utf-8").splitlines())
    ]
    hits = [hit for text in texts for hit in found(text)]
    names = [value for kind, value in hits if kind == "person"]
    others = [hit for hit in hits if hit[0] != "person"]
    with capsys.disabled():
        print(f"\npersonal data: {len(texts)} abstracts, {len(names)} names {names}, others {others}")
    assert len(others) <= len(texts) / 1000


def test_megabytes_a_second(capsys: pytest.CaptureFixture[str]):
    code = [path.read_text("utf-8") for path in sorted((REPOSITORY / "gateway").rglob("*.py"))]
    text = "\n\n".join([*code, *(text for _, text in ordinary_paragraphs())])
    find_personal_data(text[:1000])
    began = time.process_time()
    find_personal_data(text)
    rate = len(text) / 1e6 / (time.process_time() - began)
    with capsys.disabled():
        print(f"\npersonal data: {rate:.1f} MB/s")
    assert rate > 1


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "1 ",
        "0 ",
        "0171 1234567 ",
        "A ",
        "Aa-",
        "a@",
        "a@a.",
        "1.",
        "a:1:",
        "Name: Aa ",
        "Mr. Aa ",
        "1 Aa ",
        "DE89 ",
        "Tel: 1",
        "\n",
        "Aa Bb <",
        "'name': Aa ",
        "a.a@name: ",
        "a: Name | b: Aa ",
        "Am Aa 1, ",
    ],
)
def test_the_time_grows_with_the_text_and_not_faster(unit: str):
    find_personal_data("warm +49 30 901820")
    seconds: list[float] = []
    for length in (20_000, 80_000):
        text = (unit * (length // len(unit) + 1))[:length]
        # The best of three: a collection of what thousands of other tests left behind may fall into any one of them.
        seconds.append(min(_seconds_to_read(text) for _ in range(3)))
    assert seconds[1] < max(10 * seconds[0], 0.5), seconds


def _seconds_to_read(text: str) -> float:
    began = time.process_time()
    find_personal_data(text)
    return time.process_time() - began
