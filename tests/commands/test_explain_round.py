"""`fedpcd explain-round` as a user runs it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import time

import pytest

from fedpcd_baselines.fedavg import FedAvg
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.rounds.record import Exclusion
from fedpcd_cli.store.status import RunState
from fedpcd_cli.testing.cohorts import make_cohort, unit_rows


def in_the_plane(*angles, t=1, ids=None, n_clients=None):
    return make_cohort(unit_rows(*angles), round_index=t, client_ids=ids, n_clients=n_clients)


@pytest.fixture
def worked(record_run):
    """The worked examples as runs of one round: `worked(0.25) -> Path`."""

    def build(tau, angles=(10, 45, 155)):
        return record_run(FedPCD(tau=tau, history_rounds=0), [in_the_plane(*angles)], f"worked-{tau}-{angles[0]}")

    return build


@pytest.fixture
def with_history(record_run):
    """Three rounds in the plane: clients 0, 1 at 0° and 40°, then 2 at 170°, then 3 at 20°."""
    cohorts = [
        in_the_plane(*angles, ids=ids, t=t, n_clients=4)
        for t, (angles, ids) in enumerate([((0, 40), (0, 1)), ((170,), (2,)), ((20,), (3,))], start=1)
    ]
    evaluations = [{"round": 3, "n_test": [4, 4, 4, 0], "n_correct": [1, 2, 3, 0]}]
    return record_run(FedPCD(tau=0.1, history_rounds=5), cohorts, "history", evaluations=evaluations)


@pytest.fixture
def infeasible(record_run):
    cohorts = [in_the_plane(10, 45, 155, t=1), in_the_plane(0, 180, 80, t=2), in_the_plane(35, 60, 85, t=3)]
    return record_run(FedPCD(tau=0.1, history_rounds=0), cohorts, "infeasible")


def rows_of(out):
    """Return the cells of the rows of the constraint table, by client."""
    lines = [line for line in out.splitlines() if re.match(r"^ [ !][ *] +\d+  now ", line)]
    cells = [line[3:].split() for line in lines]
    return {int(row[0]): {"marks": line[1:3], "before": row[4], "required": row[5], "after": row[6], "slack": row[7], "mu": row[8]}
            for line, row in zip(lines, cells, strict=True)}  # fmt: skip


def test_the_worked_example_in_its_own_numbers(fedpcd, worked):
    done = fedpcd("explain-round", worked(0.25))
    assert done.code == 0, done.err
    rows = rows_of(done.out)
    assert [rows[client]["before"] for client in range(3)] == ["0.66", "0.97", "-0.11"]
    # By hand 0.36556, 0.84890, 0.25; the rule's page prints the first as 0.36, the last digit cut off.
    assert [rows[client]["after"] for client in range(3)] == ["0.37", "0.85", "0.25"]
    assert [rows[client]["mu"] for client in range(3)] == ["0", "0", "0.36"]
    assert [rows[client]["required"] for client in range(3)] == ["0.25"] * 3
    assert [rows[client]["marks"] for client in range(3)] == ["  ", "  ", "!*"]
    assert "status      bent by 1 of 3 constraints" in done.out
    assert "correction  0.36 long" in done.out
    assert list(rows) == [2, 0, 1]
    assert done.err == ""


@pytest.mark.parametrize(
    ("tau", "angle", "active"), [(0.0, "6.1°", "client 3"), (1.0, "23.6°", "two clients")]
)  # the average lies at 58.9°, the directions at 65.0° and 82.5°
def test_the_worked_angles(fedpcd, worked, tau, angle, active):
    done = fedpcd("explain-round", worked(tau))
    assert f"angle       {angle} between FedAvg and the update" in done.out
    marked = [client for client, row in rows_of(done.out).items() if "*" in row["marks"]]
    assert marked == ([2] if active == "client 3" else [2, 0])


def test_the_worked_angles_as_what_if(fedpcd, worked):
    root = worked(0.25)
    for tau, angle in (("0", "6.1°"), ("1", "23.6°")):
        done = fedpcd("explain-round", root, "--tau", tau, "--format", "json")
        changed = json.loads(done.out)["explanation"]["what_if"]["program"]
        assert f"{changed['angle_degrees']:.1f}°" == angle


def test_nobody_falls_short(fedpcd, worked):
    done = fedpcd("explain-round", worked(0.25, (35, 60, 85)))
    assert "status      unchanged FedAvg: no client falls short" in done.out
    assert "angle       0.0° between FedAvg and the update" in done.out
    assert {row["mu"] for row in rows_of(done.out).values()} == {"0"}


def test_the_head(fedpcd, with_history):
    done = fedpcd("explain-round", with_history)
    assert "round       3 of 3: history, seed 1" in done.out
    assert "rule        fedpcd: tau 0.1, history_rounds 5, normalization l2" in done.out
    assert "cohort      1 client: 3\n" in re.sub(" +\n", "\n", done.out)
    assert "cached      3 clients, seen 1 round ago: 2; 2: 0, 1\n" in re.sub(" +\n", "\n", done.out)
    assert re.search(r"solver +daqp, [\d.]+ ms, 4 constraints", done.out)
    assert "step        ‖d‖ = ‖ḡ‖ = 1.00" in done.out


def test_checks_are_shown_with_numbers(fedpcd, worked):
    done = fedpcd("explain-round", worked(0.25))
    for name in ("stationarity", "primal feasibility", "dual feasibility", "complementarity", "duality gap"):
        found = re.search(rf"^ok  {name} +(\S+)", done.out, re.M)
        assert found, name
        assert float(found[1]) < 1e-14


def test_a_tampered_record_fails_its_checks(fedpcd, worked):
    import numpy as np

    root = worked(0.25)
    path = root / "certificates" / "round-000001.npz"
    with np.load(path) as content:
        arrays = dict(content)
    arrays["multipliers"] = arrays["multipliers"] * 1.01
    np.savez(path, **arrays)
    assert re.search(r"^FAILS  stationarity +5\.0e-03", fedpcd("explain-round", root).out, re.M)


def test_verify(fedpcd, worked):
    done = fedpcd("explain-round", worked(0.25), "--verify")
    assert re.search(r"Solved again with CVXPY, Clarabel \(\d+(\.\d+)? ms\)", done.out)
    assert float(re.search(r"^ok  direction +(\S+)", done.out, re.M)[1]) < 1e-7
    assert float(re.search(r"^ +multipliers +(\S+)", done.out, re.M)[1]) < 1e-6


def test_verify_does_not_claim_to_have_solved_what_needs_no_solve(fedpcd, worked):
    done = fedpcd("explain-round", worked(0.25, (35, 60, 85)), "--verify")
    assert "Nothing to solve again: the average itself meets every constraint, μ = 0." in done.out
    assert "CVXPY" not in done.out


def test_infeasible(fedpcd, infeasible):
    done = fedpcd("explain-round", infeasible, "infeasible")
    text = " ".join(done.out.split())
    assert "round 2 of 3" in text
    assert "status infeasible: clients 0, 1 contradict each other; the round followed FedAvg" in text
    assert "Farkas certificate: these clients pull exactly apart" in text
    assert "0 this round 0.50" in text
    assert "1 this round 0.50" in text
    assert "ok τ Σ λ ‖g̃‖² 0.10" in text
    assert "stationarity" not in text


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize(
    "options",
    [(), ("--verify",), ("--tau", "0.3", "--without", "2"), ("--tau-sweep",), ("--conflicts",), ("--all",),
     ("--client", "2", "--over-time"), ("--primary", "none")],
)  # fmt: skip
def test_no_line_is_too_wide_and_nothing_is_colored_in_a_pipe(fedpcd, with_history, monkeypatch, width, options):
    monkeypatch.setenv("COLUMNS", str(width))
    done = fedpcd("explain-round", with_history, *options)
    assert done.code == 0, done.err
    from rich.cells import cell_len

    assert max(cell_len(line) for line in done.out.splitlines()) <= width
    assert "\x1b" not in done.out
    assert "…" not in done.out


def test_marks_are_the_same_with_and_without_color(fedpcd, with_history, monkeypatch):
    plain = fedpcd("explain-round", with_history).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    colored = fedpcd("explain-round", with_history).out
    assert re.search(r"\x1b\[1;31m[^\n]*!\*", colored)  # short and active: bold and red
    monkeypatch.setenv("NO_COLOR", "1")
    uncolored = fedpcd("explain-round", with_history).out
    assert "31m" not in uncolored
    for text in (colored, uncolored):
        assert re.sub(r"\x1b\[[\d;]*m", "", text).split() == plain.split()


def test_selection_and_order(fedpcd, with_history):
    def clients(*options):
        out = fedpcd("explain-round", with_history, "--format", "csv", *options).out
        return [int(row["client_id"]) for row in csv.DictReader(io.StringIO(out))]

    assert clients("--sort", "client") == [0, 1, 2, 3]
    assert clients()[0] == 2
    assert clients("--active") == [2, 0]
    assert clients("--client", "1") == [1]
    assert clients("--sort", "age")[0] == 3


def test_json_holds_everything(fedpcd, with_history):
    document = json.loads(
        fedpcd("explain-round", with_history, "--verify", "--without", "2", "--format", "json").out
    )
    assert document["schema_version"] == 1
    found = document["explanation"]
    assert found["round"] == 3
    assert found["program"]["n_cached"] == 3
    assert len(found["program"]["gram"]) == 4
    assert found["checks"]["passed"]
    assert found["verification"]["agrees"]
    assert found["what_if"]["change"]["without"] == [2]
    assert found["what_if"]["program"]["status"] == "unchanged"
    assert len(found["tau_sweep"]["points"]) == 15
    assert found["record"]["client_ids"] == [3]
    assert len(found["program"]["conflicts"]["cosines"]) == 4
    assert len(found["program"]["plane"]["clients"]) == 4


def test_what_if_side_by_side(fedpcd, with_history):
    done = fedpcd("explain-round", with_history, "--without", "2", "--tau", "0.3")
    assert "What if: tau 0.3, without client 2" in done.out
    assert re.search(r"status +bent by 2 of 4 constraints +unchanged FedAvg: no client +", done.out)
    assert re.search(r"angle to FedAvg +\d+\.\d° +0\.0°", done.out)
    assert "The average keeps the clients that are left out" in done.out
    assert "left out" in done.out


def test_tau_sweep(fedpcd, infeasible):
    done = fedpcd("explain-round", infeasible, "1", "--tau-sweep")
    assert re.search(r"^ +0 +6\.1° +1 ", done.out, re.M)
    assert re.search(r"^ +1 +23\.6° +2 ", done.out, re.M)
    assert re.search(r"^ > +0\.1 ", done.out, re.M)
    assert "Feasible for every τ in [0, 1]" in done.out
    done = fedpcd("explain-round", infeasible, "2", "--tau-sweep")
    assert "Infeasible for every τ > 0" in done.out
    assert len(re.findall(r"^ [ >] +[\d.]+ .* infeasible +$", done.out, re.M)) == 14  # every τ but 0


def test_over_time(fedpcd, with_history):
    done = fedpcd("explain-round", with_history, "--client", "2", "--over-time")
    assert "Client 2: sampled in 1 of 3 rounds, cached in 1, active in" in done.out
    assert re.search(r"2  sampled +1\.00 ", done.out)
    assert re.search(r"^ ?!\*? +3  cached, 1 ago  1\.00 +-0\.87 +0\.1 +0\.10 .* 75\.0%", done.out, re.M)
    rows = json.loads(
        fedpcd("explain-round", with_history, "--client", "2", "--over-time", "--format", "json").out
    )
    assert [chapter["role"] for chapter in rows["story"]["rounds"]] == ["sampled", "cached"]


def test_a_rule_without_a_program(fedpcd, record_run):
    root = record_run(
        FedAvg(), [make_cohort([[3.0, 4.0], [0.0, 1.0]], n_examples=[1, 3], client_ids=[5, 7])], "plain",
        excluded=[Exclusion(client_id=4, reason="its update has NaN in 'w'")],
    )  # fmt: skip
    done = fedpcd("explain-round", root)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "left out client 4: its update has NaN in 'w'" in text
    assert "program none: 'fedavg' records no program" in text
    assert "5 1 25.0% 5.00 1.67" in text
    assert "7 3 75.0% 1.00 0.33" in text
    assert json.loads(fedpcd("explain-round", root, "--format", "json").out)["explanation"]["program"] is None
    done = fedpcd("explain-round", root, "--tau", "0.1", "--conflicts")
    assert done.code == 2
    assert done.err == (
        "error: --tau, --conflicts can't be used: 'fedavg' recorded no program in this round.\n"
        "  Leave it out to see the cohort; --client ID --over-time works for every rule.\n"
    )
    done = fedpcd("explain-round", root, "--client", "7", "--over-time")
    assert "Client 7: sampled in 1 of 1 round, cached in 0, active in 0" in done.out


def test_what_a_rule_says_of_each_client_is_a_column(fedpcd, record_run):
    root = record_run(FedAvg(), [make_cohort([[3.0, 4.0], [0.0, 1.0]], client_ids=[5, 7])], "plain")
    path = root / "rounds.jsonl"
    own = '"diagnostics":{"weights":{"5":0.25,"7":0.75},"kept":[7],"by_layer":{"a":1}}'
    path.write_text(path.read_text().replace('"diagnostics":{}', own))
    done = fedpcd("explain-round", root)
    # The mean is (1.5, 2.5): its cosine to (3, 4) is 14.5 / (5 sqrt(8.5)) = 0.9947.
    assert re.search(r"^ +5 +1 +50\.0% +5\.00 +1\.67 +0\.99 +0\.25", done.out, re.M)
    assert re.search(r"^kept +7 *$", done.out, re.M)
    assert re.search(r"^by layer +a: 1 *$", done.out, re.M)
    (first, _) = csv.DictReader(io.StringIO(fedpcd("explain-round", root, "--format", "csv").out))
    assert (first["client_id"], first["weights"]) == ("5", "0.25")


def test_rounds_without_a_step(fedpcd, record_run):
    cohorts = [
        make_cohort([[1.0, 0.0], [-1.0, 0.0]], n_clients=2),
        make_cohort([[0.0, 0.0], [0.0, 0.0]], round_index=2),
    ]
    root = record_run(FedPCD(history_rounds=0), cohorts, "rest")
    text = " ".join(fedpcd("explain-round", root, "1", "--verify").out.split())
    assert "status no step: the average is zero" in text
    assert "angle – between FedAvg and the update" in text
    assert "The average is zero: no program was solved, there is nothing to check." in text
    text = " ".join(fedpcd("explain-round", root, "2").out.split())
    assert "zero clients 0, 1 sent a zero update: no constraint" in text
    assert "The round has no constraint." in text


def test_a_relaxed_round(fedpcd, record_run):
    root = record_run(FedPCD(tau=0.1, on_infeasible="relax"), [in_the_plane(0, 180, 80)], "relaxed")
    text = " ".join(fedpcd("explain-round", root, "infeasible").out.split())
    assert "infeasible: clients 0, 1 contradict each other; tau was cut from 0.1 to 0, bent by" in text
    assert "ok stationarity" in text
    assert "Farkas certificate" in text
    assert "also" not in text


def test_a_run_in_progress(fedpcd, record_run):
    root = record_run(FedPCD(tau=0.25), [in_the_plane(10, 45, 155)], "going", state=RunState.RUNNING, n_rounds=50)
    with (root / "rounds.jsonl").open("a") as file:
        file.write('{"round":2,"client_i')
    status = json.loads((root / "status.json").read_text())
    (root / "status.json").write_text(json.dumps(status | {"pid": 1}))
    done = fedpcd("explain-round", root)
    assert done.code == 0, done.err
    assert "round       1 of 50, run running: going, seed 1" in done.out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("nowhere",), 2, "error: nowhere is not a run: no such folder.\n"),
        (("history", "9"), 2, "error: history has no round 9; it has rounds 1 to 3.\n"),
        (("history", "worst"), 2, "error: ROUND must be a number or one of last, most-bent, most-active, infeasible; found 'worst'.\n"),
        (("history", "infeasible"), 1, "error: history: no round was infeasible; all 3 programs had a solution.\n"),
        (("history", "--tau", "1.5"), 2, "error: --tau must be in [0, 1]; found 1.5.\n"),
        (("history", "--tau", "nan"), 2, "error: --tau must be in [0, 1]; found nan.\n"),
        (("history", "--history", "-1"), 2, "error: --history must be at least 0; found -1.\n"),
        (("history", "--history", "6"), 2, "error: --history must be at most 5, the window of the run; found 6.\n  Older updates were never recorded; train with a larger aggregator.history_rounds.\n"),
        (("history", "--without", "1,x"), 2, "error: --without must be client ids such as 12,40; found '1,x'.\n"),
        (("history", "--without", "1,9"), 2, "error: --without names 9, without a constraint in round 3; clients that have one: 0, 1, 2, 3.\n"),
        (("history", "--client", "9"), 2, "error: --client 9 has no constraint in round 3; clients that have one: 0, 1, 2, 3.\n  --client 9 --over-time shows its rounds.\n"),
        (("history", "--client", "9", "--over-time"), 2, "error: --client must be in [0, 3], the clients of the run; found 9.\n"),
        (("history", "--figure", "x.gif"), 2, "error: --figure must end in .png, .svg, .pdf; found 'x.gif'.\n"),
        (("history", "--html", "x.pdf"), 2, "error: --html must end in .html or .htm; found 'x.pdf'.\n"),
        (("history", "--over-time"), 2, "error: --over-time needs a client.\n  Name one, as in --client 12 --over-time.\n"),
    ],
)  # fmt: skip
def test_errors_are_text(fedpcd, with_history, options, code, message):
    done = fedpcd("explain-round", *options)
    assert (done.code, done.out, done.err) == (code, "", message)


def test_a_folder_that_is_no_run(fedpcd, tmp_path):
    (tmp_path / "empty").mkdir()
    done = fedpcd("explain-round", "empty")
    assert done.code == 2
    assert done.err.startswith(
        "error: empty is not a run: it has no status.json, and none is below it.\n  Name a folder that"
    )


def test_a_folder_with_one_run_stands_for_it_and_one_with_several_does_not(fedpcd, record_run, worked):
    root = worked(0.25)
    assert "round       1 of 1: worked-0.25-10, seed 1" in fedpcd("explain-round", root.parent).out
    worked(0.0)
    done = fedpcd("explain-round", ".")
    assert done.code == 2
    assert done.err == "error: . holds 2 runs: worked-0.0-10, worked-0.25-10.\n  Name one of them.\n"


def test_a_newer_format(fedpcd, with_history):
    path = with_history / "status.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 99'))
    done = fedpcd("explain-round", with_history)
    assert done.code == 1
    assert "run format 99 is newer than this fedpcd reads (1).\n  Use the fedpcd that wrote it" in done.err


def test_a_damaged_record(fedpcd, with_history):
    path = with_history / "rounds.jsonl"
    path.write_text(path.read_text().replace('{"round":2', '{"ro:2'))
    done = fedpcd("explain-round", with_history)
    assert done.code == 1
    assert re.search(r"rounds\.jsonl:2: damaged record \(.*\)\.\n  Run the recipe again with --force\.", done.err)


def test_a_damaged_recipe(fedpcd, with_history):
    (with_history / "recipe.yaml").write_text("name: x\n")
    done = fedpcd("explain-round", with_history)
    assert done.code == 1
    assert re.match(r"error: .*recipe\.yaml: damaged \(missing 'aggregator'\)\.\n$", done.err)


def test_files_beside_the_screen(fedpcd, with_history, tmp_path):
    done = fedpcd("explain-round", with_history, "--figure", "out/round.svg", "--html", "out/round.html")
    assert done.code == 0, done.err
    assert done.err == "Figure written to out/round.svg\nPage written to out/round.html\n"
    assert "<svg" in (tmp_path / "out" / "round.svg").read_text()
    assert "history, round 3" in (tmp_path / "out" / "round.svg").read_text()
    assert (tmp_path / "out" / "round.html").read_text().startswith("<!doctype html>")
    assert "bent by 2 of 4 constraints" in done.out
    (tmp_path / "plain").write_text("")
    modes = {path.stat().st_mode for path in (tmp_path / "plain", *(tmp_path / "out").iterdir())}
    assert len(modes) == 1  # as readable as any other file


def test_it_is_quick_and_loads_nothing_heavy(with_history):
    code = (
        "import sys; sys.argv = ['fedpcd', 'explain-round', {root!r}{more}]\n"
        "from fedpcd_cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'cvxpy', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    for more in ("", ", '--tau', '0.3'", ", '--tau-sweep', '--conflicts'", ", '--client', '2', '--over-time'"):
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code.format(root=str(with_history), more=more)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == "[]", more
        assert time.perf_counter() - started < 5  # a second where nothing else runs; loading torch alone takes two
