"""Which repository a run worked on: `org/name`, one key for the main checkout, its worktrees and clones of one remote.

A fork has another owner, so it has another key. A checkout without any remote is `local/<folder of the main checkout>`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?:[^@/\s]*@)?(?P<host>[^/:\s]+)(?::\d*)?/+(?P<path>\S+?)/*$", re.I)
_SCP = re.compile(r"^(?:[^@/\s:]+@)?(?P<host>[^/:\s\\]{2,}):(?!/{2})(?P<path>[^\s\\]+?)/*$")
_NO_PART_OF_THE_NAME = {"scm", "_git", "v3"}  # Bitbucket Server, Azure DevOps
_TWO_PART_HOSTS = ("github.com", "bitbucket.org", "codeberg.org")  # what follows org/name is a page, not a subgroup
_WORKTREE = re.compile(r"^(?P<main>.+?)[/\\](?:\.claude[/\\]worktrees|\.worktrees|\.git[/\\]worktrees)[/\\][^/\\]+")
_PUSHED = re.compile(r"^To (\S+)$", re.M)
_REMOTE = re.compile(r"^origin\t(\S+) \((?:fetch|push)\)$", re.M)
_CONFIG_REMOTE = re.compile(r'^\s*\[remote "(?P<name>[^"]+)"\]')
_CONFIG_URL = re.compile(r"^\s*url\s*=\s*(?P<url>\S.*?)\s*$")
_MAX_HOPS = 3  # a clone of a clone of a clone


def from_url(url: str) -> str | None:
    """`org/name` of a remote's URL (https, ssh, git or scp-like), whatever its host, credentials, port or `.git`.

    A GitLab subgroup stays (`group/sub/name`). None if it is no URL or names no owner.
    """
    match = _URL.match(url.strip()) or _SCP.match(url.strip())
    if match is None or url.lower().startswith("file:"):
        return None
    parts = [p for p in match["path"].split("?")[0].split("/") if p and p not in _NO_PART_OF_THE_NAME and not p.startswith("~")]
    if match["host"].lower().removeprefix("www.") in _TWO_PART_HOSTS:
        parts = parts[:2]
    if "-" in parts:  # gitlab.com/group/name/-/merge_requests/3
        parts = parts[: parts.index("-")]
    if len(parts) < 2:
        return None
    parts[-1] = parts[-1].removesuffix(".git")
    return "/".join(parts) if all(parts) else None


def from_git_output(text: str) -> Iterator[str]:
    """Keys named by the output of `git remote -v` and `git push`, the more telling ones first."""
    for pattern in (_REMOTE, _PUSHED):
        for url in pattern.findall(text):
            key = from_url(url)
            if key:
                yield key


def from_cwd(cwd: str) -> str | None:
    """Key of the checkout a session ran in: by its remote if the folder exists here, else by the main checkout's name."""
    root = _checkout(Path(cwd)) if Path(cwd).is_absolute() else None
    if root is not None:
        return _on_disk(root, _MAX_HOPS)
    match = _WORKTREE.match(cwd)
    return _local(match["main"] if match else cwd)


def _local(folder: str) -> str | None:
    name = re.split(r"[/\\]", folder.rstrip("/\\"))[-1].removesuffix(".git")
    return f"local/{name}" if name and not name.endswith(":") else None


def _checkout(folder: Path) -> Path | None:
    """The nearest folder upwards that git knows, or None if the path is not on this disk."""
    try:
        if not folder.is_dir():
            return None
        for candidate in (folder, *folder.parents):
            if (candidate / ".git").exists() or _is_bare(candidate):
                return candidate
    except OSError:
        return None
    return None


def _is_bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "config").is_file()


def _on_disk(root: Path, hops: int) -> str | None:
    main, common = _main_checkout(root)
    url = _origin(common / "config")
    if url is None:
        return _local(str(main))
    key = from_url(url)
    if key is not None:
        return key
    target = Path(url.removeprefix("file://"))
    target = target if target.is_absolute() else main / target
    source = _checkout(target.resolve())
    return _on_disk(source, hops - 1) if source is not None and hops else _local(str(target))


def _main_checkout(root: Path) -> tuple[Path, Path]:
    """(folder of the main checkout, its git folder) for a checkout, a worktree of it, or a bare repository."""
    git = root / ".git"
    if git.is_file():  # a worktree or submodule: "gitdir: <path>", which may name its "commondir"
        pointed = _read(git).removeprefix("gitdir:").strip()
        git = (root / pointed).resolve()
        common = _read(git / "commondir").strip()
        git = (git / common).resolve() if common else git
        return (git.parent if git.name == ".git" else root), git
    return (root, git) if git.is_dir() else (root, root)


def _origin(config: Path) -> str | None:
    """URL of the remote `origin`, else of the first remote, else None."""
    urls: dict[str, str] = {}
    remote = None
    for line in _read(config).splitlines():
        if line.lstrip().startswith("["):
            match = _CONFIG_REMOTE.match(line)
            remote = match["name"] if match else None
        elif remote is not None and (match := _CONFIG_URL.match(line)):
            urls.setdefault(remote, match["url"])
    return urls.get("origin") or next(iter(urls.values()), None)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
