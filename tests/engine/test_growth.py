"""The warning about updates that grow without bound."""

from __future__ import annotations

from fedpcd_cli.engine.growth import GrowthWatch


def test_warns_once_when_the_median_grew_twentyfold_within_ten_rounds():
    watch = GrowthWatch()
    assert watch.observe([13.0, 12.0, 14.0]) is None
    assert watch.observe([60.0]) is None
    text = watch.observe([260.0, 1.0, 270.0])
    assert text is not None
    assert "20-fold" in text
    assert "smaller local.lr" in text
    assert watch.observe([9000.0]) is None


def test_slow_growth_is_fine_and_rounds_older_than_ten_are_forgotten():
    watch = GrowthWatch()
    norm = 1.0
    for _ in range(60):
        assert watch.observe([norm]) is None
        norm *= 1.3  # 1.3^10 = 13.8 within ten rounds


def test_growth_from_a_nearly_converged_model_is_no_alarm():
    watch = GrowthWatch()
    for norm in (5.0, 1.0, 0.1, 0.02, 0.7):
        assert watch.observe([norm]) is None
    assert watch.observe([5.5]) is not None


def test_zero_updates_and_empty_rounds_do_not_count():
    watch = GrowthWatch()
    assert watch.observe([]) is None
    assert watch.observe([0.0]) is None
    assert watch.observe([5.0]) is None


def test_state_survives_a_restart():
    watch = GrowthWatch()
    watch.observe([1.0])
    assert GrowthWatch(**watch.state()).observe([21.0]) is not None
