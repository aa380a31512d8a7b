"""One key for a repository's main checkout, worktrees and clones; another for a fork."""

from pathlib import Path

import pytest

from osmia_memory.transcripts.repo_key import from_cwd, from_git_output, from_url


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/shop.git",
        "https://github.com/acme/shop",
        "https://GitHub.com/acme/shop/",
        "https://kim:ghp_x@github.com/acme/shop.git",
        "https://github.com:443/acme/shop.git",
        "https://github.com/acme/shop/pull/7",
        "ssh://git@github.com/acme/shop.git",
        "ssh://git@github.com:22/acme/shop.git",
        "git@github.com:acme/shop.git",
        "git@github.com:acme/shop",
        "github.com:acme/shop.git",
        "git://github.com/acme/shop.git",
        "git+ssh://git@github.com/acme/shop.git",
    ],
)
def test_every_spelling_of_a_remote_is_one_key(url: str):
    """Protocol, credentials, port, case of the host and `.git` do not matter."""
    assert from_url(url) == "acme/shop"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("git@github.com:kim/shop.git", "kim/shop"),
        ("https://gitlab.com/acme/tools/shop.git", "acme/tools/shop"),
        ("https://gitlab.com/acme/shop/-/merge_requests/3", "acme/shop"),
        ("https://bitbucket.example.com/scm/acme/shop.git", "acme/shop"),
        ("git@ssh.dev.azure.com:v3/acme/market/shop", "acme/market/shop"),
        ("https://dev.azure.com/acme/market/_git/shop", "acme/market/shop"),
        ("acme/shop", None),
        ("/srv/git/shop.git", None),
        ("C:\\work\\shop", None),
        ("C:/code/shop", None),
        ("file:///srv/git/shop.git", None),
        ("https://github.com/acme", None),
        ("", None),
    ],
)
def test_other_hosts_forks_and_what_is_no_remote(url: str, key: str | None):
    """A fork has another owner; subgroups stay; a path is no URL."""
    assert from_url(url) == key


def test_git_tells_the_remote_in_its_output():
    """`git remote -v` says more than a push."""
    text = "To github.com:kim/shop.git\n   a..b  main -> main\norigin\thttps://github.com/acme/shop.git (fetch)\norigin\thttps://github.com/acme/shop.git (push)\n"
    assert list(from_git_output(text)) == ["acme/shop", "acme/shop", "kim/shop"]
    assert list(from_git_output("To do: push")) == []


@pytest.mark.parametrize(
    ("cwd", "key"),
    [
        ("/nowhere/kim/shop", "local/shop"),
        ("/nowhere/kim/shop/", "local/shop"),
        ("/nowhere/kim/shop/.claude/worktrees/fix-cart", "local/shop"),
        ("/nowhere/kim/shop/.claude/worktrees/fix-cart/src", "local/shop"),
        ("/nowhere/kim/shop/.worktrees/fix-cart", "local/shop"),
        ("C:\\work\\shop", "local/shop"),
        ("C:\\work\\shop\\.claude\\worktrees\\fix", "local/shop"),
        ("/", None),
        ("C:\\", None),
    ],
)
def test_a_folder_that_is_not_on_this_disk_is_known_by_its_name(cwd: str, key: str | None):
    """A worktree by its main checkout's."""
    assert from_cwd(cwd) == key


def checkout(folder: Path, remotes: dict[str, str] | None = None) -> Path:
    """A main checkout as git lays it out."""
    git = folder / ".git"
    (git / "objects").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    lines = ["[core]", "\tbare = false"]
    for name, url in (remotes or {}).items():
        lines += [f'[remote "{name}"]', f"\turl = {url}", f"\tfetch = +refs/heads/*:refs/remotes/{name}/*"]
    (git / "config").write_text("\n".join(lines) + "\n")
    return folder


def worktree(main: Path, folder: Path) -> Path:
    """A worktree of `main`, wherever it lies."""
    private = main / ".git" / "worktrees" / folder.name
    private.mkdir(parents=True)
    (private / "commondir").write_text("../..\n")
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {private}\n")
    return folder


def test_main_checkout_worktree_and_clone_share_a_key_and_a_fork_does_not(tmp_path: Path):
    """By the remote of the checkout that a folder belongs to."""
    main = checkout(tmp_path / "shop", {"upstream": "git@github.com:acme/other.git", "origin": "git@github.com:acme/shop.git"})
    tree = worktree(main, tmp_path / "elsewhere" / "fix-cart")
    clone = checkout(tmp_path / "copy-of-shop", {"origin": "https://kim@github.com/acme/shop"})
    fork = checkout(tmp_path / "fork", {"origin": "git@github.com:kim/shop.git"})
    (main / "src").mkdir()
    assert {from_cwd(str(f)) for f in (main, main / "src", tree, clone)} == {"acme/shop"}
    assert from_cwd(str(fork)) == "kim/shop"


def test_without_a_remote_worktree_and_local_clone_share_the_main_checkouts_name(tmp_path: Path):
    """The name of the folder that everything comes from."""
    main = checkout(tmp_path / "shop")
    tree = worktree(main, tmp_path / "elsewhere" / "fix-cart")
    clone = checkout(tmp_path / "copy", {"origin": str(main)})
    by_url = checkout(tmp_path / "copy2", {"origin": f"file://{main}"})
    assert {from_cwd(str(f)) for f in (main, tree, clone, by_url)} == {"local/shop"}


def test_a_clone_of_a_clone_has_the_first_ones_remote(tmp_path: Path):
    """Followed through local paths."""
    main = checkout(tmp_path / "shop", {"origin": "git@github.com:acme/shop.git"})
    middle = checkout(tmp_path / "middle", {"origin": str(main)})
    last = checkout(tmp_path / "last", {"origin": str(middle)})
    assert from_cwd(str(last)) == "acme/shop"


def test_remotes_that_point_at_each_other_end(tmp_path: Path):
    """No endless walk."""
    a = checkout(tmp_path / "a", {"origin": str(tmp_path / "b")})
    checkout(tmp_path / "b", {"origin": str(a)})
    assert (from_cwd(str(a)) or "").startswith("local/")


def test_a_bare_repository_gives_its_name(tmp_path: Path):
    """A clone of `/srv/git/shop.git` and the repository itself."""
    bare = tmp_path / "shop.git"
    (bare / "objects").mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "config").write_text("[core]\n\tbare = true\n")
    clone = checkout(tmp_path / "work", {"origin": str(bare)})
    assert from_cwd(str(clone)) == from_cwd(str(bare)) == "local/shop"
