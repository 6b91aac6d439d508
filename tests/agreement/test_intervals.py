"""Intervals of agreement: closed forms, published standard errors, and coverage by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import bayescrowd as bc
from bayescrowd.agreement import agreement_table, intervals, task_sums
from bayescrowd.agreement.measures import MEASURES

METRICS = ["nominal", "ordinal", "interval"]


def matrix(rows, classes=None):
    return bc.Annotations.from_matrix(rows, classes=classes)


def abstractors():
    """Two abstractors' labels of 100 pregnancies (Gwet 2014), data `cont3x3abstractors`."""
    counts = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
    return matrix([[i, j] for i in range(3) for j in range(3) for _ in range(counts[i][j])])


@pytest.mark.parametrize("metric", METRICS)
def test_the_table_holds_the_measures(metric):
    ann = bc.simulate.crowd(60, 8, 4, labels_per_task=3, seed=3).annotations
    table = agreement_table(ann, metric=metric)
    assert list(table.index) == [*MEASURES]
    assert table.index.name == "measure"
    assert list(table.columns) == ["value", "lower", "upper"]
    for name in MEASURES:
        options = {"metric": metric} if name == "krippendorff_alpha" else {}
        expected = getattr(bc.agreement, name)(ann, **options)
        assert table.loc[name, "value"] == pytest.approx(expected, rel=1e-9)
    assert (table["lower"] < table["value"]).all()
    assert (table["value"] < table["upper"]).all()


# Closed form


def test_two_labels_per_task_make_a_proportion():
    """With two labels a task agrees or it does not: Wilson's interval for 80 of 100 tasks."""
    ann = matrix([["a", "a"]] * 40 + [["b", "b"]] * 40 + [["a", "b"]] * 20)
    found = agreement_table(ann).loc["percent_agreement"]
    z = norm.ppf(0.975)
    half = z * np.sqrt(0.8 * 0.2 / 100 + z**2 / 40_000) / (1 + z**2 / 100)
    centre = (0.8 + z**2 / 200) / (1 + z**2 / 100)
    # Ends lie on the grid of hundredths; the levels are widened by 2 % for 100 tasks.
    assert found["lower"] == pytest.approx(centre - half, abs=0.015)
    assert found["upper"] == pytest.approx(centre + half, abs=0.015)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_if_all_labels_agree_the_lower_end_is_that_of_clopper_and_pearson(level):
    n = 30
    table = agreement_table(matrix([["a"] * 3] * 20 + [["b"] * 3] * 10), level)
    assert (table["value"] == 1).all()
    assert (table["upper"] == 1).all()
    lowest = table.loc["percent_agreement", "lower"]
    # At that share, n tasks of n agree with the probability left to this end.
    assert binom.pmf(n, n, lowest) == pytest.approx((1 - level) / 2)
    expected = 1 - (1 - lowest) / (1 - (2 / 3) ** 2 - (1 / 3) ** 2)
    assert table.loc["fleiss_kappa", "lower"] == pytest.approx(expected)


def test_if_all_labels_agree_distances_count():
    rows = [[1, 1]] * 10 + [[2, 2]] * 10 + [[5, 5]] * 10
    nominal, interval = (agreement_table(matrix(rows), metric=m) for m in ("nominal", "interval"))
    share = 1 - nominal.loc["percent_agreement", "lower"]
    # Of 60 labels, twenty each are 1, 2 and 5: E is the mean squared distance of two of them.
    expected = 2 * 20 * 20 * (1 + 9 + 16) / (60 * 59)
    lower = interval.loc["krippendorff_alpha", "lower"]
    assert lower == pytest.approx(1 - share * 16 / expected)
    pd.testing.assert_frame_equal(nominal.iloc[:3], interval.iloc[:3])


# Undefined


def test_nothing_is_defined_without_two_labels_of_a_task():
    table = agreement_table(matrix([["a", None], [None, "b"]]))
    assert list(table.index) == [*MEASURES]
    assert table.isna().all(axis=None)


def test_one_class_used():
    table = agreement_table(matrix([["a", "a"]] * 20, classes=["a", "b"]))
    assert table.loc[["fleiss_kappa", "krippendorff_alpha"]].isna().all(axis=None)
    assert table.loc[["percent_agreement", "gwet_ac1"], "value"].tolist() == [1, 1]
    assert table.loc[["percent_agreement", "gwet_ac1"], "lower"].notna().all()


def test_one_task_has_no_interval():
    table = agreement_table(matrix([["a", "b", "b"], ["a", None, None]]))
    assert table["value"].notna().all()
    assert table[["lower", "upper"]].isna().all(axis=None)


def test_a_measure_that_resamples_often_leave_undefined_has_no_interval():
    """A resample lacks the one task with a 'b' with probability (19/20)^20 = 36 %."""
    table = agreement_table(matrix([["a", "a"]] * 19 + [["a", "b"]]))
    assert table["value"].notna().all()
    assert table.loc[["fleiss_kappa", "krippendorff_alpha"], "lower"].isna().all()
    assert table.loc[["percent_agreement", "gwet_ac1"], "lower"].notna().all()


def test_tasks_that_are_all_alike_have_no_interval():
    table = agreement_table(matrix([["a", "b"], ["b", "a"]] * 10))
    assert table.loc["fleiss_kappa", "value"] == -1
    assert table[["lower", "upper"]].isna().all(axis=None)


# Invariants


@pytest.mark.parametrize("most", [2_000, 30])
def test_neither_order_nor_names_matter(monkeypatch, most):
    monkeypatch.setattr(task_sums, "MOST_UNITS", most)
    frame = bc.simulate.crowd(100, 8, 3, labels_per_task=5, seed=6).annotations.to_frame()
    renamed = frame.sample(frac=1, random_state=1).assign(
        task=lambda f: (31 * f["task"]) % 100,
        worker=lambda f: 7 - f["worker"],
        label=lambda f: f["label"].map({0: "b", 1: "c", 2: "a"}),
    )
    pd.testing.assert_frame_equal(agreement_table(frame), agreement_table(renamed))


def test_seed_and_level():
    ann = bc.simulate.crowd(100, 8, 3, labels_per_task=3, seed=6).annotations
    one, other = agreement_table(ann, seed=1), agreement_table(ann, seed=2)
    pd.testing.assert_frame_equal(one, agreement_table(ann, seed=1))
    assert not one.equals(other)
    narrow, wide = agreement_table(ann, 0.5), agreement_table(ann, 0.999)
    assert (wide["lower"] < narrow["lower"]).all()
    assert (narrow["upper"] < wide["upper"]).all()


def test_resampling_in_parts_changes_nothing(monkeypatch):
    ann = bc.simulate.crowd(100, 8, 3, labels_per_task=3, seed=6).annotations
    whole = agreement_table(ann, metric="ordinal")
    monkeypatch.setattr(intervals, "MOST_CELLS", 100)
    pd.testing.assert_frame_equal(whole, agreement_table(ann, metric="ordinal"))


@pytest.mark.parametrize("metric", ["nominal", "ordinal"])
def test_random_groups_of_tasks_give_about_the_same_intervals(monkeypatch, metric):
    """The standard error from 200 groups is off by 1 / sqrt(400) = 5 %, with one of 2,000 tasks
    by 2 %, and an end by about as much again."""
    ann = bc.simulate.crowd(2_000, 30, 4, labels_per_task=4, seed=3).annotations
    one = agreement_table(ann, metric=metric)
    monkeypatch.setattr(task_sums, "MOST_UNITS", 30)  # there are 35 kinds of tasks
    assert len(one) == 4
    monkeypatch.setattr(task_sums, "MOST_UNITS", 30)
    other = agreement_table(ann, metric=metric)
    width = one["upper"] - one["lower"]
    np.testing.assert_allclose(one["value"], other["value"], rtol=1e-9)
    for end in ("lower", "upper"):
        # With 30 groups: 13 % for the standard error, times 2 for the half-width, at 3 sigma.
        assert (np.abs(one[end] - other[end]) < 0.25 * width).all()


# Reference


@pytest.mark.parametrize("level", [0.6827, 0.95])
def test_the_width_is_that_of_published_standard_errors(level):
    """Standard errors by linearisation, as printed by the R package irrCAC for the same data.

    2,000 resamples know a standard error to 1.6 % and a quantile to about 4 %; the levels are
    widened by 2 % for 100 tasks, and skewness makes the interval longer.
    """
    table = agreement_table(abstractors(), level)
    errors = np.array([0.03128898, 0.05905473, 0.04321747, 0.05905473])
    expected = 2 * norm.ppf((1 + level) / 2) * errors
    np.testing.assert_allclose(table["upper"] - table["lower"], expected, rtol=0.12)


# Coverage


def drawn_table(rng, n_tasks, n_labels, n_classes, accuracy, prevalence):
    """Labels of one kind of crowd: three in ten tasks are hard, which makes labels dependent."""
    truth = rng.choice(n_classes, size=n_tasks, p=prevalence)[:, None]
    right = accuracy - 0.25 * (rng.random(n_tasks) < 0.3)[:, None]
    shape = n_tasks, n_labels
    wrong = (truth + rng.integers(1, n_classes, size=shape)) % n_classes
    labels = np.where(rng.random(shape) < right, truth, wrong)
    task, worker = (codes.ravel() for codes in np.indices(shape))
    return bc.Annotations.from_codes(
        task, worker, labels.ravel(), tasks=n_tasks, workers=n_labels, classes=n_classes
    )


CROWDS = [
    (20, 5, 3, 0.8, [0.5, 0.3, 0.2]),
    (10, 4, 3, 0.85, [0.4, 0.4, 0.2]),
    (20, 3, 2, 0.9, [0.8, 0.2]),
    (50, 3, 2, 0.95, [0.9, 0.1]),
    (50, 3, 2, 0.9, [0.5, 0.5]),
    (100, 2, 3, 0.8, [0.5, 0.3, 0.2]),
    (200, 4, 4, 0.7, [0.4, 0.3, 0.2, 0.1]),
]
"""Kinds of crowds: tasks, labels of a task, classes, accuracy, prevalence."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "metric"),
    [*((kind, "nominal") for kind in CROWDS), (CROWDS[0], "ordinal"), (CROWDS[0], "interval")],
)
def test_coverage(kind, metric):
    """Of 400 crowds, 95 % of the intervals hold the value of a crowd of 300,000 tasks.

    The bootstrap promises that only as the number of tasks grows: the rate may be as low as 93 %
    less three standard errors of 1.1 %. The plain percentile interval has 88 % for ten tasks.
    """
    rng = np.random.default_rng(5)
    expected = agreement_table(drawn_table(rng, 300_000, *kind[1:]), metric=metric)["value"]
    n_repeats, held, known = 400, np.zeros(4), np.zeros(4)
    for _ in range(n_repeats):
        table = agreement_table(drawn_table(rng, *kind), metric=metric)
        held += (table["lower"] <= expected) & (expected <= table["upper"])
        known += table["lower"].notna()
    print(kind, metric, (held / known).round(3).tolist(), (known / n_repeats).round(3).tolist())
    assert (known >= 0.75 * n_repeats).all()
    assert (held / known >= 0.93 - 3 * np.sqrt(0.95 * 0.05 / n_repeats)).all()
