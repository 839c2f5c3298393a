"""The words by which a mail's frame is told from its message, in English, German, French and Spanish.

Every pattern is matched against single, bounded lines and cannot run away: mail is written by strangers.
"""

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# "On … wrote:" – the line, or up to three lines joined, that introduces a quotation.
ATTRIBUTION = _any(
    r"^on\b.{4,300}\bwrote\s?:$",
    r"^am\b.{4,300}\bschrieb\b.{0,200}:$",
    r"^.{0,200}<[^<>@]{1,80}@[^<>]{1,120}>\s+schrieb\b.{0,100}:$",
    r"^le\b.{4,300}\ba écrit\s?:$",
    r"^el\b.{4,300}\bescribió\s?:$",
    r"^\d{4}[-/]\d\d[-/]\d\d.{0,60}<[^<>@]{1,80}@[^<>]{1,120}>\s?:$",
)
ATTRIBUTION_BEGINS = _any(r"^(on|am|le|el)\b.{2,}", r"^.{0,200}<[^<>@]{1,80}@")
# Everything behind such a line is an older mail.
SEPARATOR = _any(
    r"^[-_ ]{2,}\s?original (message|appointment)\s?[-_ ]{2,}$",
    r"^[-_ ]{2,}\s?(ursprüngliche|original)[\s-]?(e-?mail|nachricht)?\s?[-_ ]{2,}$",
    r"^[-_ ]{2,}\s?message d['’]origine\s?[-_ ]{2,}$",
    r"^[-_ ]{2,}\s?mensaje original\s?[-_ ]{2,}$",
)
# Behind such a line is a mail that is passed on: its words are news to the reader, its head is not.
FORWARD = _any(
    r"^[-_ ]{2,}\s?forwarded (message|by).{0,80}$",
    r"^begin forwarded message\s?:$",
    r"^[-_ ]{2,}\s?weitergeleitete (nachricht|e-?mail).{0,20}$",
    r"^anfang der weitergeleiteten (nachricht|e-?mail)\s?:$",
    r"^[-_ ]{2,}\s?message transféré.{0,20}$",
    r"^début du message (réexpédié|transféré)\s?:$",
    r"^[-_ ]{2,}\s?mensaje reenviado.{0,20}$",
    r"^inicio del mensaje reenviado\s?:$",
)
HEAD_FIRST = _any(r"^\*?(from|von|de|expéditeur)\s?:\*?\s?\S")
HEAD_REST = _any(
    r"^\*?(sent|date|to|cc|bcc|subject|reply-to|importance|attachments)\s?:\*?",
    r"^\*?(gesendet( am)?|datum|an|kopie|betreff|antwort an|wichtigkeit|anlagen)\s?:\*?",
    r"^\*?(envoyé( le)?|à|objet|copie à|pièces jointes|date)\s?:\*?",
    r"^\*?(enviado( el)?|fecha|para|asunto|responder a|adjuntos)\s?:\*?",
)
SIGNATURE = re.compile(r"^(--|—|__)\s?$")
GADGET = _any(
    r"^(sent|get) (from|with|via) my .{2,40}$",
    r"^sent (from|via|with) (mail for windows|outlook|yahoo|proton|samsung|android|blackberry).{0,60}$",
    r"^get outlook for .{2,40}$",
    r"^(von meinem|gesendet von meinem|mit meinem) .{2,40}( gesendet)?$",
    r"^gesendet (mit|von|über) .{2,60}$",
    r"^(diese nachricht wurde )?von (meinem )?(i-?phone|i-?pad|android|samsung|mobiltelefon).{0,40}gesendet.{0,20}$",
    r"^envoyé (de mon|depuis mon|depuis|avec|à partir de) .{2,60}$",
    r"^télécharger outlook pour .{2,40}$",
    r"^enviado (desde mi|desde|con|mediante) .{2,60}$",
    r"^obtener outlook para .{2,40}$",
    r"^(outlook für|outlook for) (ios|android).{0,40}$",
)
CLOSING = _any(
    r"^((kind|best|warm|many) )?regards,?$",
    r"^(best|cheers|thanks|thank you|many thanks|sincerely|yours (sincerely|faithfully|truly)|all the best|best wishes),?$",
    r"^((mit )?(freundlichen|besten|herzlichen|vielen|lieben|schönen)|freundliche|beste|herzliche|liebe|viele|schöne) "
    r"(grüßen|grüssen|grüße|grüsse|gruß|gruss)( .{0,40})?,?$",
    r"^(mfg|lg|vg|gruß|gruss|grüße|grüsse|hochachtungsvoll),?$",
    r"^((bien )?cordialement|(sincères |meilleures |cordiales )?salutations|bien à (vous|toi)|amicalement),?$",
    r"^((un )?(cordial )?saludos?|(saludos )?(cordiales|atentamente)|atentamente|un abrazo|muchas gracias)( cordiales)?,?$",
)
# A line of somebody's card.
CARD = _any(
    r"\b(tel|telefon|phone|mobile?|mob|handy|fax|tél|téléphone|móvil|teléfono|direct|office|durchwahl)\b\.?\s?[:.+(\d]",
    r"^\+?\(?\d[\d\s()/.-]{6,}$",
    r"\bwww\.[\w.-]{3,}",
    r"^https?://\S{1,300}$",
    r"^\S{1,80}@\S{3,120}$",
    r"^(e-?mail|web|mail|courriel|correo)\s?:",
    r"\b(gmbh|ag|s\.a\.|s\.l\.|sarl|ltd|inc|llc|kg|ug|plc|handelsregister|amtsgericht|hrb|ust-?id|geschäftsführer)\b",
)
# Paragraphs nobody wrote for this mail. All of one group's words must be there.
BOILERPLATE: tuple[tuple[re.Pattern[str], ...], ...] = (
    (
        _any(r"\bconfidential\b", r"\bprivileged\b"),
        _any(r"\bintended\b", r"\brecipient\b"),
        _any(r"\be-?mail\b", r"\bmessage\b", r"\btransmission\b", r"\bcommunication\b"),
    ),
    (
        _any(r"\bvertraulich", r"\brechtlich geschützt"),
        _any(r"\bempfänger", r"\badressat", r"\birrtümlich", r"\bbestimmt\b"),
        _any(r"\be-?mail", r"\bnachricht"),
    ),
    (
        _any(r"\bconfidentiel"),
        _any(r"\bdestinataire", r"\berreur\b"),
        _any(r"\bmessage\b", r"\bcourriel\b", r"\be-?mail\b"),
    ),
    (
        _any(r"\bconfidencial"),
        _any(r"\bdestinatario", r"\berror\b"),
        _any(r"\bmensaje\b", r"\bcorreo\b", r"\be-?mail\b"),
    ),
    (_any(r"\bconsider the environment\b", r"\bthink before (you )?print", r"\bumwelt\b.{0,80}\bdruck", r"\bpensez à l['’]environnement", r"\bmedio ambiente\b.{0,80}\bimprim"),),
    (_any(r"\boriginated (from )?outside\b", r"\bexternal (e-?mail|sender)\b.{0,80}\b(caution|links|click)", r"\bcaution\b.{0,60}\bexternal\b"),),
    (_any(r"\bexterne (e-?mail|nachricht)\b.{0,120}\b(links|anhänge|vorsicht)", r"\bvorsicht\b.{0,60}\bextern"),),
    (_any(r"\byou don['’]t often get e-?mail from\b", r"\bsie erhalten nicht h[aä]ufig e-?mails von\b", r"\bvous n['’]obtenez pas souvent\b", r"\bno suele recibir correo electrónico de\b"),),
    (_any(r"\bvirus-?free\b.{0,40}www", r"\bvirenfrei\b", r"\bscanned (for viruses|by)\b.{0,80}", r"\bauf viren (geprüft|untersucht)"),),
    (_any(r"\bunsubscribe\b", r"\babmelden\b", r"\bse désabonner\b", r"\bdarse de baja\b"), _any(r"\bnewsletter\b", r"\bmailing list\b", r"\bpreferences\b", r"\be-?mails?\b", r"\bcorreos?\b", r"\bcourriels?\b")),
)  # fmt: skip
# Left behind by clients that show mail as text.
TRACES = re.compile(
    r"\[cid:[^\[\]\n]{1,200}\]|\[image: ?[^\[\]\n]{0,200}\]|\[https?://[^\[\]\s]{1,500}\.(?:png|gif|jpe?g|svg)[^\[\]\s]{0,300}\]"
    r"|<(?:https?://|mailto:|tel:)[^<>\n]{1,2000}>",
    re.IGNORECASE,
)
