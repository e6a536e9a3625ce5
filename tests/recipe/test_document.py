"""The YAML that fedpcd writes is understood by every reader."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcd_cli.recipe.document import digest, to_yaml
from fedpcd_cli.recipe.nodes import Origin, Problems
from fedpcd_cli.recipe.read import read_text

_TRICKY = (
    "yes no on off null ~ 1e-3 1_000 1:30 2024-01-01 .inf .nan 0x1F = << - -1 :a a: a#b a%20#b [x] {y} 'q' * & ! | > "
    "@ ` %"
)
_texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(_TRICKY.split())
_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3), max_leaves=8
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_texts.filter(lambda key: key != "<<"), _values, max_size=4))
def test_our_yaml_reads_back_the_same_in_yaml_1_1_and_1_2(document):
    text = to_yaml(document)
    assert (yaml.safe_load(text) or {}) == document
    problems = Problems()
    node = read_text(text, Origin("f"), problems)
    # A merge key is refused wherever it stands, however it is quoted.
    if not any("merge keys" in line for line in problems.lines()):
        assert not problems
        assert (node.plain() or {}) == document


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-05, "1.0e-05"),
        (1e16, "1.0e+16"),
        (0.02, "0.02"),
        (1.0, "1.0"),
        (5, "5"),
        (None, "null"),
        (True, "true"),
        ("yes", '"yes"'),
        ("1e-3", '"1e-3"'),
        ("a/b.yaml", "a/b.yaml"),
        ("C:\\data", '"C:\\\\data"'),
        ([0.5, "x", [1]], "[0.5, x, [1]]"),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_the_spelling_of_values(value, text):
    assert to_yaml({"a": value}) == f"a: {text}\n"
    assert to_yaml({"a": {"b": value}}) == f"a:\n  b: {text}\n"


def test_the_digest_is_that_of_the_content():
    assert digest({"a": 1, "b": [1.0]}) == digest({"b": [1], "a": 1.0, "name": "x", "output": {"root": "y"}})
    assert digest({"a": 1}) != digest({"a": True})
    assert digest({"a": 1}) != digest({"a": "1"})
    assert digest({"a": 0.0}) == digest({"a": -0.0})
