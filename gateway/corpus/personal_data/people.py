"""Who someone is and where they live: names after salutations and labels, dates of birth, street addresses.

A name is taken only where its surroundings say that it is one. Names in running text, nicknames and surnames on their own
are not found: that needs a language model, and the wrong guess would hide ordinary words.
"""

import re
from collections.abc import Iterator

from gateway.corpus.field_names import only_names_fields
from gateway.corpus.masking import Span, positions, windows
from gateway.corpus.personal_data.stretches import CELL_NAME, Seen, needles

UPPER = r"A-ZÀ-ÖØ-ÞŒŠŽĀĆČĐĘĚŁŃŇŘŚŠŤŮŹŻŽ"
WORD = rf"(?:[{UPPER}]\w+-[{UPPER}]\.|[{UPPER}][\w'’\-]*\w|[{UPPER}]\.)"
_PARTICLE = (
    r"(?:von|van|vom|de|der|den|la|le|del|della|da|di|do|dos|du|zu|zum|zur|y|i|af|av|bin|al|el|ter|ten|d['’])"
)
_ONE = rf"{WORD}(?:[ \u00a0](?:{_PARTICLE}[ \u00a0]){{0,2}}{WORD}){{0,3}}"
FULL = rf"{WORD}(?:[ \u00a0](?:{_PARTICLE}[ \u00a0]){{0,2}}{WORD}){{1,3}}"
_END = r"(?=[ \t]*(?:[,;|<>(\"'\n\t\f*]|\Z))"

_SALUTATION = re.compile(
    rf"(?<![\w.])(?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Herrn?|Hr|Frau|Fräulein|Monsieur|Madame|Mademoiselle|Mme|Mlle|M(?=\.)|MM(?=\.)|Señora?|"
    rf"Señorita|Sra?|Srta|Doña|Don|Dña)\.?[ \u00a0](?:(?:Dr|Prof|med|Ing|Dipl|rer|nat|jur|phil|h\.c)\.?(?:-Ing\.)?[ \u00a0]){{0,4}}"
    rf"(?P<value>(?:(?:von|van|zu|de|di|da|del|della)[ \u00a0](?:(?:der|den|dem|la|las|los)[ \u00a0])?)?{_ONE})"
)
_OFFICE_WORDS = """
    Sir Madam Madame Monsieur Herr Frau Doktor Professor Professorin Präsident Präsidentin Direktor Direktorin Minister
    Ministerin Kanzler Kanzlerin Bürgermeister Bürgermeisterin Président Présidente Directeur Directrice Ministre Maire Juge
    Presidente Presidenta Director Directora Ministro Ministra President Chairman Speaker Secretary Universe World Team All
    Customer Customers Colleague Colleagues Friends Everyone Reader Readers User Users Hiring Manager Support Service Sales
    Kunde Kunden Kundin Kundinnen Kollege Kollegen Kollegin Kolleginnen Damen Herren Zusammen Leser Freunde Mitglieder
    Client Clients Cliente Clientes Collègue Collègues Amigos Equipo Todos Tous Mesdames Messieurs Señores
    See Siehe Voir Ver Please Bitte Unknown Unbekannt Not Nicht Noch Keine Kein No Per Via Open Offen Hotline Helpdesk Reception
    Rezeption Empfang Zentrale Sekretariat Head Leiter Leitung
    """
_OFFICES = frozenset(_OFFICE_WORDS.split())
_LABEL_ANY = (
    r"Name|NAME|NOM|NOMBRE|Full name|Contact(?: person| name)?|Kontakt|Contacto|Attn\.?|Attention|Patient(?:in|e)?(?: name)?|Employee(?: name)?|Customer name|"
    r"Customer|Client|Author|Manager|Assignee|Signed by|Prepared by|Approved by|Reported by|Account holder|Cardholder(?: name)?|Applicant|Recipient|Sender|"
    r"Vor- und Nachname|Ansprechpartner(?:in)?|Kontaktperson|Kontoinhaber(?:in)?|Karteninhaber(?:in)?|Mitarbeiter(?:in)?|"
    r"Kund(?:e|in)|Mandant(?:in)?|Auftraggeber(?:in)?|Autor(?:in)?|Verfasser(?:in)?|Teilnehmer(?:in)?|Bewerber(?:in)?|"
    r"Mieter(?:in)?|Vermieter(?:in)?|Käufer(?:in)?|Verkäufer(?:in)?|Versicherte[r]?|Inhaber(?:in)?|Eigentümer(?:in)?|"
    r"Geschäftsführer(?:in)?|Vorgesetzte[r]?|Berater(?:in)?|Referent(?:in)?|Antragsteller(?:in)?|Empfänger(?:in)?|Absender(?:in)?|Sachbearbeiter(?:in)?|Bearbeiter(?:in)?|z\. ?Hd\.(?: von)?|"
    r"Cliente?|Auteur|Autrice|Salariée?|Locataire|Bailleur|Responsable|Emplead[oa]|Inquilin[oa]|Propietari[oa]|"
    r"Nom(?: complet| et prénom)?|Titulaire(?: du compte)?|Destinataire|Expéditeur|Interlocuteur|À l['’]attention de|"
    r"Nombre(?: completo| y apellidos)?|Titular|Paciente|Destinatario|Remitente|A la atención de|Persona de contacto|"
    r"From|To|Cc|Bcc|Reply-To|Von|An|De|À|Para|full_?name|contact_?name|customer_?name|display_?name"
)
_LABEL_PART = (
    r"First[ _]?name|Last[ _]?name|Surname|Given[ _]?name|Family[ _]?name|Middle[ _]?name|Vorname|Nachname|Familienname|Geburtsname|"
    r"Prénom|Nom de famille|Nom de naissance|Apellidos?|Primer apellido|Segundo apellido|Nombre de pila"
)
_PEOPLE = (
    r"users?|customers?|clients?|persons?|people|employees?|staff|members?|contacts?|authors?|owners?|patients?|students?|"
    r"teachers?|attendees?|participants?|recipients?|senders?|assignees?|reporters?|creators?|guests?|applicants?|candidates?|"
    r"managers?|beneficiar(?:y|ies)|drivers?|tenants?|buyers?|sellers?|billing|shipping|profiles?|accounts?|personen|kunden?|"
    r"kundin|mitarbeiter|mitglied(?:er)?|kontakte?|autoren|benutzer|teilnehmer|empfänger|absender|utilisateurs?|personnes?|"
    r"auteurs?|salariés?|usuarios?|personas?|clientes?|empleados?|contactos?|autores"
)
_SOMEBODY = (
    r"author|owner|assignee|reporter|creator|editor|customer|client|employee|patient|recipient|sender|applicant|candidate|manager|"
    r"(?:created|modified|updated|uploaded|sent|signed|approved|reviewed)[ _]?by|autor(?:in)?|verfasser(?:in)?|kund(?:e|in)|"
    r"mitarbeiter(?:in)?|empfänger(?:in)?|absender(?:in)?|ansprechpartner(?:in)?|(?:sach)?bearbeiter(?:in)?|auteur|cliente?"
)
# A name of anything, where nothing else says whose: these words are in what is built, sold or found on a map.
_THING_WORDS = """
    Build Test Tests Testing Run Deploy Install Check Lint Publish Release Docker Setup Set Create Update New Default Visual
    Studio Google Microsoft Amazon Apple Main Server Client Service Services App Application Apps Project Projects Data Database
    Web Site Website Page Home Code Source File Files System Systems Network Cloud Api Platform Engine Framework Library Toolkit
    Package Packages Plugin Module Component Manager Editor Store Shop Market Group Office Center Centre School University Street
    Road Park Lake River Mount Island Islands City North South East West New San Saint Great United States Republic Kingdom
    Bank Hotel Museum Club Company Product Plan Report Invoice Order Sample Example Demo Hello World Unit Integration Continuous
    Upload Download Cache Configure Checkout Python Java Node Linux Windows Mac Ubuntu Red Blue Green Black White My The A An
    """
THINGS = frozenset(_THING_WORDS.split())
_QUOTE = r"""["'*_`]{0,3}"""
_VALUE_SIGN = rf"""{_QUOTE}[ \u00a0\u202f\t]{{0,4}}[:|=]{_QUOTE}[ \u00a0\t]{{0,20}}{CELL_NAME}["'`]?"""
# These begin with a line or a cell: `find_names` puts a line end before the text.
_LABELLED = re.compile(
    rf"""(?:[\n|;\t]|\n[^\n|:]{{1,40}}+:[ ])[ \t>*\-•#|"'_`{{]{{0,12}}+(?=[A-ZÀcdfz])(?:{_LABEL_ANY}){_VALUE_SIGN}(?P<value>{FULL}){_END}"""
)
# As JSON, XML and metadata write it and read here: `users.name: …`, `author@name: …`, `{"name": "…"`, `author: …`.
_NAMED = re.compile(
    rf"""(?:\n|[{{,][ ]{{0,2}}(?=["']))["'{{ ]{{0,4}}+(?=[\w\-.@ ]{{3,300}}+["']?[ ]?:)(?:(?:[\w\-]{{1,40}}+[.@]){{0,6}}(?P<whose>(?i:{_PEOPLE})[.@])|)"""
    rf"""(?:name|(?i:{_SOMEBODY}))["']?[ ]?:[ ]?["']?(?P<value>{FULL}){_END}"""
)
LIKE_ANYTHING = re.compile(r"\d|[A-Z]{2}|[a-z][A-Z]")
# `Name` alone may be anything's; beside a first name it is the last one.
_FIRST = r"(?i:First[ _]?name|Given[ _]?name|Vorname|Prénom|Nombre)"
_FIRSTS = needles(
    "first name",
    "first_name",
    "firstname",
    "given name",
    "given_name",
    "givenname",
    "vorname",
    "prénom",
    "nombre",
)
_LAST = r"(?:Name|Nom|Apellidos?)"
_BETWEEN = r"""["'`]?[ \t]{0,4}[|;,\n][ \t>*\-•|"'_`]{0,8}"""
_BEFORE_FIRST = re.compile(
    rf"""(?<![^\W_]){_LAST}{_VALUE_SIGN}(?P<value>{_ONE})(?={_BETWEEN}{_FIRST}{_VALUE_SIGN}{WORD})"""
)
_AFTER_FIRST = re.compile(
    rf"""(?<![^\W_]){_FIRST}{_VALUE_SIGN}{_ONE}{_BETWEEN}{_LAST}{_VALUE_SIGN}(?P<value>{_ONE}){_END}"""
)
_GREETING = re.compile(
    r"\n[ \t>]{0,8}(?:Dear|Hi|Hello|Hey|Good morning|Liebe[rs]?|Hallo|Guten Tag|Moin|Servus|Grüezi|Bonjour|Bonsoir|"
    rf"Salut|Chère?|Hola|Estimad[oa]|Querid[oa]|Buenos días),?[ \u00a0](?P<value>{_ONE})[ \t]{{0,2}}(?=[,!:]?[ \t]*(?:\n|\Z)|[,!:][ \t])"
)
_FAREWELL = re.compile(
    r"\n[ \t>]{0,8}+(?=[A-Zbfhlrv])(?:(?:Kind|Best|Warm|Many)? ?[Rr]egards|Best wishes|Sincerely|Yours(?: \w+)?|Cheers|Thanks|"
    r"(?:Mit )?(?:[Ff]reundliche|[Vv]iele|[Bb]este|[Ll]iebe|[Hh]erzliche)[nr]? Gr(?:ü|ue)(?:ß|ss)en?|"
    r"(?:Freundlicher?|Lieber|Bester|Herzlicher|Schöner) Gru(?:ß|ss)|MfG|LG|VG|Cordialement|Bien cordialement|"
    r"Bien à vous|Salutations|Sincères salutations|Un (?:cordial )?saludo|Saludos(?: cordiales)?|Atentamente|Abrazos?)"
    rf"[,.!]?[ \t]*\n{{1,3}}[ \t>]{{0,8}}(?:(?:i\. ?[AV]\.|gez\.|Dr\.|Prof\.)[ \u00a0]){{0,2}}(?P<value>{_ONE})[ \t]*(?=\n|\Z|,|\|)"
)
# These are looked for around plain strings, which are found much faster than patterns.
_LABELLED_PART = re.compile(rf"(?<![^\W_])(?i:{_LABEL_PART}){_VALUE_SIGN}(?P<value>{_ONE}){_END}")
_PARTS = needles(
    "first name", "first_name", "firstname", "last name", "last_name", "lastname", "surname", "given name", "given_name",
    "givenname", "family name", "family_name", "familyname", "middle name", "middle_name", "vorname", "nachname",
    "familienname", "geburtsname", "prénom", "nom de", "apellido", "nombre de pila",
)  # fmt: skip
_TITLES = needles(
    "Mr", "Ms", "Mx", "Miss", "Dr", "Prof", "Herr", "Hr", "Frau", "Fräul", "Monsieur", "Madame", "Mademois", "Mme", "Mlle", "M.",
    "Señor", "Sr", "Don", "Doña", "Dña",
)  # fmt: skip
_DISPLAYED = re.compile(rf"(?<![\w.])(?P<value>{FULL}|{WORD}, {WORD})[\"']?[ \u00a0]?<[^<>@\s]{{1,64}}@")
_FIRM = re.compile(
    r"\b(?:Engineering|Operations|Development|Entwicklung|Marketing|Finance|Vertrieb|Sales|Buchhaltung|Einkauf|GmbH|AG|KG|SE|Corp|Holding|Group|Gruppe|Stiftung|Verein|Genossenschaft|Bank|Versicherung|Inc|Ltd|LLC|SA|SARL|SL|Team|Support|Abteilung|Service|Kundenservice|Équipe|Equipo|Department)\b"
)


def find_names(seen: Seen) -> Iterator[Span]:
    text = seen.text
    lined = "\n" + text.replace("\f", "\n")
    for pattern in (_LABELLED, _GREETING, _FAREWELL):
        for match in pattern.finditer(lined):
            if _is_name(match):
                yield Span(match.start("value") - 1, match.end("value") - 1, "person")
    for match in _NAMED.finditer(lined):
        if _is_name(match) and (match["whose"] or _is_nobody_else(match["value"])):
            yield Span(match.start("value") - 1, match.end("value") - 1, "person")
    for pattern, at, before in (
        (_SALUTATION, seen.at_exactly(_TITLES), 1),
        (_LABELLED_PART, seen.at(_PARTS), 8),
        (_BEFORE_FIRST, seen.at(_FIRSTS), 120),
        (_AFTER_FIRST, seen.at(_FIRSTS), 8),
        (_DISPLAYED, positions(text, ("@",)), 200),
    ):
        for start, end in windows(at, before=before, after=160, length=len(text)):
            for match in pattern.finditer(text, start, end):
                if _is_name(match):
                    yield Span(*match.span("value"), "person")


def _is_nobody_else(value: str) -> bool:
    return THINGS.isdisjoint(value.split()) and not LIKE_ANYTHING.search(value)


def is_office(value: str) -> bool:
    """`President`, `Kunde`, `Muster AG`: not a person's name."""
    return value.split(maxsplit=1)[0].rstrip(",.") in _OFFICES or bool(_FIRM.search(value))


def _is_name(match: re.Match[str]) -> bool:
    value = match["value"]
    if is_office(value):
        return False
    # In the next cell may be the name of the next column.
    before = match[0][: match.start("value") - match.start()].rstrip(" \u00a0\t\"'`*_")
    return not (before.endswith("|") and only_names_fields(value))


_MONTH = (
    r"(?:jan(?:uary|uar|vier|\.)?|jän(?:ner)?|enero|feb(?:ruary|ruar|rero|\.)?|f[ée]v(?:rier|\.)|mar(?:ch|s|zo|\.)?|mär(?:z|\.)|"
    r"apr(?:il|\.)?|avr(?:il|\.)|abr(?:il|\.)|may|mai|mayo|jun[ei]?o?|juin|jul[yi]?o?|juillet|aug(?:ust|\.)?|août|agosto|"
    r"sep(?:t(?:ember|embre|\.)?|tiembre|\.)?|o[ck]t(?:ober|obre|ubre|\.)?|nov(?:ember|embre|iembre|\.)?|"
    r"de[cz](?:ember|\.)?|déc(?:embre|\.)|dic(?:iembre|\.))"
)
_DATE = (
    rf"(?:\d{{1,2}}[./\-]\s?\d{{1,2}}[./\-]\s?(?:\d{{4}}|\d\d)|\d{{4}}[./\-]\d{{1,2}}[./\-]\d{{1,2}}|"
    rf"\d{{1,2}}(?:st|nd|rd|th|er|\.|º)?\s(?:of\s|de\s)?{_MONTH},?\s(?:de\s)?\d{{4}}|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}})"
)
_BORN = re.compile(
    rf"(?<![^\W_])(?:born(?:[ ]on)?|date[ _]?of[ _]?birth|birth[ _]?da(?:te|y)|d\.?o\.?b\.?|geboren(?:[ ]am)?|geb\.(?:-?datum)?|geburts(?:datum|tag)|né(?:e|\(e\))?(?:[ ]le)?|"
    rf"date[ _]?de[ _]?naissance|nacid[oa](?:[ ]el)?|fecha[ _]?de[ _]?nacimiento|f(?:echa[ ]de|\.)\s?nac\.?)"
    rf"""["'*_`]{{0,3}}[\s:|=,(*_]{{0,12}}{CELL_NAME}(?:(?:on|am|le|el|is|ist|est|es|war|was)\s){{0,1}}(?:(?:der|le|el|the|on)\s)?["'`]?
        (?P<value>{_DATE}|(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])(?:19|20)\d\d(?!\d))""",
    re.IGNORECASE | re.VERBOSE,
)
_THEN_BORN = re.compile(
    rf"(?<![\w.])(?P<value>{_DATE})(?:\s(?:in|zu)\s[{UPPER}][\w\-]+)?\s(?:geboren|zur\sWelt)", re.IGNORECASE
)
_BIRTH = needles(
    "zur welt",
    "born",
    "birth",
    "dob",
    "d.o.b",
    "geb",
    "né",
    "naissance",
    "nacid",
    "nacimiento",
    "nac.",
)


def find_births(seen: Seen) -> Iterator[Span]:
    text = seen.text
    for start, end in windows(seen.at(_BIRTH), before=60, after=90, length=len(text)):
        for pattern in (_BORN, _THEN_BORN):
            for match in pattern.finditer(text, start, end):
                yield Span(*match.span("value"), "date_of_birth")


_TOWN_DE = rf"(?:D-|CH-|A-)?\d{{4,5}}[ \u00a0][{UPPER}]\w[\w\-]*(?:[ \u00a0](?:am|an der|im|bei|ob der)[ \u00a0]{WORD}|[ \u00a0]{WORD})?"
# How each address is spotted: by the word for street before a number, or by a house number or postcode and a capital.
_ROADS_DE = rf"(?:[{UPPER}][\w\-]*?(?:[sS]traße|[sS]trasse|[sS]tr\.|[aA]llee|[cC]haussee)|{WORD}[ \u00a0](?:Straße|Strasse|Str\.|Allee|Chaussee))"
_LANES_DE = (
    rf"(?:(?:{WORD}[ \u00a0]){{0,2}}[{UPPER}][\w\-]*(?:weg|hof|gasse|platz|markt|steig|damm|ufer|ring)|"
    rf"(?:Am|An|Auf|Beim?|Im|In|Hinter|Unter|Vor|Zum|Zur|Alter|Neuer|Kleiner|Großer)[ \u00a0](?:de[mnr][ \u00a0])?"
    rf"(?!(?:Januar|Februar|März|April|Mai|Jun|Jul|August|Sept|Okt|Nov|Dez|Montag|Dienst|Mittw|Donners|Freit|Sams|Sonn|Jahr|Kap|Abs|Anh))"
    rf"{WORD}(?:[ \u00a0]{WORD})?)"
)
_HOUSE_DE = r"\d{1,4}[ \u00a0]?(?:[a-z]\b)?(?:[ ]?[\-–/][ ]?\d{1,4})?"
_STREETS_DE = re.compile(
    rf"(?<![\w\-])(?:{_ROADS_DE}[ \u00a0]{_HOUSE_DE}(?:(?:,[ \u00a0]?|\s){_TOWN_DE})?|"
    rf"{_LANES_DE}[ \u00a0]{_HOUSE_DE}(?:,[ \u00a0]?|\n){_TOWN_DE}|"
    rf"[{UPPER}]\w+(?:-[{UPPER}]\w*\.?){{0,3}}-(?:Weg|Platz|Gasse|Ring|Damm|Ufer|Hof|Steig)[ \u00a0]{_HOUSE_DE})"
)
_STREETS_EN = re.compile(
    rf"(?<![\w.,/\-])\d{{1,5}}[A-Za-z]?[ \u00a0](?:[NSEW]\.?[ \u00a0])?(?:[{UPPER}][\w'’.\-]*[ \u00a0]){{1,3}}"
    r"(?:Street|Avenue|Road|Lane|Drive|Boulevard|Court|Terrace|Close|Crescent|Square|Way|Mews|Parkway|Gardens|Grove|Circle|Place|St\b\.?|Ave\b\.?|Rd\b\.?|Blvd\b\.?|Ln\b\.?|"
    rf"Dr\.)(?!\w)(?:,[ ](?:Apt|Suite|Unit|Flat|Floor)\.?[ ]\w+)?(?:,[ ]{WORD}(?:[ ]{WORD}){{0,2}})?"
    r"(?:,?[ ](?:[A-Z]{2}[ ]\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2})(?!\w))?"
)
_STREETS_FR = re.compile(
    r"(?<![\w.,/\-])\d{1,4}(?:[ ]?(?:bis|ter)\b)?,?[ \u00a0](?i:rue|avenue|av\.|boulevard|bd\.?|place|chemin|allée|impasse|quai|"
    r"cours|route)[ \u00a0](?:(?:de la|de l['’]|des|de|du|d['’]|la|les|le|l['’])[ ]?){0,2}"
    rf"[{UPPER}][\w'’\-]*(?:[ \u00a0](?:de[ ]|du[ ])?{WORD}){{0,3}}(?:(?:,[ ]?|\s)(?:F-)?\d{{5}}[ \u00a0]{WORD}(?:[ ]{WORD})?)?"
)
# Of French Switzerland, where the number comes last; and of anywhere, where a label says that it is one.
_STREETS_CH = re.compile(
    rf"(?<![\w\-])(?i:rue|avenue|boulevard|place|chemin|allée|impasse|quai|route)[ \u00a0](?:(?:de la|de l['’]|des|de|du|d['’]|la|les|le|l['’])[ ]?){{0,2}}"
    rf"{WORD}(?:[ \u00a0](?:de[ ]|du[ ])?{WORD}){{0,2}}[ \u00a0]\d{{1,3}}[a-z]?(?:,[ ]?|\s)(?:CH-)?\d{{4}}[ \u00a0]{WORD}"
)
_LABELLED_STREET = re.compile(
    rf"(?<![^\W_])(?i:adresse|anschrift|straße|strasse|wohnhaft|address|street|rue|calle|dirección)[\"'*_]{{0,3}}[ ]?[:|=][\"'*_]{{0,3}}[ \t]{{0,4}}{CELL_NAME}"
    rf"[\"']?(?P<value>{WORD}(?:[ \-]{WORD}){{0,3}}[ \u00a0]\d{{1,4}}[ ]?[a-z]?)(?=[\"'\n|,;]|\Z)"
)
_STREET_LABELS = needles(
    "adresse",
    "anschrift",
    "straße",
    "strasse",
    "wohnhaft",
    "address",
    "street",
    "rue",
    "calle",
    "dirección",
)
_STREETS_ES = re.compile(
    r"(?<!\w)(?:Calle|C/|C\.|Avenida|Avda\.?|Plaza|Pza\.?|Paseo|Camino|Carretera|Ronda|Rambla|Alameda|Glorieta|Travesía|Pasaje)[ \u00a0]?(?:(?:de las|de los|de la|del|de|la|el|"
    rf"los|las)[ ]){{0,2}}{WORD}(?:[ ](?:de la[ ]|de los[ ]|del[ ]|de[ ]|la[ ]|y[ ])?{WORD}){{0,3}},?[ ](?:n\.?[º°]?[ ]?|núm\.?[ ])?"
    rf"\d{{1,4}}(?:,[ ]?\d{{1,2}}[º°ª]?[ ]?[A-Z]?\b)?(?:,?\s\d{{5}}[ ]{WORD}(?:[ ]{WORD})?)?"
)
_NUMBERED = re.compile(
    rf"\d(?<!\d\d)\d{{0,4}}+[A-Za-z]?(?:[ ]?(?:bis|ter)\b)?,?[ \u00a0](?=[{UPPER}]|rue|av|bou|bd|pla|che|all|imp|qua|cou|rou)"
)
_ROAD_WORDS = needles("straße ", "strasse ", "str. ", "allee ", "chaussee ", "-weg ", "-platz ", "-gasse ", "-ring ", "-damm ", "-ufer ",
               "-hof ", "-steig ")  # fmt: skip
_CALLES = needles("Calle ", "C/", "Avenida ", "Avda", "Plaza ", "Pza", "Paseo ", "Camino ", "Carretera ", "Ronda ", "C. ", "Rambla ", "Alameda ",
           "Glorieta ", "Travesía ", "Pasaje ")  # fmt: skip


def find_addresses(seen: Seen) -> Iterator[Span]:
    text = seen.text
    numbered = [match.start() for match in _NUMBERED.finditer(text)]
    roads = sorted((*seen.at(_ROAD_WORDS), *numbered))
    for pattern, at in (
        (_STREETS_DE, roads),
        (_STREETS_EN, numbered),
        (_STREETS_FR, numbered),
        (_STREETS_CH, numbered),
        (_STREETS_ES, seen.at_exactly(_CALLES)),
    ):
        for start, end in windows(at, before=80, after=160, length=len(text)):
            for match in pattern.finditer(text, start, end):
                yield Span(*match.span(), "address")
    for start, end in windows(seen.at(_STREET_LABELS), before=1, after=160, length=len(text)):
        for match in _LABELLED_STREET.finditer(text, start, end):
            yield Span(*match.span("value"), "address")
