"""What the wording of a proposed fact gives away: instructions, accidents, restated tasks and outcomes, guesses. Pure: text -> findings.

Knows the run only as `Said`, and nothing about quotes or models.
"""

import re

from osmia_memory.extract import signs
from osmia_memory.extract.naming import outside_spans, prose
from osmia_memory.extract.said import Said
from osmia_memory.instructions import instruction_kind, visible
from osmia_memory.similarity import terms

MAX_CONTENT = 300  # characters, as the reply model tells
MIN_CONTENT = 20

# --- what must not be said --------------------------------------------------------------------------------------------

_TOLD = re.compile(
    r"\b(?:you|agents?|assistants?|models?|the reader|(?:next|future|later) (?:runs?|sessions?|agents?|tasks?))\b(?: \w+){0,3}? "
    r"(?:must|should|shall|ought|need(?:s)? to|ha(?:ve|s) to|(?:is|are) (?:required|expected|supposed|advised|told) to)\b",
    re.I,
)
_WISH = re.compile(
    r"\b(?:should|ought to|could) (?:\w+ )?be (?:replaced|changed|fixed|removed|renamed|refactored|added|updated|moved|rewritten|cleaned|deleted|split|extended|improved)\b"
    r"|\b(?:TODO|FIXME|needs? (?:fixing|refactoring|cleanup|work|to be (?:fixed|refactored|cleaned)))\b"
)
_CLAUSE_FIRST = re.compile(r"(?:when(?:ever)?|if|before|after|once|while|to|for|in order to|as soon as)\b", re.I)
_CHAT = re.compile(
    r"(?i)</?(?:system|user|assistant|instructions?|system-reminder)\b[^>]*>|\[/?INST\]|<\|\w+\|>|^(?:system|assistant|human)\s*:"
)


def is_instruction(content: str) -> bool:
    """It tells its reader what to do, or carries the marks of a conversation."""
    _, comma, after = content.partition(", ")
    parts = (content, after) if comma and _CLAUSE_FIRST.match(content) else (content,)
    return any(instruction_kind(part) is not None for part in parts) or any(p.search(content) for p in (_TOLD, _WISH, _CHAT))


def is_order(text: str) -> bool:
    """A quoted text tries to command its reader."""
    return instruction_kind(text) == "order" or bool(_CHAT.search(text))


_MASK = re.compile(r"\bREDACTED\b|\*{4,}|<(?:redacted|secret|masked|hidden)>|\b[xX]{6,}\b")


def holds_mask(text: str) -> bool:
    """A secret stood there."""
    return bool(_MASK.search(text))


_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
_DATED = re.compile(
    rf"\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?!\.\d)|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}\b|\b{_MONTH},? (?:19|20)\d\d\b"
    r"|\b\d{1,2}/\d{1,2}/(?:19|20)\d\d\b|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
)
_MOMENT = re.compile(
    r"\b(?:currently|at the moment|right now|at present|at this point|for now|for the time being|temporarily|today|tonight|yesterday|tomorrow|recently|as of|not yet|pending|still (?:to be|to do|open|needs? to be)|remaining (?:tasks?|work|steps?)"
    r"|this (?:run|session|morning|week|month|time|attempt|task|branch|commit|change|fix|patch|pr|pull request|diff|conversation)"
    r"|(?:the|in the) (?:current|present|ongoing|last|latest|previous) (?:run|session|task|branch|commit|change|patch|pr|pull request|diff|attempt|release))\b",
    re.I,
)
_NUMBERED = re.compile(
    r"\b(?:PR|MR|pull request|merge request|ticket|story)s?\s*(?:number |no\.? ?)?[#!]?\d+\b|\b(?:run|build|job|pipeline|workflow|session|attempt)\s*#\d+\b"
    r"|(?<![\w&/])#\d{2,}\b|/(?:pull|merge_requests)/\d+|\b(?:pid|process(?: id)?)\s*\d{3,}\b",
    re.I,
)
_HASH = re.compile(r"(?<![\w.-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")
_SCRATCH = re.compile(
    r"(?<![\w.])(?:/private)?/(?:tmp|var/(?:tmp|folders)|dev/shm)(?:/|\b)|(?i:\\(?:local\\)?temp\\|%temp%)|\btmp\.[A-Za-z0-9]{6,}\b"
)
_COUNTED = re.compile(
    r"\b\d[\d,]* (?:\w+ )?(?:passed|failed|failing|skipped|xfailed|deselected|passing)\b"
    r"|\b\d[\d,]* (?:occurrences?|references?|matches|hits|insertions?|deletions?|commits?|changed files|files changed|files? in total)\b|\bin \d+ files\b"
    r"|\b(?:has|have|holds?|contains?|runs?|collects?|counts?) \d[\d,]* (?:\w+ )?(?:tests?|files?|lines?|cases?|commits?|modules?)\b"
    r"|\b(?:takes?|took|lasts?|lasted) (?:about |around |only |less than )?\d[\d.,]* ?(?:ms|s|m|h|secs?|seconds?|min|minutes?|hours?)\b",
    re.I,
)
_ACCIDENT = re.compile(
    r"\b(?:no|without|lost|lacks?|lacked) (?:internet|network)(?: (?:access|connection|connectivity))?\b"
    r"|\b(?:network|internet|connection|server|registry|proxy|dns|api|service|host) (?:\w+ )?(?:was|is|were|are|went|has been) (?:\w+ )?(?:down|unreachable|unavailable|offline|overloaded|slow|interrupted|blocked)\b"
    r"|\b(?:rate[- ]?limit(?:ed|s)?|quota) (?:\w+ )?(?:was |were |is |has been |had been |got )?(?:hit|reached|exceeded|exhausted)\b|\b(?:hit|reached|exceeded|ran into) (?:an? |the )?(?:\w+ )?(?:rate[- ]?limit|quota)"
    r"|\b(?:was|were|is|are|got|being) rate[- ]limited\b|\btoo many requests\b"
    r"|\b(?:disk|device|volume|partition) (?:was|is|ran|became|got) (?:\w+ )?full\b|\bout of (?:disk|memory|space)\b|\bno space left\b"
    r"|\b(?:login|session|token|credentials?|password|licen[cs]e|certificate|subscription)s? (?:\w+ )?(?:has |have |had |was |were |is |are )?(?:expired|lapsed|revoked)\b"
    r"|\bnot logged in\b|\b(?:could not|couldn't|cannot|can't|failed to) (?:resolve|reach|connect to) (?:the )?(?:host|registry|server|internet|network|\S+\.(?:com|org|io|net))\b"
    r"|\bindex\.lock\b|\b(?:is|was|were|are) locked by another\b|\banother (?:git )?process\b"
    r"|\b(?:was|were|got|is|are) interrupted\b|\b(?<!what )(?<!that )(?<!which )(?:is|are|was|were) (?:(?:still|all) )?(?:modified|untracked|unstaged|uncommitted|staged)\b",
    re.I,
)


def is_transient(content: str) -> bool:
    """It is about a moment: a date, "currently", a commit or pull request, a temporary file, a count, an accident of the environment."""
    outside = outside_spans(content)
    everywhere = (_NUMBERED, _HASH, _SCRATCH, _COUNTED, _ACCIDENT)
    return any(p.search(outside) for p in (_DATED, _MOMENT)) or any(p.search(content) for p in everywhere)


_PASSING_TROUBLE = re.compile(
    r"rate.?limit(?:ed)? (?:exceeded|reached|hit)|too many requests|\b429\b|overloaded_error|quota exceeded|service unavailable|\b50[234]\b",
    re.I,
)


def is_accident(line: str) -> bool:
    """A quoted line of a result is an accident of the environment at that moment."""
    return any(s.kind in signs.ACCIDENTS for s in signs.signs(line)) or bool(_PASSING_TROUBLE.search(line))


# --- restating --------------------------------------------------------------------------------------------------------

TASK_OVERLAP = 0.75  # of the content's terms that stand in two neighbouring sentences of the task
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")


def restates_task(content: str, said: Said) -> bool:
    """Nearly all of its words stand in one passage of the task."""
    told = terms(content).keys()
    if not told:
        return False
    run = said.transcript.run
    sentences = [s for s in _SENTENCE.split(f"{run.title}\n{run.description}") if s.strip()]
    pairs = [" ".join(sentences[n : n + 2]) for n in range(max(1, len(sentences)))]
    return any(len(told & terms(pair).keys()) >= TASK_OVERLAP * len(told) for pair in pairs)


_DONE = (
    r"fixed|added|implemented|updated|changed|modified|removed|deleted|renamed|replaced|created|introduced|refactored|resolved|extended|rewritten|rewrote"
    r"|moved|improved|adjusted|corrected|patched|converted|migrated|cleaned|bumped|upgraded|wrote|written|committed|pushed|merged|submitted|completed"
    r"|addressed|handled|solved|applied|capped|verified|tested|ran|wired"
)
_OPENS_DONE = re.compile(
    rf"^(?:(?:i|we|it|the (?:agent|run|engine|session|model|assistant|developer|author)|this (?:run|change|fix|patch|commit))\s+)?"
    rf"(?:(?:has|have|had|was|were|been|successfully|also|then|now|just|finally)\s+)*(?:{_DONE})\b(?! (?:by|with|in) (?:default|the)\b)",
    re.I,
)
_THE_WORK = re.compile(
    r"\bthe (?:\w+ )?(?:fix|change|patch|solution|implementation|commit|diff|refactoring|rename|task|run|session|agent|work|new (?:test|code|function|option|feature))s?\b"
    r"(?: \S+){0,5}? (?:is|was|were|are|adds?|added|fix(?:es|ed)|mak(?:es|e)|made|works?|worked|pass(?:es|ed)|succeed(?:s|ed)|fail(?:s|ed)|breaks?|broke|completes?|completed|uses?|used|changes?|changed|touches|touched|passed|finished|did|does)\b",
    re.I,
)
_THE_AGENT = re.compile(
    r"^(?:the|an?|this) (?:agent|assistant|model|session|run|engine)(?:'s \w+)? (?:\w+ly |has |had |also |then )*(?:\w+ed|ran|wrote|made|did|found|chose|put|took|went|got|kept|left)\b",
    re.I,
)
_PASSIVE_DONE = re.compile(
    rf"\b(?:was|were|has been|have been|had been|got|is now|are now|now (?:is|are))\s+(?:(?:\w+ly|also|now|then)\s+)?(?:{_DONE})\b", re.I
)
_SUCCESS = re.compile(
    r"\bsuccessful(?:ly)? (?:way|approach|fix|run|task|solution|strategy|attempt|change|session)\b|\bsuccessfully\b", re.I
)
_NOW = re.compile(r"\bnow (?:\w+ly )?[a-z]+(?:s|ed)\b|\bno longer\b|\b(?:is|are|does|do|can|has|have) now\b", re.I)
_PASSES = re.compile(
    r"\b(?:all |every |the )?(?:\w+ )?(?:tests?|suites?|builds?|lint(?:er)?|checks?|ci|type ?checks?|everything)(?: (?:suite|run|step|job))?"
    r"(?: (?:of|in|for|with|on) \S+)? (?:now )?(?:all )?(?:pass(?:es|ed)?|succeed(?:s|ed)?|works?|worked|(?:is|are|was|were|stays?) (?:\w+ )?(?:green|passing|ok|fine|clean|successful))\b"
    r"|\b(?:test|suite|build|lint|check)s? (?:fail(?:s|ed)?|(?:was|were) (?:red|failing))\s*\.?$"
    r"|\bno (?:findings|issues|problems|errors) (?:were )?(?:found|reported)\b|\b(?:correct|complete|done|verified)\s*\.?$",
    re.I,
)
_CONDITION = re.compile(
    r"\b(?:only|unless|when(?:ever)?|if|until|while|without|before|after|once|needs?|requires?|except|but|although|even|because|both|together|instead|rather|still|nothing)\b",
    re.I,
)


_SAYS_PASSING = re.compile(r"\b(?:pass(?:es|ed|ing)?(?! (?:to|as|into|through|along|via|for)\b| `)|green|succeeds?)\b", re.I)
_NOT_BEFORE = re.compile(r"(?:\b(?:cannot|not|never)|n['’]t)\s+$", re.I)


def claims_passing(content: str) -> bool:
    """It says that tests, a build or a check pass."""
    return any(not _NOT_BEFORE.search(content[: m.start()]) for m in _SAYS_PASSING.finditer(content))


def is_conditional(content: str) -> bool:
    """It says under which circumstances something holds."""
    return bool(_CONDITION.search(content))


def restates_work(content: str) -> bool:
    """It reports what the run did or how it ended, instead of how things are."""
    if any(p.search(content) for p in (_SUCCESS, _OPENS_DONE, _THE_AGENT, _THE_WORK, _PASSIVE_DONE, _NOW)):
        return True
    return bool(_PASSES.search(content)) and not is_conditional(content)


_HEDGE = re.compile(
    r"\b(?:might|maybe|perhaps|probably|possibly|presumably|apparently|likely|seems?|seemingly|appears? to be|looks? like|suspect(?:ed|s)?|should be (?:the|because|due)"
    r"|(?:i|we) (?:think|believe|suppose|guess|assume)|not sure|unsure|my (?:guess|hunch|theory|hypothesis))\b",
    re.I,
)
_GUESS = re.compile(
    r"\b(?:may|could be|appears? to|guess(?:ed|es)?|assum(?:e|es|ed|ing)|would (?:help|fix|explain|make|be)|hypothes[ie]s|theory)\b", re.I
)


def is_hedged(content: str) -> bool:
    """It is a guess by its own words."""
    return bool(_HEDGE.search(content))


def is_guess(speech: str) -> bool:
    """What the agent says here is a guess by its own words."""
    return is_hedged(speech) or bool(_GUESS.search(speech))


# --- what is said of commands and tests ---------------------------------------------------------------------------------

# Of a command or test itself; a check that rejects something goes on doing so once the run has complied.
FAILS = re.compile(
    r"\b(?:fail(?:s|ed|ing)?|broken|breaks?|broke|crash(?:es|ed)?|hangs?|times? out|timed out|red"
    r"|(?:does|do|did|can)(?: not|n['’]t|not) (?:work|pass|compile|import))\b",
    re.I,
)
MISSING = re.compile(
    r"\b(?:(?:is|are)(?: not|n't) (?:installed|available|found|present|on (?:the )?path)|(?:is|are) (?:missing|unavailable|absent)|not installed|not found)\b",
    re.I,
)
FLAKY = re.compile(
    r"\b(?:flak(?:y|iness|es?)|intermittent(?:ly)?|sometimes|random(?:ly)?|unstable|nondeterministic|non-deterministic|hash seed)\b", re.I
)

_ABSENT = re.compile(
    r"\b(?:not|no|never|without|nothing|only|unless|until|must|missing|lacks?|cannot|absent|refus\w+|reject\w+|unknown|wants?|expects?|compares?|require\w*|needs?)\b|n['’]t\b",
    re.I,
)
_NOT_ADVERSE = re.compile(r"\b(?:without|never) \w+(?:ing|s)\b|\bno longer\b", re.I)


_REJECTION = re.compile(r"\b(?:turned down|rejected|refused|given up|taken back|reverted|undone|in favou?r of|objected)\b", re.I)


def tells_of_rejection(content: str) -> bool:
    """It says itself that something did not stay."""
    return bool(_REJECTION.search(content))


def is_adverse(content: str) -> bool:
    """It speaks of something that fails, is missing, refused or wanted."""
    plain = _NOT_ADVERSE.sub(" ", outside_spans(content))
    return any(p.search(plain) for p in (FAILS, MISSING, _ABSENT))


_PLAIN_WORD = re.compile(r"[A-Za-z]{2,}")


def says_nothing(content: str) -> bool:
    """Too short, or no statement beside the names."""
    return len(content) < MIN_CONTENT or len(_PLAIN_WORD.findall(prose(content))) < 2


_WANTS = (
    r"wants?|wanted|prefers?|preferred|insist(?:s|ed)?|asks?|asked|demand(?:s|ed)?|request(?:s|ed)?|requires?|required|expects?|expected|said|says|told|corrected|reject(?:s|ed)?"
    r"|refuse[sd]?|complain(?:s|ed)?|dislikes?|likes?|forbids?|forbade|(?:does not|doesn't|did not|didn't|will not|won't|never) (?:want|accept|like|allow)s?|accept(?:s|ed)?|approve[sd]?"
    r"|decided?|confirm(?:s|ed)|agreed?|pointed|reminded|objects?|objected"
)
_PERSON = re.compile(
    rf"\b(?:users?|persons?|people|humans?|developers?|owners?|boss|team|customers?|stakeholders?)\s+(?:\w+\s+)?(?:{_WANTS})\b"
    rf"|\b(?:wanted|preferred|asked(?: for)?|demanded|requested|required|rejected|corrected|refused|forbidden|decided|confirmed|told)\s+by\s+(?:the |a |an )?(?:user|person|human|developer|owner|team|customer)"
    r"|\b(?:according to|per|as)\s+(?:the |a )?(?:user|person|human|developer|owner|team|customer)\b",
    re.I,
)
_REVIEWER = re.compile(
    rf"\b(?:reviewers?|maintainers?|approvers?)\s+(?:\w+\s+)?(?:{_WANTS})\b|\b(?:by|according to|per) (?:the |a )?(?:reviewer|maintainer|approver)s?\b",
    re.I,
)


def attributed_to(content: str) -> str | None:
    """ "person" or "reviewer" where the content says what one of them said or wants; None otherwise."""
    return "reviewer" if _REVIEWER.search(content) else "person" if _PERSON.search(content) else None


_POLES = {
    word: (base, sign)
    for base, good, bad in (
        ("pass", "pass passes passed work works worked succeed succeeds succeeded", "fail fails failed failing break breaks broken"),
        ("present", "present exists installed available enabled", "missing absent unavailable uninstalled disabled"),
        ("need", "need needs needed require requires required must", "optional unneeded unnecessary"),
        (
            "accept",
            "accept accepts accepted allow allows allowed",
            "reject rejects rejected refuse refuses refused forbid forbids forbidden",
        ),
        ("", "", "not no never without neither nor nothing none cannot can't doesn't don't isn't aren't wasn't won't hasn't didn't unless"),
    )
    for sign, words in ((1, good), (-1, bad))
    for word in words.split()
}


def polarity(content: str) -> tuple[str, int]:
    """(the sentence without its negations, 1 or -1): two sentences with equal first parts and other signs contradict each other."""
    sign, words = 1, []
    for raw in content.replace("’", "'").split():
        base, its = _POLES.get(raw.strip(".,;:()").lower(), (raw, 1))
        sign *= its
        words.append(base)
    return " ".join(w for w in words if w), sign


# --- normal form ------------------------------------------------------------------------------------------------------


def normal(content: str, said: Said) -> str:
    """One visible line that ends like a sentence, with paths relative to the checkout."""
    line = said.view.relative(visible(content))
    line = re.sub(r"^(?:[-*•]\s+|\d+[.)]\s+)", "", line).strip()
    return line if not line or line.endswith((".", "!", "?", "…", "”")) else line.rstrip(",;:") + "."
