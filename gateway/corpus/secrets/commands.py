"""Passwords on the command line and in the lines of code that log in: the program says which argument is one."""

from gateway.corpus.secrets.forms import is_given, is_no_word, is_strong, structure

_VALUE = r"""["']?(?P<value>[^\s"'|]{3,256})"""
_QUOTED = r"""["'](?P<value>[^"'\n]{3,256})["']"""
_ARGUMENTS = r"[ ][^\n]{0,200}?"

COMMANDS = (
    structure(
        "password",
        "curl ",
        r"""\bcurl[ ][^\n]{0,400}?(?:-u|--user|--proxy-user)[ =]{1,2}["']?[^\s:"']{1,64}:(?P<value>[^\s"']{1,256})""",
        is_given,
        after=800,
    ),
    structure(
        "password",
        "http ",
        rf"\bhttps?{_ARGUMENTS}(?:-a|--auth)[ =][\"']?[^\s:\"'/]{{1,64}}:(?P<value>[^\s\"'/@]{{3,256}})",
        is_strong,
        after=600,
    ),
    structure("password", "sshpass", rf"sshpass[ ]+-p[ ]*{_VALUE}", is_given),
    structure(
        "password",
        "mysql",
        rf"mysql\w{{0,16}}{_ARGUMENTS}[ ]-p(?!ort\b|rotocol\b|ager\b){_VALUE}",
        is_given,
    ),
    structure("password", " login ", rf"\b(?:docker|podman|az|oc|skopeo|helm)\b[^\n]{{0,40}}?[ ]login{_ARGUMENTS}[ ]-p[ ]+{_VALUE}", is_given),
    structure("password", "mongo", rf"\bmongo(?:sh|dump|restore|export|import)?{_ARGUMENTS}[ ]-p[ ]+{_VALUE}", is_given),
    structure("password", "redis-cli", rf"\bredis-cli{_ARGUMENTS}(?:-a|--pass)[ ]+{_VALUE}", is_given),
    structure("password", "requirepass|masterauth", rf"(?:\A|\n)[ ]*(?:requirepass|masterauth)[ ]+{_VALUE}[\"']?[ ]*(?=\n|\Z)", is_given),
    structure("password", "ldapsearch|ldapmodify|ldapadd|ldapwhoami", rf"\bldap(?:search|modify|add|whoami){_ARGUMENTS}-w[ ]+{_VALUE}", is_given),
    structure("password", "openssl ", rf"\bopenssl{_ARGUMENTS}[ ](?:-k[ ]+|-pass(?:in|out)?[ ]+pass:){_VALUE}", is_strong, after=600),
    structure("password", "zip ", rf"\b(?:un)?zip{_ARGUMENTS}(?-i:-P)[ ]*{_VALUE}", is_strong),
    structure("password", "7z ", rf"\b7z[ ][axetlu]{_ARGUMENTS}[ ](?-i:-p){_VALUE}", is_strong),
    structure("password", "storepass|keypass", rf"-(?:src|dest)?(?:store|key)pass[ ]+{_VALUE}", is_given),
    structure("password", "sqlplus ", r"\bsqlplus[ ]+(?:-\w+[ ]+){0,4}[\w$]{1,32}/(?P<value>[^@\s\"'/]{3,128})@", is_given),
    structure("password", "db2 connect", rf"\bdb2[ ]connect[^\n]{{0,120}}?[ ]using[ ]+{_VALUE}", is_given),
    structure("password", "net use ", rf"\bnet[ ]use{_ARGUMENTS}/user:\S{{1,64}}[ ]+(?!/){_VALUE}", is_strong),
    structure("password", "net user ", rf"\bnet[ ]user[ ](?!/)\S{{1,64}}[ ]+(?![/*]){_VALUE}", is_strong),
    structure("password", "convertto-securestring", rf"convertto-securestring[ ]+(?:-string[ ]+)?{_QUOTED}", is_given),
    structure(
        "password",
        "htpasswd -",
        r"""htpasswd[ ]+-[a-z]{0,4}b[a-z]{0,4}[ ](?:[^\s|>;&]{1,128}[ ]+){1,4}["']?(?P<value>[^\s"'|>;&]{3,128})["']?[ ]*(?=[|>;&\n]|\Z)""",
        is_given,
    ),
    structure("password", "chpasswd", r"[\"'\s][\w.\-]{1,32}:(?P<value>[^\s\"'|:]{3,128})[\"']?\s*\|\s*(?:sudo[ ])?chpasswd", is_given, before=240),
    structure(
        "password",  # said to a program that reads it
        "sudo -s|--stdin|-stdin",
        r"""\b(?:echo|printf)[ ]+(?:-n[ ]+)?["']?(?P<value>[^\s"'|]{3,256})["']?\s*\|\s*
            (?:sudo[ ]+-S\b|[^\n|]{0,160}?--pass(?:word|phrase)?-stdin|[^\n|]{0,40}?passwd[ ]+--stdin)""",
        is_given,
        before=480,
        after=40,
    ),
    structure("secret", "gh secret set", rf"\bgh[ ]secret[ ]set[ ]\S{{1,64}}{_ARGUMENTS}(?:--body|-b)[ =]{_VALUE}", is_strong),
    structure("secret", "snmp", rf"\bsnmp-server[ ]community[ ]+(?!public|private){_VALUE}", is_given),
    structure("secret", "snmp", rf"\bsnmp(?:get|walk|bulkwalk|set){_ARGUMENTS}-c[ ]+(?!public|private){_VALUE}", is_given),
    structure(
        "password",  # user and password, one after the other
        "auth=|auth:|auth =|basicauth(|digestauth(|networkcredential(|passwordcredential",
        rf"""(?:\bauth\s{{0,3}}[=:]\s{{0,3}}[(\[]|(?:Http)?(?:Basic|Digest)Auth\(|NetworkCredential\(|PasswordCredentials?\()
             \s{{0,3}}["'][^"'\n]{{1,64}}["']\s{{0,3}},\s{{0,3}}{_QUOTED}""",
        is_given,
    ),
    structure(
        "password",  # typed into a field by a test
        ".type(|.fill(|.send_keys(|.sendkeys(|.setvalue(",
        rf"""passw[\w\-]{{0,20}}["'\]`)]{{1,4}}\s{{0,4}}\.(?:type|fill|send_?keys|setvalue)\(\s{{0,3}}{_QUOTED}""",
        is_given,
        before=120,
    ),
    structure(
        "password",  # the answer to a question
        "passw|kennwort|mot de passe|contraseña|pw?|pwd?|mdp?",
        r"""(?:passw(?:or[dt])|kennwort|mot[ ]de[ ]passe|contraseña|\bpwd?|\bmdp)[ ]?\?\s{1,4}(?:[\w.\-]{1,24}:[ ])?
            ["'`]?(?P<value>[^\s"'`,;|]{6,64})(?=[\s.,;"'`]|\Z)""",
        is_no_word,
        after=140,
    ),
)  # fmt: skip
