"""Passwords on the command line, codes and keys that are not called passwords, and hashes of every make."""

import pytest

from gateway.corpus.secrets import find_secrets

_HEX = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
_MIXED = "k7Qz2Wm9Rt4Xy6Bv1Nc8Pd3Fg5Hj0Ls7Au2Ei"
_WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"

COMMANDS = {
    "http -a anna:Quitte77x GET host.example": "Quitte77x",
    "docker login -u anna -p Quitte77x registry.example": "Quitte77x",
    "az login --service-principal -u id -p Quitte77x --tenant t": "Quitte77x",
    "mongosh --host db -u admin -p quitte --authenticationDatabase admin": "quitte",
    "redis-cli -h cache -a quitte ping": "quitte",
    "requirepass quitte\nport 6379": "quitte",
    "ldapsearch -x -D cn=admin,dc=firma -w quitte -b dc=firma": "quitte",
    "openssl enc -aes-256-cbc -k Quitte77x -in a -out b": "Quitte77x",
    "openssl rsa -in k.pem -passin pass:Quitte77x": "Quitte77x",
    "zip -P Quitte77x out.zip a b": "Quitte77x",
    "7z x archive.7z -pQuitte77x": "Quitte77x",
    "keytool -list -keystore x.jks -storepass quitte": "quitte",
    "sqlplus scott/quitte@orcl": "quitte",
    "db2 connect to x user app using quitte": "quitte",
    r"net use Z: \\nas\share /user:anna Quitte77x": "Quitte77x",
    "net user anna Quitte77x /add": "Quitte77x",
    'ConvertTo-SecureString "quitte" -AsPlainText -Force': "quitte",
    "htpasswd -bc .htpasswd anna quitte": "quitte",
    "echo 'anna:quitte' | chpasswd": "quitte",
    "echo quitte | sudo -S apt update": "quitte",
    "echo quitte | docker login -u anna --password-stdin": "quitte",
    "gh secret set TOKEN --body Quitte77x": "Quitte77x",
    "snmp-server community quitte RO": "quitte",
    "requests.get(url, auth=('anna', 'quitte'))": "quitte",
    'HTTPBasicAuth("anna", "quitte")': "quitte",
    "cy.get('#password').type('quitte')": "quitte",
    "driver.find_element(By.ID, 'password').send_keys('quitte')": "quitte",
    "anna: what is the password?\nbob: Quitte77x": "Quitte77x",
    "Wie ist das Passwort? Quitte!7": "Quitte!7",
}
SETTINGS = {
    "db.host.example:5433:shop:anna:quitte": "quitte",
    '{"auths": {"https://registry.example/": {"auth": "YW5uYTpTdXAzckdlaGVpbSE="}}}': "YW5uYTpTdXAzckdlaGVpbSE=",
    "_auth=YW5uYTpTdXAzckdlaGVpbSE=": "YW5uYTpTdXAzckdlaGVpbSE=",
    'variable "db_password" {\n  default = "quitte"\n}': "quitte",
    "<keyMaterial>quitte77</keyMaterial>": "quitte77",
    "Driver={ODBC Driver 18};Server=db;UID=sa;PWD={Quitte77x};": "Quitte77x",
    "GET /x?body=%22password%22%3A%22quitte%22 HTTP/1.1": "quitte",
    "postgres://app:ab/Quitte77x@db/x": "ab/Quitte77x",
    f"https://host.example/?jwt={_MIXED}": _MIXED,
    f'Authorization: Digest username="anna", realm="x", response="{_HEX}"': _HEX,
    f"Cookie: .AspNetCore.Identity.Application={_MIXED}": _MIXED,
    "access_token$production$" + f"{_MIXED[:16].lower()}${_HEX}": _HEX,
    "Login: admin / Ostern#26": "Ostern#26",
    "Zugangsdaten:\nanna\nOstern#26\n": "Ostern#26",
    "[Ostern#26] is the password": "Ostern#26",
}
CODES = {
    "Recovery codes:\n4f7a-91bc\n8d2e-66f0\n": "4f7a-91bc\n8d2e-66f0",
    "GitHub recovery codes\n\n1. a1b2c-3d4e5\n2. f6g7h-8i9j0\n": "a1b2c-3d4e5\n2. f6g7h-8i9j0",
    "Backup-Codes: 8374 9921, 1029 3847": "8374 9921, 1029 3847",
    "Codes de secours : 8374-9921 1029-3847": "8374-9921 1029-3847",
    "Códigos de recuperación: 8374-9921, 1029-3847": "8374-9921, 1029-3847",
    "Wiederherstellungscodes:\n- 83749921\n- 10293847": "83749921\n- 10293847",
    "BitLocker recovery key: " + "-".join(["733947"] * 8): "-".join(["733947"] * 8),
    "Wiederherstellungsschlüssel:\n" + "-".join(["733947"] * 8): "-".join(["733947"] * 8),
    "Product key: AIFEN-CRBDR-YB40Q-7FOAB-NKEMK": "AIFEN-CRBDR-YB40Q-7FOAB-NKEMK",
    "App password: abcd efgh ijkl mnop": "abcd efgh ijkl mnop",
    "Application password: aB3d eF6g hI9j kL2m nO5p qR8s": "aB3d eF6g hI9j kL2m nO5p qR8s",
    "Authenticator-Schlüssel: jbsw y3dp ehpk 3pxp": "jbsw y3dp ehpk 3pxp",
    f"My wallet's mnemonic is {_WORDS}": _WORDS,
    "Seed:\n" + " ".join(f"{n}. {w}" for n, w in enumerate(_WORDS.split(), 1)): " ".join(
        f"{n}. {w}" for n, w in enumerate(_WORDS.split(), 1)
    )[3:],
    f"private key 0x{_HEX * 2}": f"0x{_HEX * 2}",
}
SAID = {
    "Das Paßwort lautet Ostern#26": "Ostern#26",
    "mot\u00a0de\u00a0passe\u202f: Ostern#26": "Ostern#26",
    "Le mot de passe du wifi, c'est Ostern#26": "Ostern#26",
    "Code wifi : Ostern#26": "Ostern#26",
    "Clé de sécurité réseau : Ostern#26": "Ostern#26",
    "La clave es Ostern#26": "Ostern#26",
    "Das PW ist Ostern#26": "Ostern#26",
    "the root password's Blauwal77": "Blauwal77",
    "P/W: Ostern#26": "Ostern#26",
    "Pwd.: Ostern#26": "Ostern#26",
    "Passwort (bitte ändern!): Ostern#26": "Ostern#26",
    "The password is\nOstern#26 and it expires.": "Ostern#26",
    "> Das Passwort lautet\n> Ostern#26": "Ostern#26",
    "Der Türcode ist 4711": "4711",
    "<b>Password:</b> Ostern#26": "Ostern#26",
    "<strong>Password</strong>: <span>Ostern#26</span>": "Ostern#26",
    "<dt>Password</dt><dd>Ostern#26</dd>": "Ostern#26",
    "<tr><td>Kennwort</td>\n<td>Ostern#26</td></tr>": "Ostern#26",
    "Password: <code>Ostern#26</code>": "Ostern#26",
    "<password><![CDATA[Ostern#26]]></password>": "Ostern#26",
    "userPassword:: T3N0ZXJuIzI2": "T3N0ZXJuIzI2",
}
HASHES = (
    f"pbkdf2_sha256$600000${_MIXED[:22]}${_MIXED}abcdef=",
    f"scrypt:32768:8:1${_MIXED[:16]}${_HEX * 4}",
    f"$P$B{_MIXED[:30]}",
    f"SCRAM-SHA-256$4096:{_MIXED[:22]}==${_MIXED}abcdef=:{_MIXED}abcdef=",
)


@pytest.mark.parametrize(("text", "value"), (COMMANDS | SETTINGS | CODES | SAID).items())
def test_what_opens_something_is_found_exactly(text: str, value: str):
    assert [text[start:end] for start, end, _ in find_secrets(text)] == [value]


@pytest.mark.parametrize("hashed", HASHES)
def test_a_hashed_password_is_found(hashed: str):
    assert any(
        hashed[-16:] in f"anna:{hashed}:x"[start:end] for start, end, _ in find_secrets(f"anna:{hashed}:x")
    )


TABLES = {
    'system,note,password\nCRM,"a, b",Ostern#26\nERP,x,Blauwal77': ["Ostern#26", "Blauwal77"],
    "System   User    Password\nCRM      anna    Ostern#26\nERP      bob     Blauwal77\n": [
        "Ostern#26",
        "Blauwal77",
    ],
    "====== ==========\nuser   password\n====== ==========\nanna   Ostern#26\n====== ==========\n": [
        "Ostern#26"
    ],
    "User    Old password    New password\nanna    Ostern#26       Blauwal77\n": ["Ostern#26", "Blauwal77"],
    "+------+----------+\n| user | password |\n+------+----------+\n| anna | zander |\n+------+----------+": [
        "zander"
    ],
    "│ user │ password │\n├──────┼──────────┤\n│ anna │ Ostern#26 │\n└──────┴──────────┘": ["Ostern#26"],
    "| user | password |\n|------+----------|\n| anna | Ostern#26 |": ["Ostern#26"],
    "| System | Login/Passwort |\n|---|---|\n| CRM | anna / Ostern#26 |": ["Ostern#26"],
    "| Dienst | Zugangsdaten |\n|---|---|\n| CRM | anna / Ostern#26 |": ["Ostern#26"],
    "| User | Old password | New password |\n|---|---|---|\n| anna | Ostern#26 | Blauwal77 |": [
        "Ostern#26",
        "Blauwal77",
    ],
    "| Passwort (neu) | User |\n|---|---|\n| Blauwal77 | anna |": ["Blauwal77"],
    "| Accounts | 2026 |\n| User | Password |\n|---|---|\n| anna | zander |": ["zander"],
    "INSERT INTO users (name, password) VALUES ('anna', 'zander'), ('bob', 'Blauwal77');": [
        "zander",
        "Blauwal77",
    ],
    "passwords:\n  - Ostern#26\n  - Blauwal77\nport: 1": ["Ostern#26", "Blauwal77"],
    "| New password | zander |\n| Host | server1 |": ["zander"],
    '"passwords": ["Ostern#26", "Blauwal77"]': ["Ostern#26", "Blauwal77"],
}


@pytest.mark.parametrize(("text", "values"), TABLES.items())
def test_a_column_is_read_however_it_is_drawn(text: str, values: list[str]):
    assert [text[start:end] for start, end, _ in find_secrets(text)] == values


def test_an_encrypted_vault_is_found():
    lines = "\n".join([_HEX + _HEX] * 3)
    (span,) = find_secrets(f"$ANSIBLE_VAULT;1.1;AES256\n{lines}\nnext: 1\n")
    assert span.end - span.start >= len(lines)


@pytest.mark.parametrize(
    "text",
    [
        "docker login -u me -p $TOKEN registry.example",
        "echo $PASSWORD | docker login -u anna --password-stdin",
        "requirepass is set in the settings of the cache",
        "zip -P asks for nothing, unzip -p prints a member",
        "mysql -port 3306, mysqldump -protocol tcp",
        "openssl enc -k file -in a and openssl rsa -passin env:PASS",
        "net user experience value and net use of the grid",
        "requests.get(url, auth=(user, token))",
        "auth=('user', 'pass')",
        "What is the password? Nobody knows it.",
        'f"password={password!r}" and PWD={pwd}',
        "The recovery codes are stored in 2 places since 2024.",
        "Backup codes:\n2024-11-19 created, see page 12",
        "Recovery codes: see chapter 2024 below",
        "Product key figures 2024-2026 and the licence key of the map",
        "The seed phrase is what you write down on paper and keep in a safe place for later",
        ".. _Credentials Grant: https://host.example/rfc6749#section-4.3",
        "Login with Google / OAuth2 or with a password",
        "snmpwalk -v2c -c public switch",
        "#define EN_TOKEN 0x04EC",
        "Token: '#dcdccc'",
        "my $pwd = $ftp->pwd;",
        ":type credential: ~azure.core.credentials.AzureKeyCredential",
        "The password is\nrequired, and the password's length is 12 characters.",
        "| Field | Type | Required |\n|---|---|---|\n| password | string | yes |\n| token | uint64 | no |\n| delivery | int | no |",
        "| Champ | Description |\n|---|---|\n| mot de passe | 8 caractères minimum |\n| moteur | facultatif |",
        "Feld\tTyp\tPflicht\npassword\tvarchar60\tja\nlieferung\tint\tnein",
        "| Password policy | Version |\n|---|---|\n| Blauwal77 | A1b2c3 |",
        "Tokens   Model\n4096     gpt4o-mini2\n",
        "INSERT INTO users (name, password) VALUES ('Blauwal77', NULL), ('Ostern26', '');",
        'token_variants = ["+i6t-inline", "+i6t-use-option"]',
        "SECRET_KEY, PKCS11_OBJ_X509_CRT_EXTENSION",
        "The clave es una palabra, the pass is closed",
    ],
)
def test_what_only_speaks_of_it_is_left_alone(text: str):
    assert find_secrets(text) == []
