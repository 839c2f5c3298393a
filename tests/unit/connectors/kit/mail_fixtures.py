"""Mails as clients write them, and what their authors said. Invented, each after the manner of a real client."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Mail:
    name: str
    body: str
    said: str
    content_type: Literal["html", "text"] = "text"


def html(name: str, body: str, said: str) -> Mail:
    return Mail(name, body, said, "html")


MAILS = [
    # -- plain text, quotations
    Mail("nothing to take away", "Hello Bob,\n\nthe draft is ready.\n\nAnna", "Hello Bob,\n\nthe draft is ready.\n\nAnna"),
    Mail(
        "gmail reply, english",
        "Works for me.\n\nOn Mon, Mar 2, 2026 at 9:14 AM Bob Stone <bob@example.org> wrote:\n\n> Shall we meet on Friday?\n> Bob\n",
        "Works for me.",
    ),
    Mail(
        "attribution wrapped over two lines",
        "Yes.\n\nOn Mon, Mar 2, 2026 at 9:14 AM Bartholomew Stonebridge-Whitley\n<bartholomew@example.org> wrote:\n> Shall we?\n",
        "Yes.",
    ),
    Mail(
        "apple mail, german",
        "Passt, danke!\n\n> Am 02.03.2026 um 09:14 schrieb Bob Stein <bob@example.org>:\n> \n> Freitag?\n",
        "Passt, danke!",
    ),
    Mail(
        "thunderbird, german",
        "Der Vertrag ist unterschrieben.\n\nAm 02.03.26 um 09:14 schrieb Bob Stein:\n> Gibt es Neues?\n",
        "Der Vertrag ist unterschrieben.",
    ),
    Mail(
        "gmail reply, french",
        "Oui, c'est noté.\n\nLe lun. 2 mars 2026 à 09:14, Jean Dupont <jean@example.org> a écrit :\n\n> On se voit vendredi ?\n",
        "Oui, c'est noté.",
    ),
    Mail(
        "gmail reply, spanish",
        "De acuerdo.\n\nEl lun, 2 mar 2026 a las 9:14, Juan Pérez (<juan@example.org>) escribió:\n\n> ¿Nos vemos el viernes?\n",
        "De acuerdo.",
    ),
    Mail(
        "outlook reply, english",
        "The invoice is attached.\n\nFrom: Bob Stone <bob@example.org>\nSent: Monday, March 2, 2026 9:14 AM\nTo: Anna\n"
        "Subject: Invoice\n\nCould you send it?\n",
        "The invoice is attached.",
    ),
    Mail(
        "outlook reply, german",
        "Anbei die Rechnung.\n\nVon: Bob Stein <bob@example.org>\nGesendet: Montag, 2. März 2026 09:14\nAn: Anna\n"
        "Betreff: Rechnung\n\nKannst du sie schicken?\n",
        "Anbei die Rechnung.",
    ),
    Mail(
        "outlook reply, french",
        "Voici la facture.\n\nDe : Jean Dupont <jean@example.org>\nEnvoyé : lundi 2 mars 2026 09:14\nÀ : Anna\n"
        "Objet : Facture\n\nPeux-tu l'envoyer ?\n",
        "Voici la facture.",
    ),
    Mail(
        "outlook reply, spanish",
        "Adjunto la factura.\n\nDe: Juan Pérez <juan@example.org>\nEnviado: lunes, 2 de marzo de 2026 9:14\nPara: Anna\n"
        "Asunto: Factura\n\n¿Puedes enviarla?\n",
        "Adjunto la factura.",
    ),
    Mail(
        "original message, english",
        "Agreed.\n\n-----Original Message-----\nFrom: Bob\nSent: today\nTo: me\nSubject: x\n\nOld.",
        "Agreed.",
    ),
    Mail(
        "original message, german",
        "Einverstanden.\n\n-----Ursprüngliche Nachricht-----\nVon: Bob\n\nAlt.",
        "Einverstanden.",
    ),
    Mail("original message, french", "D'accord.\n\n-----Message d'origine-----\nDe : Jean\n\nVieux.", "D'accord."),
    Mail("original message, spanish", "Conforme.\n\n-----Mensaje original-----\nDe: Juan\n\nViejo.", "Conforme."),
    Mail(
        "answers between the quoted lines stay",
        "On 2 March 2026, Bob wrote:\n> When?\nOn Friday at ten.\n> Where?\nIn the large room.\n",
        "On Friday at ten.\nIn the large room.",
    ),
    Mail(
        "quoted without marks",
        "Fine.\n\nOn Mon, Mar 2, 2026 at 9:14 AM Bob <bob@example.org> wrote:\n\nShall we meet?\nBob",
        "Fine.",
    ),
    Mail(
        "a sentence that begins with On is no quotation",
        "On Friday I wrote to the landlord.\nHe has not answered: shall I call?",
        "On Friday I wrote to the landlord.\nHe has not answered: shall I call?",
    ),
    Mail(
        "a list of people is no head of a mail",
        "From: the north entrance\nwalk straight on to the hall.",
        "From: the north entrance\nwalk straight on to the hall.",
    ),
    Mail(
        "several generations",
        "Third.\n\nOn Tue, Mar 3, 2026 at 8:00 AM Bob <b@example.org> wrote:\n> Second.\n>\n> On Mon, Mar 2, 2026 Anna wrote:\n>> First.\n",
        "Third.",
    ),
    # -- forwards: the words passed on are the message
    Mail(
        "gmail forward with a remark",
        "Please have a look.\n\n---------- Forwarded message ---------\nFrom: Bob <bob@example.org>\nDate: Mon, Mar 2, 2026 at 9:14 AM\n"
        "Subject: Offer\nTo: Anna <anna@example.org>\n\nThe offer is valid until Friday.\n",
        "Please have a look.\n\nThe offer is valid until Friday.",
    ),
    Mail(
        "apple forward without a remark",
        "Begin forwarded message:\n\nFrom: Bob <bob@example.org>\nSubject: Offer\nDate: 2 March 2026\nTo: Anna\n\nThe offer is valid until Friday.",
        "The offer is valid until Friday.",
    ),
    Mail(
        "thunderbird forward, german",
        "-------- Weitergeleitete Nachricht --------\nBetreff: Angebot\nDatum: Mon, 2 Mar 2026\nVon: Bob <bob@example.org>\nAn: anna@example.org\n\n"
        "Das Angebot gilt bis Freitag.",
        "Das Angebot gilt bis Freitag.",
    ),
    Mail(
        "forward, french",
        "Pour info.\n\n---------- Message transféré ---------\nDe : Jean <jean@example.org>\nDate : lun. 2 mars 2026\nObjet : Offre\nÀ : Anna\n\nL'offre est valable jusqu'à vendredi.",
        "Pour info.\n\nL'offre est valable jusqu'à vendredi.",
    ),
    Mail(
        "forward, spanish",
        "---------- Mensaje reenviado ---------\nDe: Juan <juan@example.org>\nFecha: lun, 2 mar 2026\nAsunto: Oferta\nPara: Anna\n\nLa oferta vale hasta el viernes.",
        "La oferta vale hasta el viernes.",
    ),
    Mail(
        "outlook forward without a remark",
        "\n\nFrom: Bob Stone <bob@example.org>\nSent: Monday, March 2, 2026 9:14 AM\nTo: Anna\nSubject: Offer\n\nThe offer is valid until Friday.",
        "The offer is valid until Friday.",
    ),
    # -- signatures
    Mail("dash dash", "The plan is fine.\n\n-- \nAnna Muster\nHead of Plans\nTel. +49 30 123456", "The plan is fine."),
    Mail("phone, english", "On my way.\n\nSent from my iPhone", "On my way."),
    Mail("phone, german", "Bin unterwegs.\n\nVon meinem iPhone gesendet", "Bin unterwegs."),
    Mail("phone, french", "J'arrive.\n\nEnvoyé de mon iPhone", "J'arrive."),
    Mail("phone, spanish", "Ya voy.\n\nEnviado desde mi iPhone", "Ya voy."),
    Mail("outlook app", "See you.\n\nGet Outlook for iOS<https://aka.ms/o0ukef>", "See you."),
    Mail(
        "card after a closing, german",
        "Die Lieferung kommt am Dienstag.\n\nMit freundlichen Grüßen\nAnna Muster\nLeiterin Einkauf\n\nMuster GmbH\nHauptstraße 1\n12345 Berlin\n"
        "Telefon: +49 30 123456\nwww.example.org",
        "Die Lieferung kommt am Dienstag.\n\nMit freundlichen Grüßen\nAnna Muster",
    ),
    Mail(
        "card after a closing, english",
        "The shipment leaves on Tuesday.\n\nKind regards,\nAnna Muster\nHead of Purchasing | Example Ltd\nPhone: +44 20 1234567\nanna@example.org",
        "The shipment leaves on Tuesday.\n\nKind regards,\nAnna Muster",
    ),
    Mail(
        "card after a closing, french",
        "La livraison part mardi.\n\nCordialement,\nAnne Exemple\nTél. : +33 1 23 45 67 89",
        "La livraison part mardi.\n\nCordialement,\nAnne Exemple",
    ),
    Mail(
        "card after a closing, spanish",
        "El envío sale el martes.\n\nSaludos cordiales,\nAna Ejemplo\nTel. +34 912 345 678",
        "El envío sale el martes.\n\nSaludos cordiales,\nAna Ejemplo",
    ),
    Mail(
        "a closing without a card stays whole",
        "See the minutes.\n\nBest regards,\nAnna\n\nPS: the room has changed.",
        "See the minutes.\n\nBest regards,\nAnna\n\nPS: the room has changed.",
    ),
    # -- small print
    Mail(
        "disclaimer, english",
        "The price is 40.\n\nThis e-mail and any attachments are confidential and intended solely for the addressee. If you are not the intended "
        "recipient, please delete it.",
        "The price is 40.",
    ),
    Mail(
        "disclaimer, german",
        "Der Preis ist 40.\n\nDiese E-Mail enthält vertrauliche Informationen. Wenn Sie nicht der richtige Adressat sind, informieren Sie bitte den Absender.",
        "Der Preis ist 40.",
    ),
    Mail(
        "disclaimer, french",
        "Le prix est de 40.\n\nCe message est confidentiel et destiné exclusivement à son destinataire. Si vous l'avez reçu par erreur, merci de le détruire.",
        "Le prix est de 40.",
    ),
    Mail(
        "disclaimer, spanish",
        "El precio es 40.\n\nEste mensaje es confidencial y va dirigido únicamente a su destinatario. Si lo ha recibido por error, elimínelo.",
        "El precio es 40.",
    ),
    Mail(
        "warning at the top",
        "CAUTION: This email originated from outside of the organization. Do not click links.\n\nHello, the key is under the mat.",
        "Hello, the key is under the mat.",
    ),
    Mail(
        "confidential alone is no small print",
        "Please keep the merger confidential until June.",
        "Please keep the merger confidential until June.",
    ),
    # -- traces of pictures and links
    Mail("embedded pictures", "See below.\n\n[cid:image001.png@01DA2B3C.4D5E6F70]\n\nDone.", "See below.\n\nDone."),
    Mail("links behind words", "Read the guide<https://track.example.org/c/abc?u=1> today.", "Read the guide today."),
    # -- HTML
    html("paragraphs", "<p>Hello <b>Bob</b>,</p><p>the draft&nbsp;is ready.</p>", "Hello Bob,\n\nthe draft is ready."),
    html(
        "gmail, html",
        '<div dir="ltr">Works for me.</div><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">On Mon, Mar 2, 2026 at 9:14 AM Bob '
        '&lt;<a href="mailto:bob@example.org">bob@example.org</a>&gt; wrote:<br></div><blockquote class="gmail_quote"><div>Shall we?</div></blockquote></div>',
        "Works for me.",
    ),
    html(
        "outlook on the web",
        "<html><body><div>The invoice is attached.</div><div id='appendonsend'></div><hr><div id='divRplyFwdMsg'><b>From:</b> Bob<br><b>Sent:</b> Monday<br>"
        "<b>To:</b> Anna<br><b>Subject:</b> Invoice</div><div>Could you send it?</div></body></html>",
        "The invoice is attached.",
    ),
    html(
        "outlook, classic",
        "<div class=WordSection1><p class=MsoNormal>The invoice is attached.<o:p></o:p></p><div><div style='border:none;border-top:solid #E1E1E1 1.0pt'>"
        "<p class=MsoNormal><b>From:</b> Bob Stone &lt;bob@example.org&gt;<br><b>Sent:</b> Monday<br><b>To:</b> Anna<br><b>Subject:</b> RE: Invoice</p></div></div>"
        "<p class=MsoNormal>Could you send it?</p></div>",
        "The invoice is attached.",
    ),
    html(
        "thunderbird, html",
        '<p>Signed.</p><div class="moz-cite-prefix">On 02.03.26 09:14, Bob Stone wrote:<br></div><blockquote type="cite"><p>News?</p></blockquote>',
        "Signed.",
    ),
    html(
        "gmail forward, html",
        '<div>FYI</div><div class="gmail_quote"><div class="gmail_attr">---------- Forwarded message ---------<br>From: <strong>Bob</strong> &lt;bob@example.org&gt;<br>'
        "Date: Mon, Mar 2, 2026<br>Subject: Offer<br>To: Anna<br></div><br><div>The offer is valid until Friday.</div></div>",
        "FYI\nThe offer is valid until Friday.",
    ),
    html(
        "pixels, pictures and what is hidden",
        '<div style="display:none;max-height:0">Preview text for the list</div><p>The talk is at ten.</p><img src="https://t.example.org/o.gif" width="1" height="1">'
        '<img src="cid:logo" alt="Logo"><p style="font-size:0">zero</p>',
        "The talk is at ten.",
    ),
    html(
        "a newsletter without a size around its text",
        '<table><tr><td style="font-size:0px;padding:10px;">gap<div style="font-family:Arial;font-size:13px">Body text, <b>bold</b></div>'
        '<div style="FONT-SIZE: 0">unseen<span style="font-size:100%">unseen</span></div></td></tr></table>',
        "Body text, bold",
    ),
    html("styles and scripts", "<style>p{color:red}</style><script>alert(1)</script><p>Only this.</p><!-- not this -->", "Only this."),
    html(
        "a table",
        "<p>Figures:</p><table><tr><th>Month</th><th>Sum</th></tr><tr><td>May</td><td>12</td></tr></table>",
        "Figures:\n\nMonth | Sum\nMay | 12",
    ),
    html("a list", "<ul><li>milk</li><li>bread</li></ul>", "- milk\n- bread"),
    html("lines", "one<br>two<br><br>three", "one\ntwo\n\nthree"),
    html("gmail signature", '<div>Fine.</div><div class="gmail_signature"><div>Anna Muster</div><div>Example Ltd</div></div>', "Fine."),
    html("an indented block is the author's", "<p>As the law says:</p><blockquote>No parking.</blockquote>", "As the law says:\n\nNo parking."),
    html("code", "<pre>def f():\n    return 1</pre>", "def f():\nreturn 1"),
    # -- odd ones
    Mail("empty", "", ""),
    Mail("only white space", " \n\t\n\u00a0\n", ""),
    Mail("invisible characters", "Hel\u200blo \ufeffBob", "Hello Bob"),
    Mail("windows line ends and many empty lines", "one\r\n\r\n\r\n\r\ntwo   three\r\n", "one\n\ntwo three"),
    html("broken markup", "<p>One <b>two</p><div>three", "One two\n\nthree"),
]  # fmt: skip
