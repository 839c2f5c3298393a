"""People that mails, minutes, calendars and cards name in forms of their own, and numbers that only their label tells."""

import time

import pytest

from gateway.corpus.personal_data import find_personal_data


def found(text: str) -> list[tuple[str, str]]:
    return [(kind, text[start:end]) for start, end, kind in find_personal_data(text)]


PEOPLE = {
    "To: Tom Berger, Eva Kern": ["Tom Berger", "Eva Kern"],
    "Cc: Tom Berger; Eva Kern (IT)": ["Tom Berger", "Eva Kern"],
    "Von: Muster, Anna": ["Muster, Anna"],
    "Teilnehmer: Anna Muster, Tom Berger und Eva Kern": ["Anna Muster", "Tom Berger", "Eva Kern"],
    "**Attendees:** Anna Muster, Tom Berger": ["Anna Muster", "Tom Berger"],
    "Asistentes: María García, Juan Pérez": ["María García", "Juan Pérez"],
    "Protokoll: Anna Muster": ["Anna Muster"],
    "On Mon, 3 Aug 2026, Anna Muster wrote:": ["Anna Muster"],
    "Am 03.08.2026 um 10:00 schrieb Anna Muster:": ["Anna Muster"],
    "Le 3 août 2026 à 10:00, Pierre Dupont a écrit :": ["Pierre Dupont"],
    "El 3 ago 2026, a las 10:00, María García escribió:": ["María García"],
    "See you\n\n-- \nAnna Muster\nHead of Sales": ["Anna Muster"],
    "Thank you!\n\nAnna Muster\n": ["Anna Muster"],
    "Yours sincerely\n\n\n\nAnna Muster": ["Anna Muster"],
    "Viele Grüße, Anna Muster": ["Anna Muster"],
    "Liebe Anna, lieber Tom,\nkommt ihr?": ["Anna", "Tom"],
    "Sehr geehrter Herr von der Leyen,": ["von der Leyen"],
    "My name is Anna Muster.": ["Anna Muster"],
    "Ich heiße Anna Muster": ["Anna Muster"],
    "Ihre Ansprechpartnerin ist Anna Muster.": ["Anna Muster"],
    "gez. Anna Muster": ["Anna Muster"],
    "BEGIN:VCARD\nFN:Anna Muster\nN:Muster;Anna;;;": ["Anna Muster", "Muster;Anna"],
    "ORGANIZER;CN=Anna Muster:mailto:x": ["Anna Muster"],
    'ATTENDEE;CN="Tom Berger";ROLE=REQ:mailto:x': ["Tom Berger"],
}
OTHERS = {
    "Kontonummer: 532013000, BLZ 37040044": ("iban", "532013000"),
    "Account no: 12345678": ("iban", "12345678"),
    "Konto ES91-2100-0418-4502-0005-1332": ("iban", "ES91-2100-0418-4502-0005-1332"),
    "Visa, CVV: 123": ("credit_card", "123"),
    "Kennzeichen: M-AB 1234": ("national_id", "M-AB 1234"),
    "plaque d'immatriculation : AA-123-BB": ("national_id", "AA-123-BB"),
    "license plate 7ABC123": ("national_id", "7ABC123"),
    "matrícula 1234 BBC": ("national_id", "1234 BBC"),
    "Reisepass-Nr.: C4VP1L7K2": ("national_id", "C4VP1L7K2"),
    "nº de la Seguridad Social: 281234567840": ("national_id", "281234567840"),
    "Matrikelnummer: 1234567": ("national_id", "1234567"),
    "Geb.-Datum: 01.02.1980": ("date_of_birth", "01.02.1980"),
    "wurde am 1. Februar 1980 in Bonn geboren": ("date_of_birth", "1. Februar 1980"),
    "né(e) le 01/02/1980": ("date_of_birth", "01/02/1980"),
    "Geburtsdatum 01021980": ("date_of_birth", "01021980"),
    "Geburtstag ist der 1. Februar 1980": ("date_of_birth", "1. Februar 1980"),
    "Adresse: Lindenweg 4": ("address", "Lindenweg 4"),
    "Rue du Lac 5, 1003 Lausanne": ("address", "Rue du Lac 5, 1003 Lausanne"),
    "https://x.example/?to=anna%40firma.example&x=1": ("email", "anna%40firma.example"),
    "Die Telefonnummer lautet 4711 0815": ("phone", "4711 0815"),
}


@pytest.mark.parametrize(("text", "names"), PEOPLE.items())
def test_everybody_named_is_found(text: str, names: list[str]):
    assert found(text) == [("person", name) for name in names]


@pytest.mark.parametrize(("text", "one"), OTHERS.items())
def test_what_only_its_label_tells_is_found(text: str, one: tuple[str, str]):
    assert found(text) == [one]


@pytest.mark.parametrize(
    "text",
    [
        "To: Platform Team, Design Support",
        "Present: New York, San Marino",
        "Protokoll: Modbus TCP",
        "signed Certificate timestamps, Signed 2026",
        "Thanks\nThe Team",
        "-- \nThe Great Escape",
        "Copyright (c) 2026 Free Software Foundation, Inc.",
        "Registration 2026 is open, the licence plate is blue",
        "my account number of visits: 12",
        "Straße: siehe Karte",
        "The route du soir 5, 1003 pages",
        "Viele Grüße aus Köln",
        "Kontostand: 532013000",
    ],
)
def test_what_only_looks_so_is_left_alone(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    "unit", ["To: ", "To: Aa Bb, ", "\n-- \n", "Thanks\n", "schrieb Aa ", "On Aa, ", "ATTENDEE;", "CN=Aa ", "gez. Aa ", "Rue Aa 1 ", "Adresse: Aa "]
)  # fmt: skip
def test_the_time_grows_with_the_text_and_not_faster(unit: str):
    find_personal_data("warm +49 30 901820")
    seconds: list[float] = []
    for length in (20_000, 80_000):
        text = "BEGIN:VCARD" + (unit * (length // len(unit) + 1))[:length]
        began = time.process_time()
        find_personal_data(text)
        seconds.append(time.process_time() - began)
    assert seconds[1] < max(10 * seconds[0], 0.5), seconds
