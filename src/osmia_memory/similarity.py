"""What two texts about code have in common: terms for an index, and whether two sentences say the same.

Knows nothing about storage, ranking or models. Standard library only, no state; every function is pure.

A term is lower case. A word gives its stem; a compound (path, identifier, flag, version) gives itself whole and its parts, so that
`internal/auth/auth.go` is found by its name, its folder and the word "auth". Stop words give nothing.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from osmia_memory.models import Fact

# Function words and words that every task text contains; a match on them alone says nothing.
STOP_WORDS: frozenset[str] = frozenset(
    """
    a about above after again against all almost alone along already also although always am among an and another any anyone anything are
    around as ask at away back be became because become been before behind being below beside besides between both bring but by came can cannot
    come could did do does doing done down due during each either else enough etc even ever every everything few find first for found from
    further get gets getting give given gives go goes going gone got had has have having he hence her here hers him his how however i if in
    indeed instead into is isn it its itself just keep keeps kept know last later least less let like likely made make makes making many may
    maybe me mean means might mine more most much must my near need needed needs neither never new next no none nor not nothing now of off often
    on once one only onto or other others otherwise our ours out over own per perhaps please put quite rather really same say see seem seems
    several shall she should show shows since so some someone something sometimes soon still such sure take taken takes than that the their
    them then there these they thing things this those though three through thus to together too toward towards two under until up upon us use
    used uses using usually very via want wants was way we well went were what whatever when where whether which while who whole whom whose why
    will with within without would yet you your yours don doesn didn won wasn aren hasn haven couldn wouldn shouldn ll ve re
    """.split()
)

# Words of nearly every task on code: they rank, but they do not show that a fact belongs to a task.
GENERIC_WORDS: frozenset[str] = frozenset(
    """
    add added adds allow available bug change changed changes check code create current default different error errors example expected
    explain fail failed failing fails failure feature file files fix fixed fixes function handle helper implement improve issue line lines
    method missing name names number option options output path paths possible problem project provide read remove replace report repository
    result results return returns right run running runs set setting source support test tested testing tests text time try type update user
    users value values version work working works write wrong
    """.split()
)

GENERIC_WEIGHT = 0.5
TITLE_WEIGHT = 1.5

# Short forms that developers write for the same word.
_SHORT_FORMS: Mapping[str, str] = dict(
    pair.split("=")
    for pair in """
    args=argument arg=argument auth=authenticate cmd=command configuration=config conf=config cfg=config db=database deps=dependency
    dep=dependency dir=directory dirs=directory folder=directory folders=directory doc=document docs=document documentation=document
    env=environment lib=library libs=library param=parameter params=parameter perf=performance pkg=package repo=repository repos=repository
    tmp=temporary temp=temporary
    """.split()
)

_CHUNK = re.compile(r"[^\s`'\"()\[\]{}<>,;|!?“”‘’…]+")
_NAME = re.compile(r"[\w-]+")  # what a path, a dotted name or an assignment is made of
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+")  # of a camel-case word; other scripts are left whole
_PLAIN = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+")
_EXTENSION = re.compile(
    r"\.(?:py|pyi|go|rs|ts|tsx|js|jsx|mjs|java|kt|rb|c|h|cc|cpp|cs|sh|sql|md|rst|txt|json|jsonl|ya?ml|toml|cfg|ini|html|css|xml|lock|mod|sum)$"
)
_PATH_PREFIX_PARTS = 6

# Suffix and what stays of it, the longer before the shorter.
_SUFFIXES = tuple(
    (suffix, rest)
    for rest, suffixes in (
        ("iz", "ization isation izing ising izers izer ized ised izes ize ise"),
        ("at", "ational ations ation ators ator ating ated ates ate"),
        ("ic", "ically"),
        ("y", "ications ication iers ier ied ies"),
        (
            "",
            "ements ement ments ment nesses ness ities ity ingly edly ables able ibles ible fully ful ions ion ings ing ers er ed ly es s e",
        ),
    )
    for suffix in suffixes.split()
)
_ANY_SUFFIX = tuple(suffix for suffix, _ in _SUFFIXES)


def stem(word: str) -> str:
    """The part that the forms of an English word share: "migrations" and "migrate" give "migrat". Shorter than 4 letters: unchanged."""
    if len(word) < 4 or not word.isascii() or word.endswith(("ss", "us", "is")):
        return word
    for suffix, left in _SUFFIXES if word.endswith(_ANY_SUFFIX) else ():
        if word.endswith(suffix) and len(word) - len(suffix) + len(left) >= 3:
            word = word[: -len(suffix)] + left
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word


@lru_cache(maxsize=1 << 16)
def _word_terms(lowered: str) -> tuple[str, ...]:
    if lowered in STOP_WORDS or (len(lowered) < 2 and lowered.isascii()):
        return ()
    return (stem(_SHORT_FORMS.get(lowered, lowered)),)


@lru_cache(maxsize=1 << 16)
def _chunk_terms(chunk: str) -> tuple[str, ...]:
    chunk = chunk.rstrip(".:-=*/").lstrip("*.:=/#")
    lowered = chunk.lower()
    if _PLAIN.fullmatch(chunk):
        return _word_terms(lowered)
    if lowered.isdigit():
        return (lowered,) if len(lowered) >= 3 else ()
    if chunk.isalpha() and not chunk.isascii():
        return _word_terms(lowered)
    names = _NAME.findall(chunk)
    words = _WORD.findall(_EXTENSION.sub("", chunk))
    whole = {lowered, *(n.lower().strip("_-") for n in names), *(w.lower() for w in words), *_folders(lowered)}
    found = [term for term in whole if not _PLAIN.fullmatch(term) and len(term) > 1 and not term.isdigit()]
    for word in words:
        for part in [word] if _PLAIN.fullmatch(word) else _PART.findall(word):
            found.extend(_word_terms(part.lower()))
    camel = [w.lower() for w in words if w.isalpha() and w.isascii() and not _PLAIN.fullmatch(w)]
    return tuple(sorted(found + camel))


def _folders(path: str) -> Iterator[str]:
    """The leading folders of a path and its file, so that a task that names a folder finds what is in it."""
    parts = [part for part in path.split("/") if part]
    for n in range(2, min(len(parts), _PATH_PREFIX_PARTS)):
        yield "/".join(parts[:n])
    if len(parts) > 1:
        yield parts[-1]


GENERIC_TERMS: frozenset[str] = frozenset(stem(word) for word in GENERIC_WORDS)


_COMPOUND = re.compile(r"[_./:=@\\#]|[^\W\d]\d|\d[^\W\d]|^-")


def is_compound(term: str) -> bool:
    """Whether a term is a path, dotted or snake-case name, flag or version rather than a word, a number or a hyphenated word."""
    return _COMPOUND.search(term) is not None


def telling(weights: Mapping[str, float]) -> frozenset[str]:
    """The terms of a query that few tasks share: without words such as "add", "fix" or "test"."""
    return frozenset(term for term in weights if term not in GENERIC_TERMS)


# Words of software work that everyday texts hardly hold; those with an everyday meaning (file, class, branch, form) are left out.
_CODE_WORDS = frozenset(
    stem(word)
    for word in """
    api cli http https url json yaml toml xml html css sql regex unicode ascii utf endpoint backend frontend database schema migration config
    configuration env parser parse parsing compiler compile syntax runtime exception traceback stacktrace segfault deadlock timeout async callback
    handler middleware serializer serialize deserialize encoding decode cache daemon cron commit rebase repo repository git docker kubernetes
    deploy deployment linter lint typecheck mypy pytest unittest mock dependency module function method subclass decorator kwarg parameter
    boolean integer tuple dict array null nan pointer struct enum stdout stderr stdin filesystem directory symlink auth authentication oauth jwt
    csrf websocket tcp webhook payload pagination refactor deprecate deprecated typo docstring readme changelog queryset orm sqlite postgres mysql
    redis javascript typescript python golang rust django flask react npm crash bug bugfix regression codebase debug debugger latex
    """.split()
)
_CODE_TOKEN = re.compile(
    r"`[^`\n]+`|(?<![\w-])--[a-z][\w-]+|\b\w+\(\)|\b[A-Za-z]\w*_\w+|\b[\w/-]+\.(?:py|go|rs|tsx?|jsx?|java|kt|rb|c|cc|cpp|h|cs|php|swift|sql|sh|toml|ya?ml|json)\b"
    r"|\b[a-z]{2,}[A-Z]\w+|\b[A-Z]\w*(?:Error|Exception|Warning)\b"
)


def signs_of_code(text: str) -> int:
    """How much a task reads like software work: 2 for a name, flag or path of code in it, 1 for each word that hardly occurs elsewhere."""
    return 2 * bool(_CODE_TOKEN.search(text)) + len(_CODE_WORDS & terms(text).keys())


def terms(text: str) -> Counter[str]:
    """How often each term occurs in `text`."""
    found: Counter[str] = Counter()
    for chunk in _CHUNK.findall(text):
        found.update(_chunk_terms(chunk))
    return found


def forget_terms() -> None:
    """Empty the caches of terms; for measurements that vary the word lists."""
    _word_terms.cache_clear()
    _chunk_terms.cache_clear()


def index_terms(fact: Fact) -> Mapping[str, int]:
    """The terms under which a fact is found, with their frequency: its text, its anchors and its claim's subject."""
    found = terms(fact.content)
    for anchor in fact.anchors:
        found.update(terms(anchor.partition(":")[2]))
    if fact.claim is not None:
        found.update(terms(fact.claim.subject))
    return found


def query_terms(text: str) -> Mapping[str, float]:
    """The terms of a task's text with their weight: 1, less for words of nearly every task, more for those of the title.

    The title is the first line, if others follow.
    """
    title, _, body = text.strip().partition("\n")
    in_title = terms(title) if body.strip() else Counter()
    return {term: (GENERIC_WEIGHT if term in GENERIC_TERMS else 1.0) * (TITLE_WEIGHT if term in in_title else 1.0) for term in terms(text)}


# --- same text ---------------------------------------------------------------------------------------------------------

_MARKS = re.compile(r"`+|\*\*?(?=\S)|(?<=\S)\*\*?|(?<![\w/])__?(?=\w)|(?<=\w)__?(?![\w/])")
_LIST_MARK = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))


def plain_form(text: str) -> str:
    """A text as a reader hears it: without marks of Markdown, list or quotation, and with one form of each letter, dash and space.

    Equal forms are one statement. Letter case counts in names of code alone.
    """
    folded = unicodedata.normalize("NFKC", text).translate(_DASHES)
    marked = {m.strip("`") for m in re.findall(r"`[^`]+`", folded)}
    words = _MARKS.sub("", _LIST_MARK.sub("", folded)).strip(" .!").split()
    names = {w for span in marked for w in span.split()}
    return " ".join(w if w in names or _EXACT.fullmatch(w.strip(_EDGES)) else w.casefold() for w in words)


# --- same statement ---------------------------------------------------------------------------------------------------

SAME_STATEMENT_OVERLAP = 0.75  # of the words, in their order; a word replaced by another makes another statement

# Words that may come and go without another meaning; of the stop words above, "up", "even" or "off" may not.
_LIGHT_WORDS = frozenset(
    "a an the is are was were be been it its this that these those here there and then also please do does did of".split()
)
_NEGATIONS = frozenset(
    """
    no not never none nor neither without cannot except unless dont doesnt didnt wont cant isnt arent wasnt werent hasnt havent shouldnt mustnt
    couldnt wouldnt avoid instead unlike disable disabled disables skip skips missing unable before after only always rarely seldom hardly
    sometimes often
    """.split()
)
_EXACT = re.compile(r"[A-Za-z]*\d[\w.,:-]*|\S*[/_\\.=:@#<>*$+-]\S*|\w*[a-z][A-Z]\w*|[A-Z]{2,}\w*")
_CAPITAL_NAME = re.compile(r"`[A-Z]\w*`")  # `Load` is another function than `load`
_CONTRACTED = dict.fromkeys("dont doesnt didnt wont isnt arent wasnt werent hasnt havent shouldnt mustnt couldnt wouldnt".split(), "not")
_CONTRACTED |= {"cant": "cannot", "when": "if", "whenever": "if"}  # one form for what says the same
_GLUED_UNIT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(KB|kB|MB|GB|TB|ms|s|min|h)\b")
_CLAUSE_STARTS = frozenset("after before if in on with without for under at during while until inside outside by from".split())
_EDGES = " \t`'\"()[]{},.;:!?“”‘’…"


def same_statement(a: str, b: str) -> bool:
    """Whether two sentences say the same in nearly the same words.

    Negation, numbers, versions, paths, flags and identifiers have to be equal and in the same order. Of the other words (their stems, articles
    and the like aside) one sentence may have a few more than the other, but none that stands for another. A clause or circumstance may stand
    in front or at the end.
    """
    exact_a, words_a = statement_parts(a)
    exact_b, words_b = statement_parts(b)
    short, long = sorted((words_a, words_b), key=len)
    if exact_a != exact_b or Counter(short) - Counter(long) or len(short) < SAME_STATEMENT_OVERLAP * len(long):
        return _moves_a_clause(a, b)
    turned = [*short[1::-1], *short[2:]]  # "run the tests", "tests run"
    return any(_common_in_order(order, long) == len(short) for order in (short, turned)) or _moves_a_clause(a, b)


def unglued(text: str) -> str:
    """The text with "5MB" written "5 MB"."""
    return _GLUED_UNIT.sub(r"\1 \2", text)


def _moves_a_clause(a: str, b: str) -> bool:
    """Whether two sentences differ in the place of a clause or circumstance: "after a pull, run x", "run x after a pull"."""
    one, other = ([word for _, word in _parts(text)] for text in (a, b))
    start = next((n for n, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), 0)
    one, other = one[start:], other[start:]
    if len(one) != len(other):
        return False
    for at in range(1, len(one)):
        if one[at:] + one[:at] == other:
            opens = [chunk[0] in _CLAUSE_STARTS for chunk in (one[:at], one[at:])]
            return all(opens) if start else any(opens)
    return False


def statement_parts(text: str) -> tuple[list[str], list[str]]:
    """(negations, numbers, paths and names as they stand; stems of the other words), both in order."""
    found = list(_parts(text))
    return [word for is_exact, word in found if is_exact], [word for is_exact, word in found if not is_exact]


def bag(text: str) -> str:
    """The words of a text in sorted order and lower case: equal for texts of equal `plain_form`, and for those that move a clause."""
    return " ".join(sorted(word.casefold() for _, word in _parts(plain_form(text))))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """(whether it has to be equal, the word)."""
    for raw in unglued(text).split():
        word = raw.strip(_EDGES)
        plain = word.lower().replace("'", "").replace("’", "")
        plain = _CONTRACTED.get(plain, plain)
        if plain in _NEGATIONS:
            yield True, plain
        elif word and (_EXACT.fullmatch(word) or _CAPITAL_NAME.fullmatch(raw.strip(",.;:"))):
            yield True, word
        elif plain and plain not in _LIGHT_WORDS:
            yield False, stem(plain)


def _common_in_order(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        diagonal = 0
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], diagonal + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]
