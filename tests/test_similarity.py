"""Terms of texts about code, and which sentences say the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmia_memory import similarity
from osmia_memory.models import Claim
from osmia_memory.testing import a_fact


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("internal/auth/token.go", {"internal/auth/token.go", "internal/auth", "token.go", "token"}),
        ("tests/test_cart.py::test_total", {"tests/test_cart.py::test_total", "test_total", "cart", "total"}),
        ("CartSerializer", {"cartserializer", "cart", "serializ"}),
        ("HTTPServer", {"httpserver", "http", "serv"}),
        ("max_retry_count", {"max_retry_count", "retry", "count"}),
        ("--max-failures", {"--max-failures", "max", "failur"}),
        ("protoc 3.21", {"protoc", "3.21"}),
        ("v1.2.3", {"v1.2.3"}),
        ("I2C", {"i2c"}),
        ("drivers/i2c.c", {"drivers/i2c.c", "i2c"}),
        ("answers 403", {"403"}),
        ("Größe café", {"größe", "café"}),
        ("see: example.org/shop.", {"example.org/shop", "shop"}),
    ],
)
def test_code_is_found_whole_and_by_its_parts(text: str, among: set[str]) -> None:
    """Paths, names, flags and versions are terms themselves, and so are the words in them."""
    assert among <= set(similarity.terms(text))


@pytest.mark.parametrize(
    "forms",
    [
        ("serialize", "serializer", "serialized", "serialization"),
        ("migration", "migrations", "migrate", "migrated"),
        ("retry", "retries", "retried"),
        ("run", "runs", "running"),
        ("cache", "caches", "cached", "caching"),
        ("config", "configuration", "cfg"),
        ("directory", "folder", "dirs"),
    ],
)
def test_forms_of_a_word_are_one_term(forms: tuple[str, ...]) -> None:
    """Endings and the usual short forms do not hide a match."""
    assert len({tuple(similarity.terms(form)) for form in forms}) == 1


@pytest.mark.parametrize("text", ["", "   ", "the of and to in on at", "Do it with them, please.", '`` "" ()', "1 2 3"])
def test_stop_words_give_no_terms(text: str) -> None:
    """Function words, punctuation and small numbers match nothing."""
    assert not similarity.terms(text)


def test_file_endings_are_no_words() -> None:
    """Two Python files have nothing in common for being Python files."""
    assert not set(similarity.terms("shop/cart.py")) & set(similarity.terms("billing/tax.py"))


def test_index_terms_cover_anchors_and_subject() -> None:
    """A fact is found by the file it is anchored to and by what its claim is about, though its text names neither."""
    fact = a_fact("Totals are rounded half to even.", anchors=("file:shop/cart.py",), claim=Claim("invoices", "rounding", "", "even"))

    assert {"shop/cart.py", "invoic", "round"} <= set(similarity.index_terms(fact))


def test_title_terms_weigh_more_and_generic_ones_less() -> None:
    """The first line says what a task is about; "fix" and "add" say that it is a task."""
    weights = similarity.query_terms("Fix rounding\n\nAdd a test for invoices.")

    assert weights["round"] > weights["invoic"] > weights["add"]
    assert similarity.query_terms("Fix rounding")["round"] == weights["invoic"]
    assert similarity.telling(weights) == {"round", "invoic"}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("a/b.py", True),
        ("max_count", True),
        ("--fast", True),
        ("1.2", True),
        ("i2c", True),
        ("cart", False),
        ("403", False),
        ("end-to-end", False),
    ],
)
def test_compound_terms_are_names_of_code(term: str, expected: bool) -> None:
    """Hyphenated words and plain numbers occur in everyday texts as well."""
    assert similarity.is_compound(term) is expected


SAME = [
    ("Run `make test` before committing.", "run make test before committing"),
    ("The suite takes a long time", "the suite takes long time."),
    ("It doesn't build on Windows", "It doesn’t build on Windows"),
    ("Run tests with pytest in the repository root", "Tests run with pytest in the repository's root"),
    ("The cache is cleared between tests", "Caches are cleared between tests"),
    ("After a rebase, `bin/relock` has to be run.", "`bin/relock` has to be run after a rebase."),
    ("Fixtures are loaded from `tests/data` by name.", "Fixtures are loaded by name from `tests/data`."),
    ("The report isn't sorted", "The report is not sorted"),
    ("Uploads end after 30s", "Uploads end after 30 s"),
    ("`bin/sync` stops if the lock file exists", "`bin/sync` stops when the lock file exists"),
]
DIFFERENT = [
    ("After `make all`, run `make docs`.", "Run `make all` after `make docs`."),
    ("If `A` is set, `B` is ignored.", "If `B` is set, `A` is ignored."),
    ("In `a.py`, `f` calls `g`.", "In `a.py`, `g` calls `f`."),
    ("The size of the cache is logged by the worker", "The cache of the worker is logged by the size"),
    ("Uploads end after 30s", "Uploads end after 30min"),
    ("Do cache the result", "Do not cache the result"),
    ("The server answers 401 without a token", "The server answers 403 without a token"),
    ("The build needs protoc v1.2", "The build needs protoc v1.3"),
    ("The build needs Java 17", "The build needs Java 21"),
    ("Tests in shop/cart.py are slow", "Tests in shop/tax.py are slow"),
    ("Use --fast for the nightly tests", "Use --slow for the nightly tests"),
    ("CartView is deprecated since spring", "CartList is deprecated since spring"),
    ("The integration tests need Docker to be running on the host", "The integration tests need Podman to be running on the host"),
    ("Increase the timeout of the worker", "Decrease the timeout of the worker"),
    ("The cart imports the invoice", "The invoice imports the cart"),
    ("Tests pass with the proxy", "Tests pass without the proxy"),
    ("The hook always runs on push", "The hook runs on push"),
    ("Disable caching in the pipeline", "Enable caching in the pipeline"),
    ("Totals are rounded half to even", "Totals are rounded half up"),
    ("The switch is on by default", "The switch is off by default"),
    ("Pushing to main is allowed", "Pushing to main isn't allowed"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_statement_in_other_words(a: str, b: str) -> None:
    """Case, quotes, endings and function words do not make another statement."""
    assert similarity.same_statement(a, b)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_negation_numbers_and_names_make_another_statement(a: str, b: str) -> None:
    """One word, number, path, flag or "not" is enough to say something else."""
    assert not similarity.same_statement(a, b)


@given(st.sampled_from([*SAME, *DIFFERENT]))
def test_same_statement_is_symmetric_and_reflexive(pair: tuple[str, str]) -> None:
    """The order of the two texts does not matter, and a text says what it says."""
    a, b = pair
    assert similarity.same_statement(a, b) == similarity.same_statement(b, a)
    assert similarity.same_statement(a, a)


@given(st.text())
def test_any_text_has_terms_without_white_space(text: str) -> None:
    """Whatever the input, terms are non-empty, lower case and hold no white space."""
    for term in similarity.terms(text):
        assert term
        assert not any(c.isspace() for c in term)
