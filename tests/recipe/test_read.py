"""YAML as recipes read it: scalars, lines, and everything that is no recipe."""

from __future__ import annotations

import os
import time

import pytest

from fedpcd_cli.recipe.nodes import Origin, Problems
from fedpcd_cli.recipe.read import read_text


def read(text):
    problems = Problems()
    node = read_text(text, Origin("f.yaml"), problems)
    return (None if node is None else node.plain()), list(problems.lines())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E+2", 100.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.25", -0.25),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("-12", -12),
        ("9223372036854775807", 2**63 - 1),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("null", None),
        ("~", None),
        ("", None),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("'1e-3'", "1e-3"),
        ("!!str 12", "12"),
        ("!!float 3", 3.0),
        ("[1, 2.0, x]", [1, 2.0, "x"]),
        ("{a: {b: ~}}", {"a": {"b": None}}),
        ("é – 日本", "é – 日本"),
    ],
)
def test_scalars_follow_yaml_1_2(text, value):
    found, problems = read(text)
    assert problems == []
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: .nan", "f.yaml:1: a must be a finite number; found .nan"),
        ("a: -.inf", "f.yaml:1: a must be a finite number; found -.inf"),
        ("a: 1e999", "f.yaml:1: a must be a finite number; found 1e999"),
        ("a: 9223372036854775808", "f.yaml:1: a must be a number below 2^63; found 9223372036854775808"),
        ("a: " + "9" * 9000, "f.yaml:1: a must be a number below 2^63; found " + "9" * 29 + "…"),
        ("a: !!python/object:os.system x", "f.yaml:1: a must be plain YAML; found !!python/object:os.system x"),
        ("a: !!timestamp 2024-01-01", "f.yaml:1: a must be plain YAML; found !!timestamp 2024-01-01"),
        ("a: !!int x", "f.yaml:1: a must be plain YAML; found !!int x"),
        ("a: !!set {x}", "f.yaml:1: a must be plain YAML; found the tag tag:yaml.org,2002:set"),
        ('a: "x\\u0007"', "f.yaml:1: a must be printable text; found the character U+0007"),
        ('a: "\\ud800"', "f.yaml:1: a must be printable text; found the character U+D800"),
        ("a: 1\nb: 2\na: 3", "f.yaml:3: a must be given once; found again, first on line 1"),
        ("s:\n  a: 1\n\n  a: 3", "f.yaml:4: s.a must be given once; found again, first on line 2"),
        ("s: {1: x}", "f.yaml:1: keys of s must be texts; found 1"),
        ("true: x", "f.yaml:1: keys must be texts; found true"),
        ("? [a]\n: x", "f.yaml:1: keys must be texts; found a list or mapping"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "f.yaml:3: c.<<: merge keys aren't supported. Use extends"),
        ("a:\n\tb: 1", "f.yaml:2: tabs can't be used here; found a tab. Indent with spaces"),
        ("a: 1\n---\nb: 2", "f.yaml:2: must be a single YAML document; found a second one ('---')"),
        ("a: 1\n\x00", "f.yaml:2: must be printable text; found the character U+0000"),
        ("a: *x", "f.yaml:1: isn't valid YAML: found undefined alias 'x'"),
        ("a: b: c", "f.yaml:1: isn't valid YAML: mapping values are not allowed here"),
    ],
)
def test_one_clear_line_for_each_error(text, line):
    assert read(text)[1] == [line]


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "a: 'x", "a: 1\n b: 2", "%YAML 9.9\n---\na: 1", 'a: "\\UFFFFFFFF"', "@"]
)
def test_broken_syntax_is_one_line(text):
    value, problems = read(text)
    assert value is None
    assert len(problems) == 1
    assert "isn't valid YAML: " in problems[0]
    assert problems[0].startswith("f.yaml:")


def test_nesting_and_aliases_are_bounded():
    started = time.perf_counter()
    assert read("[" * 2000)[1] == ["f.yaml:1: values must be nested at most 40 deep"]
    assert read("a: " + "{b: " * 60 + "1" + "}" * 60)[1] == ["f.yaml:1: values must be nested at most 40 deep"]
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x]\n"
    for level in range(1, 12):
        bomb += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 8)}]\n"
    assert read(bomb)[1] == ["f.yaml: must hold at most 20,000 values, repeated aliases counted; found more"]
    assert read("a: &x [*x]")[1] == ["f.yaml:1: values must be nested at most 40 deep"]
    assert time.perf_counter() - started < 5


def test_an_alias_is_a_copy():
    assert read("a: &x {b: 1}\nc: *x")[0] == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", "r.yaml: must be a mapping of keys; found nothing in it"),
        ("# only a comment\n", "r.yaml: must be a mapping of keys; found nothing in it"),
        ("- a\n- b\n", "r.yaml:1: a recipe must be a mapping of keys; found a list"),
        ("\n\njust text\n", "r.yaml:3: a recipe must be a mapping of keys; found 'just text'"),
        (b"rounds: 1\nname: \xff\n", "r.yaml:2: must be UTF-8 text; found byte 0xff. Save the file as UTF-8"),
        (b"a: " + b"x" * 200_000, "r.yaml: must be at most 128 KiB; found a larger file"),
    ],
)
def test_files_that_hold_no_mapping(problems, content, line):
    assert problems(content) == [line]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(resolve, minimal):
    assert resolve("\ufeff" + minimal.replace("\n", "\r\n")).recipe.rounds == 4


def test_paths_that_are_no_files(problems, write, registry, minimal, tmp_path):
    from fedpcd_cli.errors import RecipeError
    from fedpcd_cli.recipe.load import load_recipe

    write(minimal, "folder/quick.yaml")
    for path, message in (
        ("folder", "folder: must be a file; found a folder"),
        ("folder/quikc.yaml", "folder/quikc.yaml: no such file. Did you mean 'folder/quick.yaml'?"),
        ("quick-strat", "quick-strat: no such file. Did you mean 'quick-start'?"),
        ("zzzzzzzz/qqqq", "zzzzzzzz/qqqq: no such file."),
    ):
        with pytest.raises(RecipeError) as caught:
            load_recipe(path, registry=registry)
        assert str(caught.value) == message
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(RecipeError, match="pipe: must be a regular file"):
            load_recipe("pipe", registry=registry)
