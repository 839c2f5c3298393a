"""Titles, tags and metadata lose what the text would lose, and keep what they are for."""

from typing import Any

import pytest

from gateway.corpus.descriptions import Descriptions
from tests.fixtures.canaries import PERSONAL, SECRETS, SHAPES, Canary
from tests.fixtures.ordinary_paragraphs import ordinary_paragraphs


def words(*, personal_data: bool = False, allowed: tuple[str, ...] = ()) -> Descriptions:
    return Descriptions(b"key", personal_data=personal_data, allowed=allowed)


@pytest.mark.parametrize("canary", [*SECRETS, *PERSONAL], ids=lambda canary: canary.kind)
def test_no_canary_is_left_in_a_title_a_tag_or_metadata(canary: Canary) -> None:
    fields: dict[str, Any] = {
        "title": f"{canary.text}.pdf",
        "type": canary.text,
        "tags": [canary.text],
        "metadata": {
            "note": canary.text,
            "deep": [{"note": canary.text, canary.text: None}],
            canary.text: {},
        },
    }
    masked = fields | words(personal_data=True).masked(fields)
    assert all(value not in str(masked) for value in canary.values), masked
    assert masked["title"].endswith(".pdf")


@pytest.mark.parametrize(
    ("title", "hidden"),
    [
        ("Contract of petra.muster@firma.ch", "firma"),
        ("Contract of petra.muster@firma.com", "firma"),
        ("petra.muster@firma.md", "firma"),
        ("Server 192.168.1.100", "168"),
        ("password=S3cr3tQ.Zx9q1", "Zx9q1"),
    ],
)
def test_the_end_of_an_address_or_a_password_is_no_ending_of_a_file(title: str, hidden: str) -> None:
    assert hidden not in words(personal_data=True).masked({"title": title})["title"]


def test_a_name_says_what_its_value_is() -> None:
    masked = words().masked({"metadata": {"password": "Winter!Sun42", "pages": 12, "kind": "letter"}})
    assert masked["metadata"]["password"].startswith("[secret:")
    assert (masked["metadata"]["pages"], masked["metadata"]["kind"]) == (12, "letter")


def test_who_wrote_it_goes_from_the_metadata_too() -> None:
    fields = {
        "metadata": {"author": "Anna Muster", "modifiedBy": "Beat Muster", "department": "Annual Reports"}
    }
    told = words(personal_data=True).masked(fields)["metadata"]
    assert [told[name].startswith("[person:") for name in ("author", "modifiedBy")] == [True, True]
    assert told["department"] == "Annual Reports"
    assert words().masked(fields) == {}


def test_a_secret_that_shows_once_personal_data_are_masked_goes_in_the_same_look() -> None:
    text = "API key | 044 268 12 12\nValue | Passwort\nKennwort | anna"
    masked = words(personal_data=True).text(text)
    assert words(personal_data=True).text(masked) == masked


def test_an_address_keeps_its_way_and_loses_its_secret() -> None:
    token = SHAPES["github_token"]
    masked = words(personal_data=True).masked(
        {"uri": f"https://host.example/ada@example.org/x?a=1&token={token}"}
    )
    assert masked["uri"].startswith("https://host.example/ada@example.org/x?a=1")
    assert token not in masked["uri"]


def test_personal_data_stay_unless_masking_was_asked_for() -> None:
    fields = {"title": "Letter to anna.muster@firma.example"}
    assert words().masked(fields) == {}
    assert words(personal_data=True, allowed=("email",)).masked(fields) == {}
    assert "anna.muster" not in words(personal_data=True).masked(fields)["title"]


def test_ordinary_words_are_left_alone() -> None:
    changed = [text for _, text in ordinary_paragraphs() if words(personal_data=True).masked({"title": text})]
    assert len(changed) <= 10, changed
