"""Which evaluation is shown."""

from __future__ import annotations

import pytest

from fedpcd_cli.errors import StoreError, UsageError
from fedpcd_cli.report.choose import At
from fedpcd_cli.report.measures import MEASURES
from fedpcd_cli.report.table import tables

CURVE = {0: 5, 5: 30, 10: 70, 15: 50, 20: 60}


def value(report, key="mean_accuracy"):
    return report.blocks[0].block.groups[0].summary(key).mean


@pytest.mark.parametrize(
    ("at", "expected", "rounds"),
    [
        ("last", 0.6, (20,)),
        ("best", 0.7, (10,)),
        ("5", 0.3, (5,)),
        ("0", 0.05, (0,)),
        ("mean-of-last-3", 0.6, (10, 15, 20)),
        ("mean-of-last-2", 0.55, (15, 20)),
    ],
)
def test_each_way(make_run, report_of, at, expected, rounds):
    make_run(curve=CURVE)
    report = report_of(at=At.parse(at))
    assert value(report) == pytest.approx(expected)
    assert report.members[0].chosen.rounds == rounds


def test_best_takes_every_number_from_one_round_and_says_where_it_was_chosen(make_run, report_of):
    make_run(curve={0: 5, 10: [100, 100, 100, 0], 20: [60, 60, 60, 60]})
    by_mean = report_of(at=At.parse("best"))
    assert (value(by_mean), value(by_mean, "worst10_accuracy")) == (0.75, 0.0)
    by_worst = report_of(at=At.parse("best"), by=MEASURES["worst10_accuracy"])
    assert (value(by_worst), value(by_worst, "worst10_accuracy")) == (0.6, 0.6)
    assert "best evaluation by Mean, chosen on the test data" in " ".join(
        tables(by_mean.blocks[0], by_mean.options)[0].caption
    )
    by_loss = report_of(at=At.parse("best"), by=MEASURES["loss"])
    assert by_loss.members[0].chosen.rounds == (10,)  # the loss falls with right answers: 300 of 400 against 240


def test_a_round_that_an_unfinished_run_reached_counts_and_is_said(make_run, report_of):
    make_run(seed=1, curve=CURVE)
    make_run(seed=2, curve={0: 5, 5: 50}, state="interrupted", reached=7)
    report = report_of(at=At.parse("5"))
    assert value(report) == pytest.approx(0.4)
    text = " ".join(tables(report.blocks[0], report.options)[0].caption)
    assert (
        "Counted though unfinished, as they were evaluated at this round: fedavg seed 2 (interrupted at 7 of 20)."
        in text
    )


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("7", "has no evaluation at round 7; it has rounds 0, 5, 10, 15, 20."),
        ("mean-of-last-9", "has 4 evaluations after round 0; mean-of-last-9 needs 9."),
    ],
)
def test_a_missing_round_is_one_line_and_other_runs_are_shown(make_run, report_of, at, message):
    make_run(curve=CURVE)
    with pytest.raises(StoreError, match=message):
        report_of(at=At.parse(at))
    make_run("fedpcd", curve=dict.fromkeys([*range(1, 20)], 50) | {20: 1})
    report = report_of(at=At.parse(at))
    assert [g.label for g in report.blocks[0].block.groups] == ["fedpcd"]
    assert report.left_out[0].endswith(message)


@pytest.mark.parametrize("text", ["", "first", "-1", "mean-of-last-0", "mean-of-last-", "2.5"])
def test_other_words_are_refused(text):
    with pytest.raises(UsageError) as caught:
        At.parse(text)
    assert caught.value.message == (
        f"--at must be last, best, a round or mean-of-last-K (K at least 1); found '{text}'."
    )
