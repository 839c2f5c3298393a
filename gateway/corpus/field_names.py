"""What fields are called in four languages, to tell a list of pairs (`User | anna`) from a table with a head (`User | Role`).

In a table a name of a field stands before its value or above it; it is never a value itself. Nobody can list all names:
where a table holds none of these, its look has to do.
"""

import re

_NAMES = """
    user username benutzer benutzername benutzerkennung kennung anmeldename login logon account konto utilisateur identifiant usuario
    cuenta id password passwort kennwort passwd pwd passphrase passcode mdp passe contraseña contrasena clave pin puk tan pincode
    zugangscode zugangsdaten token key apikey schlüssel clé jeton wpa wpa2 wpa3 psk
    host hostname server servername serveur servidor port puerto url uri link website webseite web homepage domain domäne domaine
    dominio ip gateway netmask subnet dns ssid netzwerk network wlan wifi wi-fi datenbank database db schema instanz instance endpoint
    protokoll protocol protocole protocolo verschlüsselung encryption region umgebung environment
    name vorname nachname familienname firstname lastname surname nom prénom nombre apellido apellidos anrede titel title titre título
    person kontakt contact contacto ansprechpartner ansprechpartnerin kunde kundin customer client cliente firma company société
    empresa unternehmen abteilung department département departamento position funktion function rolle role rôle rol beruf
    email e-mail mail courriel correo telefon telefonnummer phone tel tél téléphone teléfono telephone mobil mobile handy fax
    adresse address dirección anschrift strasse straße street rue calle plz postleitzahl zip postcode ort stadt city town ville ciudad
    wohnort land country pays país kanton canton staat state nationalität nationality staatsangehörigkeit
    geburtsdatum geburtstag geburtsort geboren birthday birthdate dob naissance nacimiento alter age geschlecht gender sex zivilstand
    ahv iban bic bank kontonummer steuernummer personalnummer kundennummer vertragsnummer rechnungsnummer nummer number numéro
    número nr datum date fecha beginn start ende end zeit time uhrzeit dauer duration status stand state version modell model
    hersteller manufacturer seriennummer typ type art kategorie category betreff subject sujet asunto autor author auteur
    projekt project projet proyecto vertrag contract preis price prix precio betrag amount montant importe total summe
    hauptstadt capital capitale einwohner population población fläche area superficie währung currency sprache language
    section page seite rule regel policy ticket
    gegründet founded gründung sitz headquarters branche industry gewicht weight größe size format length länge farbe color colour
    """
_HEADS = """
    value wert werte valeur valor content inhalt contenu contenido description beschreibung descripción bezeichnung meaning bedeutung
    signification significado definition erklärung explanation erläuterung note notes notiz notizen remark remarks bemerkung bemerkungen
    comment comments kommentar commentaire comentario details detail angabe angaben eintrag entry antwort answer réponse respuesta
    beispiel example exemple ejemplo anzahl count menge quantity quantité cantidad default standard einstellung setting field feld champ
    campo parameter option merkmal eigenschaft property attribut attribute result ergebnis résultat resultado
    saldo balance solde umsatz revenue sales erlös kosten cost costs coût costo ausgaben einnahmen anteil share percent prozent rang
    rank score punkte points rate quote rechte rights permission permissions berechtigung berechtigungen zugriff access values datentyp
    datatype pflicht required mandatory erforderlich
    """
_DESCRIBED = """
    id nr no number nummer numéro número type typ tipo art kategorie category section page seite rule regel policy ticket version status
    state format length länge size größe date datum fecha created changed since seit ablauf expires modell model position seriennummer
    """
_FIELDS = frozenset(_NAMES.split())
_VALUES = frozenset(
    {"value", "wert", "valeur", "valor", "content", "inhalt", "contenu", "contenido", "eintrag", "entry"}
)
_HEAD_WORDS = frozenset(_HEADS.split())
_DESCRIPTIONS = frozenset(_DESCRIBED.split())
_ENDINGS = (
    "name",
    "nummer",
    "datum",
    "adresse",
    "passwort",
    "kennwort",
    "schlüssel",
    "number",
)  # of compounds
_LONGEST = 48
_WORD = re.compile(r"[^\W\d_](?:[\w\-]*\w)?")
_WITHIN = re.compile(r"\w[.:@]+\w|//")  # an address, a placeholder
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def names_a_field(cell: str) -> bool:
    """`Password`, `API key`, `Mot de passe`, `Kundennummer:`: by its first or last word, of at most four."""
    words = _words(cell)
    return 0 < len(words) <= 4 and any(
        word in _FIELDS or word.endswith(_ENDINGS) for word in (words[0], words[-1])
    )


def names_a_column(cell: str) -> bool:
    """A name of a field, or one that can only stand above: `Value`, `Description`."""
    words = _words(cell)
    return names_a_field(cell) or (0 < len(words) <= 4 and not _HEAD_WORDS.isdisjoint(words))


def only_names_fields(cell: str) -> bool:
    """`Nachname`, `Full name`: no word in it is anything else, as in the name of a person called `Anna Stadt`."""
    words = _words(cell)
    return bool(words) and all(
        word in _FIELDS or word in _HEAD_WORDS or word.endswith(_ENDINGS) for word in words
    )


def describes(cell: str) -> bool:
    """`Type`, `Version`: what stands there is about the thing the row names, and not what it is."""
    words = _words(cell)
    return bool(words) and not _DESCRIPTIONS.isdisjoint((words[0], words[-1]))


def names_values(cell: str) -> bool:
    """The column in which settings have their values."""
    return cell.strip().casefold() in _VALUES


def _words(cell: str) -> list[str]:
    cell = cell.strip()
    if not cell or len(cell) > _LONGEST or _WITHIN.search(cell):
        return []
    return [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", cell))]
