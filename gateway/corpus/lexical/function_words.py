"""Words that carry grammar, not meaning, per language.

They make up a third of running text, so they would fill the postings, lengthen every chunk and, in a question typed as
a sentence, outvote the words that matter. `terms` marks them; it never throws them away, because a query may consist
of nothing else. Short on purpose: articles, prepositions, conjunctions, plain pronouns and the copula, no verbs, no
question words. English is the 33-word set that most BM25 engines start from, so that figures compare, plus "I" and two
abbreviations that their tokenisers drop for other reasons.
"""

_WORDS: dict[str, str] = {
    "en": """a an and are as at be but by e.g for i i.e if in into is it no not of on or such that the their then there these
        they this to was will with""",
    "de": """aber als am an auch auf aus bei das dass dem den der des die dies diese diesem diesen dieser dieses d.h doch
        durch ein eine einem einen einer eines er es für hat im in ist mit nach nicht noch nur oder sich sie sind so
        um und unter vom von vor war waren wie wird werden z.b zu zum zur über""",
    "fr": """à au aux avec ce ces cet cette comme dans de des du elle elles en est et eux il ils je la le les leur
        leurs lui mais ne nous on ou où par pas pour qu que qui sa se ses son sont sur te tu un une vous y été""",
    "es": """a al como con de del desde el ella ellas ellos en entre era es esta este esto ha la las le les lo los más
        me ni no o para pero por que se sea si sin sobre son su sus te un una y ya""",
    "it": """a ad ai al alla alle allo anche che ci come con da dai dal dalla dalle degli dei del della delle dello di
        e ed era gli ha i il in la le lo ma nei nel nella nelle non o per più se si sono su sui sul sulla sulle tra un
        una uno è""",
    "pt": """a ao aos as com como da das de do dos e ela elas ele eles em entre era essa esse esta este foi há isso
        já mais mas na nas não no nos o os ou para pela pelas pelo pelos por que se sem ser seu seus sua suas são um
        uma à às é""",
    "nl": """aan al als bij dan dat de der deze die dit door een en er had heeft het hij in is je maar met naar niet
        nog of om onder ook op over te tot uit van voor want waren was werd wordt ze zich zij zijn zo""",
    "sv": """att av de dem den denna det detta din du där efter eller en ett från för ha han har hon i icke inte jag
        kan men med när och om på sig sin som så till under ut var vid vi är över""",
    "da": """af alle at blev de dem den denne der det dette dig din du efter eller en er et for fra ham han har hende
        hun i ikke jeg kan med men og om op over på sig sin skal som så til ud under var ved vi vil""",
    "no": """at av da de den denne det dette du eller en er et etter for fra han har hun i ikke jeg kan med men mot når
        og om opp over på seg sin skal som så til under ut var ved vi vil å""",
    "ru": """а бы был была были было в во вот да для до его ее если ещё же за и из или их к как ко ли мы на не но о
        об он она они оно от по при с со так то только ты у уже что это я""",
}

# Function words of one language that carry meaning in another: German "war", French "but", Dutch "door". Where a
# mandate holds both languages, a query keeps them.
HOMOGRAPHS = frozenset(
    """ai but by com come con den die dig din door dos era ham hat hun is mas men mit not or over par para per pour sea
    sin so sobre son sui these under var war want will""".split()  # noqa: SIM905 prose reads better
)

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _WORDS.items()
}
