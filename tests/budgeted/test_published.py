"""Nursery and breast-cancer: reference numbers of independent prototypes, 64 splits each.

The references are means with standard errors of about .003 to .017. A mean over fewer splits may
differ from them by three standard errors of the difference.
"""

from functools import partial

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.evaluation.curve_tables import curve_means, paired_differences

BASELINES = [bc.RoundRobin, bc.BiasedRobin, bc.TsGreedy, bc.BLeafs]

ALL_DATA = [
    ("nursery", 2, 0.169, {"health", "has_nurs"}),
    ("nursery", 4, 0.124, {"health", "has_nurs", "parents", "social"}),
    ("breast-cancer", 2, 0.054, {"cell_size_uniformity", "cell_shape_uniformity"}),
]


@pytest.mark.parametrize(("name", "n_features", "error", "selected"), ALL_DATA)
def test_all_data(published, name, n_features, error, selected):
    # a split's error has a standard deviation of .007 (nursery, 10 splits) or .017 (64 splits)
    repeats = 10 if name == "nursery" else 64
    curve = bc.budget_curve(
        {}, published(name), [1], n_features, repeats=repeats, all_data=True, n_jobs=1
    )
    assert curve["error"].mean() == pytest.approx(error, abs=0.005)
    sets = [frozenset(names) for names in curve["selected"]]
    assert max(sets, key=sets.count) == selected


REFERENCE = {
    ("breast-cancer", 2, 100): ([0.132, 0.095, 0.114, 0.157], 0.007),
    ("nursery", 2, 200): ([0.260, 0.248, 0.237, 0.256], 0.008),
    ("nursery", 4, 200): ([0.281, 0.244, 0.242, 0.288], 0.007),
}


def assert_near_reference(table, name, n_features, budget, repeats):
    errors, reference_error = REFERENCE[name, n_features, budget]
    curve = bc.budget_curve(BASELINES, table, [budget], n_features, repeats=repeats, n_jobs=1)
    means = curve_means(curve)
    off = np.abs(means["error"].to_numpy() - errors)
    assert (off < 3 * np.hypot(means["standard_error"], reference_error)).all(), means
    return means


def test_baselines_on_breast_cancer(published):
    means = assert_near_reference(published("breast-cancer"), "breast-cancer", 2, 100, 6)
    spent = means["spent"].to_numpy()
    assert (spent[:3] == 100).all()
    assert spent[3] == pytest.approx(60, abs=18)  # from run to run 15: three standard errors


@pytest.mark.slow
@pytest.mark.parametrize(("explore", "error"), [("thompson", 0.222), ("biased-robin", 0.235)])
def test_explore_then_commit_at_its_reference(published, explore, error):
    # .210 +- .006 and .230 +- .007 over 64 splits; with the first choice kept, .274 and .291
    policy = partial(bc.ExploreThenCommit, explore=explore)
    curve = bc.budget_curve({"it": policy}, published("nursery"), [200], 2, repeats=24, n_jobs=1)
    (row,) = curve_means(curve).itertuples()
    assert row.error == pytest.approx(error, abs=3 * np.hypot(row.standard_error, 0.008))


@pytest.mark.slow
@pytest.mark.parametrize("cell", REFERENCE, ids=lambda cell: f"{cell[0]}-{cell[1]}-{cell[2]}")
def test_baselines_at_the_references(published, cell):
    assert_near_reference(published(cell[0]), *cell, repeats=16)


def test_budgeted_selection_on_breast_cancer(published):
    # the prototype's .090 and our .100 over 64 splits each; the best baseline has .121 to .128
    curve = bc.budget_curve(
        [bc.BudgetedSelection], published("breast-cancer"), [50], 2, repeats=6, n_jobs=1
    )
    (row,) = curve_means(curve).itertuples()
    assert row.error == pytest.approx(0.095, abs=3 * np.hypot(row.standard_error, 0.006))


@pytest.mark.slow
def test_budgeted_selection_is_ahead_of_the_best_baseline(published):
    # of `BiasedRobin`, the best of the four here: .026 +- .005 over 64 other splits
    policies = [bc.BudgetedSelection, *BASELINES]
    curve = bc.budget_curve(
        policies, published("breast-cancer"), [100], 2, repeats=20, n_jobs=1, seed=42
    )
    differences = paired_differences(curve, "BudgetedSelection")
    ahead, error = differences.loc[("BiasedRobin", 2, 100)]
    assert ahead == pytest.approx(0.026, abs=3 * np.hypot(error, 0.005))
    assert (differences["difference"] > -differences["standard_error"]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n_features", "budget", "repeats"), [(2, 100, 20), (4, 200, 10)])
def test_budgeted_selection_is_not_behind_on_nursery(published, n_features, budget, repeats):
    # over 64 other splits ahead of the best of the four by .032 +- .011 and .021 +- .004: one
    # standard error behind is two and a half, or three, of these few from there
    policies = [bc.BudgetedSelection, *BASELINES]
    curve = bc.budget_curve(
        policies, published("nursery"), [budget], n_features, repeats=repeats, n_jobs=1, seed=77
    )
    differences = paired_differences(curve, "BudgetedSelection")
    assert (differences["difference"] > -differences["standard_error"]).all(), differences
