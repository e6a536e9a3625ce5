"""Whatever is written: a resolved recipe or an error that a user can act on."""

from __future__ import annotations

import contextlib
import copy
import time

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedpcd_cli.errors import FedPCDError
from fedpcd_cli.recipe.document import recipe_from_document, to_yaml
from fedpcd_cli.recipe.load import load_recipe

_profile = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_WORDS = (
    "name seed rounds data dataset root partition scheme n_clients test fraction model local epochs steps lr server "
    "aggregator tau params hidden extends normalize mean std engine threads output"
)
_keys = st.sampled_from(_WORDS.split()) | st.text(max_size=6)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["fedpcd", "fedavg", "needy", "cnn", "mlp", "digits", "folder", "iid", "r.yaml", "quick-start"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=10,
)
_PIECES = "- { } [ ] &a *a !!int ? <<: : --- ... %YAML | > ' # 1e999 .nan \\x00 \\ud800"
_fragments = st.sampled_from(
    [
        *_PIECES.split(),
        "rounds: 4\n",
        "data:\n",
        "  dataset: digits\n",
        '"',
        "\t",
        "\n",
        "\r",
        " ",
        "\ufeff",
        "\u2028",
    ]
)


def attempt(path, overrides, registry):
    """Resolve, and check what is always true of the outcome."""
    started = time.perf_counter()
    error = resolved = None
    try:
        resolved = load_recipe(path, overrides, registry=registry)
    except FedPCDError as raised:
        error = raised
    assert time.perf_counter() - started < 5
    if error is not None:
        lines = error.message.split("\n")
        assert all(line.strip() and line.isprintable() and len(line) < 1500 for line in lines), lines
    if resolved is not None:
        assert recipe_from_document(resolved.document, registry=registry) == resolved.recipe
        assert yaml.safe_load(to_yaml(resolved.document)) == resolved.document


@pytest.fixture
def paths(write, minimal):
    return write(minimal)


@_profile
@given(content=st.binary(max_size=80) | st.text(max_size=80).map(str.encode) | st.lists(_fragments).map("".join))
def test_any_bytes(paths, registry, content):
    paths.write_bytes(content if isinstance(content, bytes) else content.encode())
    attempt(paths, [], registry)


@_profile
@given(document=_values)
def test_any_document(paths, registry, document):
    paths.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    attempt(paths, [], registry)


@_profile
@given(data=st.data())
def test_mutations_of_a_recipe(paths, registry, minimal, data):
    document = copy.deepcopy(yaml.safe_load(minimal))
    document["local"] = {"epochs": 1, "lr": 0.1}
    document["aggregator"] = {"name": "fedpcd", "params": {"tau": 0.1}, "history_rounds": 3}
    for _ in range(data.draw(st.integers(1, 3))):
        target = document
        while True:
            deeper = [value for value in target.values() if isinstance(value, dict)]
            if not deeper or data.draw(st.booleans()):
                break
            target = data.draw(st.sampled_from(deeper))
        key = data.draw(st.sampled_from(sorted(target)) if target and data.draw(st.booleans()) else _keys)
        if data.draw(st.booleans()):
            target.pop(key, None)
        else:
            target[key] = data.draw(_values)
    paths.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    attempt(paths, [], registry)


@_profile
@given(
    overrides=st.lists(
        st.text(max_size=20)
        | st.builds("{}.{}={}".format, _keys, _keys, st.text(max_size=8) | _fragments)
        | st.builds(
            "{}={}".format, _keys, _values.map(lambda value: yaml.safe_dump(value, default_flow_style=True))
        ),
        max_size=3,
    )
)
def test_any_options(paths, registry, minimal, overrides):
    paths.write_text(minimal)
    attempt(paths, overrides, registry)


@_profile
@given(document=st.dictionaries(_keys | st.integers(), _values, max_size=5))
def test_any_run_document(resolve, registry, document):
    base = resolve().document
    with contextlib.suppress(FedPCDError):
        recipe_from_document({**base, **document}, registry=registry)
