"""Every damaged run is one clear line, and the others are still reported."""

from __future__ import annotations

import json

import pytest

from fedpcd_cli.errors import NotARunError, StoreError


def cut(root):
    """Leave half of the last record, as a full disk does."""
    path = root / "evaluations.jsonl"
    path.write_bytes(path.read_bytes()[:-200])


def scramble(root):
    path = root / "evaluations.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "\x00\x00\x00\n", *lines[2:]]))


def edit(name, old, new):
    def change(root):
        path = root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def remove(name):
    return lambda root: (root / name).unlink()


CASES = {
    "a newer format": (
        edit("status.json", '"format_version": 1', '"format_version": 9'),
        "run format 9 is newer than this fedpcd reads (1). Use the fedpcd that wrote it, or a newer one.",
    ),
    "a truncated record": (
        cut,
        "evaluations.jsonl: the run finished 20 rounds, but this file ends at round 10. Restore the file from a "
        "copy, or run the recipe again with --force.",
    ),
    "a scrambled record": (scramble, "evaluations.jsonl:2: damaged record (Expecting value"),
    "a record out of order": (
        edit("evaluations.jsonl", '{"round":10,', '{"round":0,'),
        "evaluations.jsonl:2: damaged record (rounds must increase; found 0 after 0).",
    ),
    "a record that is broken inside": (
        edit("evaluations.jsonl", '"mean_accuracy":0.6', '"mean_accuracy":x'),
        "evaluations.jsonl:3: damaged record (",
    ),
    "a metric that is no number": (
        edit("evaluations.jsonl", '"mean_accuracy":0.6', '"mean_accuracy":NaN'),
        "evaluations.jsonl:3: damaged record (metric 'mean_accuracy' must be a number; found nan).",
    ),
    "clients that are missing": (
        edit("evaluations.jsonl", '"n_correct":[60,60,60,60]', '"n_correct":[60]'),
        "evaluations.jsonl:3: damaged record (clients are missing).",
    ),
    "more right than tested": (
        edit("evaluations.jsonl", '"n_correct":[60,60,60,60]', '"n_correct":[60,60,60,600]'),
        "evaluations.jsonl:3: damaged record (impossible counts).",
    ),
    "no evaluations": (
        remove("evaluations.jsonl"),
        "evaluations.jsonl: the run finished 20 rounds, but this file is empty or missing.",
    ),
    "no status": (remove("status.json"), "is not a run: it has no status.json."),
    "a broken status": (edit("status.json", "{", "["), "status.json: damaged ("),
    "no recipe": (remove("recipe.yaml"), "recipe.yaml: can't be read (No such file or directory)."),
    "a broken recipe": (edit("recipe.yaml", "{", "[{"), "recipe.yaml: can't be read (while parsing"),
    "a recipe that is no mapping": (lambda root: (root / "recipe.yaml").write_text("7"), "damaged (not a mapping)."),
    "a recipe without a rule": (edit("recipe.yaml", '"aggregator"', '"agregator"'), "damaged (missing 'aggregator')."),
    "no environment": (
        remove("environment.json"), "environment.json: can't be read (No such file or directory).",
    ),
    "an environment without data": (
        lambda root: (root / "environment.json").write_text(json.dumps({"data": 3, "partition": {}})),
        "damaged (missing ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_the_others_are_shown(make_run, report_of, case):
    damage, expected = CASES[case]
    make_run("fedavg")
    root = make_run("fedpcd", name="broken")
    damage(root)
    report = report_of()
    assert [group.label for group in report.blocks[0].block.groups] == ["fedavg"]
    (line,) = report.left_out
    assert expected in line
    assert str(root) in line
    assert "\n" not in line


@pytest.mark.parametrize("case", CASES)
def test_alone_it_is_an_error(make_run, report_of, case):
    damage, _ = CASES[case]
    damage(make_run("fedpcd", name="broken"))
    with pytest.raises(StoreError):
        report_of()


def test_folders_that_are_no_runs_are_named_beside_others(make_run, report_of, tmp_path):
    root = make_run()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    report = report_of(root, tmp_path / "empty", tmp_path / "nowhere", tmp_path / "file")
    assert [line.split(" is not a run: ")[1].split(".")[0] for line in report.left_out] == [
        "it has no status", "no such folder", "it is a file",
    ]  # fmt: skip
    with pytest.raises(NotARunError):
        report_of(tmp_path / "nowhere")


def test_a_record_in_progress_is_no_damage(make_run, report_of):
    root = make_run(state="running", reached=20)
    cut(root)
    report = report_of()
    assert report.left_out == ()
    assert report.members[0].chosen.rounds == (10,)


def test_other_spacing_is_read_too(make_run, report_of):
    root = make_run()
    path = root / "evaluations.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(dict(reversed(record.items()))) + "\n" for record in records))
    report = report_of()
    assert report.members[0].chosen.values["mean_accuracy"] == 0.6
    log = report.members[0].run.log
    assert [m["mean_accuracy"] for m in log.metrics("global")] == [0.1, 0.4, 0.6]
