"""Atomic files, record lines and status."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedpcd_cli.errors import StoreError
from fedpcd_cli.store.atomic import write_atomically, write_text
from fedpcd_cli.store.jsonl import JsonlWriter, read_jsonl, truncate_after
from fedpcd_cli.store.reader import RunReader, find_runs, read_arrays
from fedpcd_cli.store.status import RunState, read_status, write_status
from fedpcd_cli.store.writer import write_arrays


def test_a_failing_writer_leaves_the_old_content_and_no_litter(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(temporary):
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match=r"a\.txt: can't be written: No space left on device") as caught:
        write_atomically(path, full)
    assert "what was saved before is intact" in str(caught.value)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_record_lines_round_trip_and_a_torn_one_is_noticed(tmp_path):
    path = tmp_path / "rounds.jsonl"
    writer = JsonlWriter(path)
    for t in (1, 2, 3):
        writer.append({"round": t, "x": [0.1]})
    writer.sync()
    writer.close()
    assert read_jsonl(path) == ([{"round": t, "x": [0.1]} for t in (1, 2, 3)], None)
    with path.open("a") as file:
        file.write('{"round":4,"x"')
    records, complaint = read_jsonl(path)
    assert [r["round"] for r in records] == [1, 2, 3]
    assert "last line was never finished" in complaint
    truncate_after(path, "round", 2)
    assert path.read_text() == '{"round":1,"x":[0.1]}\n{"round":2,"x":[0.1]}\n'


def test_a_damaged_line_is_named_with_its_number(tmp_path):
    path = tmp_path / "rounds.jsonl"
    path.write_text('{"round":1}\n{"rou\n{"round":3}\n')
    with pytest.raises(StoreError, match=r"rounds\.jsonl:2: damaged record"):
        read_jsonl(path)


def test_records_refuse_nan(tmp_path):
    writer = JsonlWriter(tmp_path / "x.jsonl")
    with pytest.raises(ValueError, match="not JSON compliant"):
        writer.append({"x": float("nan")})
    writer.close()
    assert (tmp_path / "x.jsonl").read_text() == ""


def test_status_round_trip_and_liveness(tmp_path):
    path = tmp_path / "status.json"
    write_status(path, RunState.RUNNING, 3, 10)
    status = read_status(path)
    assert (status.state, status.round_index, status.n_rounds) == (RunState.RUNNING, 3, 10)
    assert not status.owner_is_alive  # our own process is not somebody else
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "pid": 1}))
    assert read_status(path).owner_is_alive
    path.write_text(json.dumps({**content, "pid": 2**22 - 3}))
    assert not read_status(path).owner_is_alive


def test_status_errors_say_what_to_do(tmp_path):
    with pytest.raises(StoreError, match=r"is not a run: it has no status\.json"):
        read_status(tmp_path / "status.json")
    (tmp_path / "status.json").write_text('{"format_version": 99}')
    with pytest.raises(StoreError, match="run format 99 is newer"):
        read_status(tmp_path / "status.json")
    (tmp_path / "status.json").write_text('{"format')
    with pytest.raises(StoreError, match="damaged"):
        read_status(tmp_path / "status.json")


def test_find_runs(tmp_path):
    for name in ("b/x", "b/y", "a"):
        write_status(tmp_path / name / "status.json", RunState.FINISHED, 1, 1)
    assert find_runs([tmp_path / "b", tmp_path / "b/x", tmp_path / "a"]) == [
        tmp_path / "b/x",
        tmp_path / "b/y",
        tmp_path / "a",
    ]
    with pytest.raises(StoreError, match="no such folder"):
        find_runs([tmp_path / "zzz"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="none is below it"):
        find_runs([tmp_path / "empty"])


def test_arrays_are_checked(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, {"x": np.arange(4.0)})
    assert read_arrays(path)["x"].tolist() == [0, 1, 2, 3]
    content = bytearray(path.read_bytes())
    content[content.find(np.float64(3.0).tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"a\.npz: damaged"):
        read_arrays(path)
    with pytest.raises(StoreError, match="no such file"):
        read_arrays(tmp_path / "b.npz")


def test_a_damaged_recipe_is_named(tmp_path):
    (tmp_path / "recipe.yaml").write_text("a: [")
    with pytest.raises(StoreError, match=r"recipe\.yaml: can't be read"):
        _ = RunReader(tmp_path).recipe


def test_runs_that_are_linked_are_found_once_and_circles_end(tmp_path):
    (tmp_path / "all/a/certificates").mkdir(parents=True)
    (tmp_path / "all/a/status.json").touch()
    (tmp_path / "some").mkdir()
    (tmp_path / "some/a").symlink_to(tmp_path / "all/a")
    (tmp_path / "some/circle").symlink_to(tmp_path / "some")
    assert find_runs([tmp_path / "some"]) == [tmp_path / "some/a"]


def test_a_run_without_status_is_found_by_its_records(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/rounds.jsonl").touch()
    assert find_runs([tmp_path]) == [tmp_path / "a"]
