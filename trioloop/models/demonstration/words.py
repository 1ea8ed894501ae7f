"""The little English that the demonstration model knows, as tables and one crude stemmer."""

import re
from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOPWORDS = _words(
    "a an the this that these those some any each every all i me my we us our you your he she it "
    "its they them their is are was were be been being am do does did can could will would shall "
    "should may might must have has had of in on at to for from by with about into onto as and or "
    "but if then than so too also just now please kindly thanks thank hi hello hey what what's "
    "whats which who whom whose when where why how tell show give let get want need like know "
    "use using call run tool tools function value values set there here it's i'm i'd let's out up "
    "not no don't without via one's right ok okay well really very much many question answer "
    "explain say make take put"
)
ARTICLES = _words("the a an my your our its this that")
CONNECTORS = _words("= : is are was of to as at be being equals equal named called set -> =>")
NEGATIONS = _words("no not without don't dont never disable disabled skip off isn't")
YES = _words("true yes on enabled")
NO = _words("false no off disabled")
PREPOSITIONS = _words(
    "of in on at to for from by with about into near named called as over around regarding "
    "until between"
)
OPENING_WORDS = PREPOSITIONS | _words(
    "the a an is are was were be there this that these me it please up out text"
)
LEADS_FROM = _words("from between #")
LEADS_TO = _words("to into in many much as until")
BACK_REFERENCES = _words("it that this result answer them those")

_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
NUMBERS = {word: number for number, word in enumerate(_SMALL_NUMBERS.split())} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "hundred": 100,
    "dozen": 12,
}

_MONTH_NAMES = (
    "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug "
    "september/sep october/oct november/nov december/dec"
)
MONTHS = {
    name: number
    for number, names in enumerate(_MONTH_NAMES.split(), start=1)
    for name in names.split("/")
}

_THESAURUS = (
    "add plus sum total +",
    "subtract minus difference less -",
    "multiply times product *",
    "divide quotient /",
    "calculate compute arithmetic expression evaluate math calculator",
    "temperature warm hot cold weather degree",
    "count number",
    "date today day calendar",
    "time clock hour",
    "convert unit conversion",
    "file path document",
    "folder directory",
    "delete remove erase",
    "search find look lookup query",
    "write save store",
    "read open load",
    "send mail email message",
)
_SUFFIXES = (
    *("ations", "ation", "itions", "ition", "ators", "ator", "ions", "ion", "ings", "ing"),
    *("ies", "ers", "ed", "es", "y", "s", "e"),
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without its ending, so that `cities` meets `city`."""
    word = word.lower().removesuffix("'s").removesuffix("\u2019s")
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


_UNIT_LINES = (
    "km kilometre kilometer",
    "m metre meter",
    "cm centimetre centimeter",
    "mm millimetre millimeter",
    "mi mile",
    "ft foot feet",
    "in inch",
    "yd yard",
    "kg kilogram kilo",
    "g gram",
    "lb pound",
    "oz ounce",
    "l litre liter",
    "gal gallon",
    "s second sec",
    "min minute",
    "h hour hr",
    "d day",
    "c celsius centigrade °c",
    "f fahrenheit °f",
    "k kelvin",
)
UNITS = {stem(spelling): line.split()[0] for line in _UNIT_LINES for spelling in line.split()}


def split_name(name: str) -> tuple[str, ...]:
    """The words of an identifier: `maxResults`, `max_results` and `max-results` are two words."""
    return tuple(part.lower() for part in _CAMEL.findall(name)) or (name.lower(),)


def is_content(word: str) -> bool:
    """Whether a word may tell what a question is about."""
    return word.lower() not in STOPWORDS


_MEANINGS: dict[str, frozenset[str]] = {}
for _line in _THESAURUS:
    _group = frozenset(stem(word) for word in _line.split())
    for _word in _group:
        _MEANINGS[_word] = _MEANINGS.get(_word, frozenset()) | _group


def alike(one: str, other: str) -> bool:
    """Whether two stems are of one word: equal, or one of four letters or more begins the other."""
    return one == other or (
        min(len(one), len(other)) >= 4 and (one.startswith(other) or other.startswith(one))
    )


def meanings(stemmed: str) -> frozenset[str]:
    """A stem with those that mean about the same."""
    return _MEANINGS.get(stemmed, frozenset()) | {stemmed}
