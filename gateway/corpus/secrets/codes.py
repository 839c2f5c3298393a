"""Codes that open something without being called a password: lists of one-time codes, recovery keys, words of a seed."""

from gateway.corpus.secrets.forms import structure

_ONE = r"(?=[A-Za-z\-]{0,12}\d)[A-Za-z0-9]{4,10}(?:-[A-Za-z0-9]{4,10}){0,3}(?![\w\-.])"
_BETWEEN = r"[ \t]{0,4}[,;|]?\s{1,3}(?:\d{1,2}[.)][ ]|[>*•\-][ ]?){0,3}"
_SEED = r"(?:seed|mnemonic|phrase|satz|wörter|récupération|recuperación|semilla)"
_IS = r"[^\n:=]{0,30}(?:[:=]|[ ](?:is|are|ist|lautet|est|es)[ ])\s{0,4}[\"']?"

CODES = (
    structure(
        "secret",
        "recovery code|backup code|backup-code|scratch code|wiederherstellungscode|notfallcode|ersatzcode|codes de |códigos de",
        rf"""(?:(?:recovery|backup|scratch|wiederherstellungs|notfall|ersatz)[ \-]?codes?|codes?[ ]de[ ](?:secours|récupération|sauvegarde)|
             códigos?[ ]de[ ](?:recuperación|respaldo|seguridad))\b[^\n:]{{0,40}}(?::|\n)\s{{0,4}}(?:\d{{1,2}}[.)][ ]|[>*•\-][ ]?){{0,3}}
             (?P<value>{_ONE}(?:{_BETWEEN}{_ONE}){{1,30}})""",
        after=800,
    ),
    structure(
        "secret",
        "recovery key|product key|licen|activation|recovery password|schlüssel|clé de |clave de |serial key",
        r"""(?:(?:recovery|product|activation|licen[cs]e|serial|wiederherstellungs|produkt|lizenz|aktivierungs)[ \-]?(?:key|schlüssel|code|password)|
            clé[ ]de[ ](?:produit|licence|récupération)|clave[ ]de[ ](?:producto|licencia|recuperación))[^\n:]{0,30}[: ]\s{0,4}
            (?P<value>(?-i:[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,7}))(?![\w\-])""",
    ),
    structure(
        "password",  # for one program, in groups of four
        "app password|app-passwor|application pass|app-specific|anwendungspass",
        r"""(?:app[ \-]?(?:specific[ ])?pass\w{2,6}|application[ ]password|anwendungspasswort)[^\n:]{0,30}:\s{0,3}
            (?P<value>(?:[a-z]{4}[ ]){3}[a-z]{4}|(?:[a-z0-9]{4}[ ]){5}[a-z0-9]{4})(?![\w\-])""",
    ),
    structure(
        "secret",
        "otp|2fa|authenticator",
        r"(?:t?otp|2fa|authenticator)\b[^\n:=]{0,20}?(?:secret|key|seed|schlüssel|geheimnis)[ ](?P<value>(?-i:(?=[A-Z]*[2-7])[A-Z2-7]{16,64}+))\b",
    ),
    structure(
        "secret",
        "otp|2fa|authenticator",
        r"""(?:t?otp|2fa|authenticator)\b[^\n:=]{0,20}[:=]\s{0,4}(?P<value>(?-i:[A-Z2-7]{16,64}+|(?:[A-Z2-7]{4}[ ]){3,15}[A-Z2-7]{4}|
            (?=[a-z ]{0,40}[2-7])(?:[a-z2-7]{4}[ ]){3,15}[a-z2-7]{4}))\b""",
    ),
    structure(
        "seed_phrase",
        "seed|mnemonic|recovery phrase|wiederherstellung|récupération|recuperación|semilla",
        rf"{_SEED}\b{_IS}(?P<value>[a-z]{{3,8}}(?:[ ][a-z]{{3,8}}){{11,23}})\b",
    ),
    structure(
        "seed_phrase",  # numbered
        "seed|mnemonic|recovery phrase|wiederherstellung|récupération|recuperación|semilla",
        rf"{_SEED}\b{_IS}1[.)][ ]?(?P<value>[a-z]{{3,8}}(?:,?\s{{1,3}}\d{{1,2}}[.)][ ]?[a-z]{{3,8}}){{11,23}})\b",
    ),
    structure(
        "private_key",
        "private key|private_key|privatekey|privater schlüssel|clé privée|clave privada",
        r"(?:private[ _]?key|privater[ ]schlüssel|clé[ ]privée|clave[ ]privada)\W{1,4}(?:(?:is|ist|est|es)[ ])?(?P<value>(?:0x)?[a-f0-9]{64})(?![a-f0-9])",
    ),
    structure(
        "secret",
        "$ansible_vault",
        r"\$ANSIBLE_VAULT;[\d.]{3};AES256[^\n]{0,40}\n(?P<value>(?:[ \t]{0,20}[0-9a-f]{1,80}\n?){1,400}+)",
        after=34_000,
    ),
)  # fmt: skip
