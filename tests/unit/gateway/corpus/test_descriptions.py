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


def test_a_name_says_what_its_value_is() -> None:
    masked = words().masked({"metadata": {"password": "Winter!Sun42", "pages": 12, "kind": "letter"}})
    assert masked["metadata"]["password"].startswith("[secret:")
    assert (masked["metadata"]["pages"], masked["metadata"]["kind"]) == (12, "letter")


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
