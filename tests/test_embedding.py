"""The static embedding that ships with a dependency."""

import subprocess
import sys

import pytest

from osmia_memory import embedding

np = pytest.importorskip("numpy")


def test_vectors_have_unit_length_and_keep_their_row() -> None:
    """One row a text; a text without a token is all zeros, so that it is close to nothing."""
    embed = embedding.load()
    assert embed is not None

    vectors = embed(["the table is locked", "", "a lock on the table"])

    assert vectors.shape == (3, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1], abs=1e-5)


def test_paraphrases_are_closer_than_strangers() -> None:
    """The cosine orders texts by meaning rather than by shared words."""
    embed = embedding.load()
    assert embed is not None
    question, near, far = embed(["the clock shows the wrong hour", "times are read in the local zone", "bake a cake with apples"])
    assert question @ near > question @ far + 0.1


def test_a_vector_does_not_depend_on_its_neighbours() -> None:
    """Equal texts give equal numbers, alone or among others."""
    embed = embedding.load()
    assert embed is not None
    assert (embed(["one text"])[0] == embed(["a much longer text beside it", "one text"])[1]).all()


def test_any_text_can_be_embedded() -> None:
    """A lone surrogate, which transcripts hold now and then, is a character like any other."""
    embed = embedding.load()
    assert embed is not None
    assert embed(["broken \ud800 text", "\x00"]).shape == (2, 256)


def test_loading_needs_no_network_and_leaves_logging_alone() -> None:
    """The package that ships the files is not imported."""
    code = (
        "import sys, logging; from osmia_memory import embedding; embedding.load(); print('requests' in sys.modules, logging.root.handlers)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False []"
