"""The order of commits, asked of a checkout by `git log`. What is later by the clock may have worked on an older commit."""

import re
import subprocess
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from osmia_memory.errors import InputError

_HASH = re.compile(r"[0-9a-f]{7,64}")
_SECONDS = 120.0


def ancestors(checkout: Path, commits: Collection[str]) -> dict[str, frozenset[str]]:
    """For each of the commits that the checkout knows, those of the others that are its ancestors.

    Raises:
        InputError: the folder is no checkout, or git cannot be run.
    """
    wanted = {c for c in commits if _HASH.fullmatch(c)}
    full = {
        name: c
        for c in sorted(wanted)
        if (name := _git(checkout, ["rev-parse", "--verify", "--quiet", f"{c}^{{commit}}"], allow=True).strip())
    }
    if not full:
        _git(checkout, ["rev-parse", "--git-dir"])
        return {}
    lines = _git(checkout, ["log", "--topo-order", "--reverse", "--format=%H %P", *sorted(full)]).splitlines()
    return reachable((line.split() for line in lines), full)


def reachable(history: Iterable[list[str]], named: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Ancestors among the named commits. `history` holds [commit, parent, ...], parents first; `named` full hash -> name. Pure."""
    names = sorted(set(named.values()))
    bit = {name: 1 << n for n, name in enumerate(names)}
    before: dict[str, int] = {}
    found: dict[str, frozenset[str]] = {}
    for commit, *parents in history:
        mask = 0
        for parent in parents:
            mask |= before.get(parent, 0)
        if commit in named:
            found[named[commit]] = frozenset(name for name in names if mask & bit[name])
            mask |= bit[named[commit]]
        before[commit] = mask
    return found


def _git(checkout: Path, arguments: list[str], *, allow: bool = False) -> str:
    """What git prints; with `allow`, "" where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"cannot run git in `{checkout}` ({error}); leave out --git, or give a folder that git knows") from error
    if done.returncode and not allow:
        raise InputError(
            f"git says of `{checkout}`: {done.stderr.strip().splitlines()[-1:] or 'nothing'}; give a checkout of the repository"
        )
    return "" if done.returncode else done.stdout
