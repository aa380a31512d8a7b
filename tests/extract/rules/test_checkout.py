"""Whether the checkout is as it was before the run."""

import pytest

from osmia_memory.extract.rules.checkout import is_unmodified
from osmia_memory.extract.view import view
from osmia_memory.testing import Tape

CART = "shop/cart.py"


def is_clean_at_the_end(tape: Tape) -> bool:
    """At the last command."""
    seen_by = view(tape.transcript())
    return is_unmodified(seen_by, seen_by.steps[-1])


@pytest.mark.parametrize(
    "tape",
    [
        Tape().sh("pytest"),
        Tape().edit(CART).sh("git stash").sh("pytest"),
        Tape().edit(CART).sh("git stash && pytest && git stash pop"),
        Tape().edit(CART).sh(f"cp {CART} {CART}.bak; git checkout {CART}; pytest"),
        Tape().edit(CART).sh("git checkout shop/ && pytest"),
        Tape().edit(CART).sh("git reset --hard").sh("pytest"),
        Tape().sh(f"cp {CART} {CART}.bak").edit(CART).sh(f"mv {CART}.bak {CART}").sh("pytest"),
        Tape().sh(f"sed -i 's/a/b/' {CART}").sh(f"sed -i 's/b/a/' {CART}").sh("pytest"),
        Tape().sh(f"sed -i '7i\\    total = copy(total)' {CART}").sh(f"sed -i '/total = copy(total)/d' {CART}").sh("pytest"),
        Tape().create("shop/tax.py").sh("pytest"),
    ],
)
def test_what_was_taken_back_or_is_new_leaves_the_code_unmodified(tape: Tape) -> None:
    """By git, on a line of its own or in front of the command, from a backup, or by the reversed edit."""
    assert is_clean_at_the_end(tape)


@pytest.mark.parametrize(
    "tape",
    [
        Tape().edit(CART).sh("pytest"),
        Tape().edit(CART).sh("git stash").sh("git stash pop").sh("pytest"),
        Tape().edit(CART).sh("pytest && git stash"),
        Tape().edit(CART).edit("shop/tax.py").sh(f"git checkout {CART} && pytest"),
        Tape().sh(f"sed -i 's/a/b/' {CART} && pytest"),
        Tape().sh(f"sed -i 's/a/b/' {CART}").sh(f"sed -i 's/c/d/' {CART}").sh(f"sed -i 's/b/a/' {CART}").sh("pytest"),
        Tape().edit(CART).sh(f"cp {CART} {CART}.bak").sh(f"git checkout {CART}").sh(f"mv {CART}.bak {CART}").sh("pytest"),
        Tape().edit(CART).sh("git checkout -b other").sh("pytest"),
    ],
)
def test_what_is_left_of_the_edits_makes_it_modified(tape: Tape) -> None:
    """Also where only some of them were taken back, or the edit stands in the line of the command."""
    assert not is_clean_at_the_end(tape)
