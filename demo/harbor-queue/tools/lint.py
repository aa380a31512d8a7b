"""House rules that no linter knows: src/ speaks through harbor_queue.log.say, and time comes from a clock."""

import re
import sys
from pathlib import Path

RULES = (
    (r"\bprint\(", "print() is not allowed in src/, use harbor_queue.log.say"),
    (r"\butcnow\(|datetime\.now\(\)", "naive time is not allowed in src/, use a Clock"),
)


def main() -> int:
    """Report what breaks a rule; the exit status."""
    found = 0
    for path in sorted(Path("src").rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, message in RULES:
                if re.search(pattern, line):
                    sys.stderr.write(f"{path}:{number}: {message}\n")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
