"""How much budget is enough: by hand, against scikit-learn, and what a pilot cannot tell."""

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression

from bayescrowd.budgeted.evaluation.planning import _antitonic, _crossings, plan_budget

BUDGETS = (50, 100, 200, 400)


def curve_of(gaps, *, n_repeats=8, spread=0.0, best=0.1, seed=0):
    """Errors of all data around `best`, and of a policy at some gaps above, repeat by repeat."""
    rng = np.random.default_rng(seed)
    rows = []
    for repeat in range(n_repeats):
        base = best + 0.02 * rng.normal()
        for budget, gap in zip(BUDGETS, gaps, strict=True):
            rows.append(("mine", 2, budget, repeat, base + gap + spread * rng.normal()))
            rows.append(("all data", 2, budget, repeat, base))
    return pd.DataFrame(rows, columns=["policy", "n_features", "budget", "repeat", "error"])


def test_crossing_by_hand():
    # from .08 at 100 to .02 at 200: .05 is half way, at 100 sqrt(2)
    plan = plan_budget(curve_of((0.2, 0.08, 0.02, 0.0)), policy="mine", within=0.05)
    assert plan.verdict == "reached"
    assert plan.budget == pytest.approx(100 * np.sqrt(2))
    # the repeats differ in level only, which pairing removes
    assert (plan.lower, plan.upper) == pytest.approx((plan.budget, plan.budget))
    assert plan.gaps["gap"].tolist() == pytest.approx([0.2, 0.08, 0.02, 0.0])
    assert plan.gaps["standard_error"].max() < 1e-12


def test_monotone_means_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    means = rng.normal(size=(20, 7))
    theirs = [IsotonicRegression(increasing=False).fit_transform(np.arange(7), m) for m in means]
    np.testing.assert_allclose(_antitonic(means), theirs, atol=1e-12)


def test_the_smallest_budget_may_be_enough():
    plan = plan_budget(curve_of((0.03, 0.02, 0.0, 0.0)), policy="mine", within=0.05)
    assert (plan.verdict, plan.budget, plan.lower) == ("reached", 50, 0)


def test_not_reached():
    plan = plan_budget(curve_of((0.3, 0.2, 0.15, 0.1)), policy="mine", within=0.05)
    assert plan.verdict == "not reached"
    assert np.isinf(plan.budget)
    assert plan.reason.startswith("at the largest simulated budget, 400, the error is still 0.100")


def test_a_pilot_may_be_too_noisy():
    noisy = curve_of((0.2, 0.1, 0.02, 0.0), spread=0.2)
    plan = plan_budget(noisy, policy="mine", within=0.02)
    assert plan.verdict == "pilot too small"
    # control: with a tolerance that such noise leaves room for, there is an answer
    assert plan_budget(noisy, policy="mine", within=0.4).verdict == "reached"


def test_a_pilot_may_be_too_small_to_know_the_best():
    curve = curve_of((0.2, 0.1, 0.02, 0.0))
    half = curve.assign(error=curve["error"] + 0.06)
    assert plan_budget(curve, policy="mine", within=0.05, half=half).verdict == "pilot too small"
    assert plan_budget(curve, policy="mine", within=0.07, half=half).verdict == "reached"


def test_intervals_cover():
    # The mean gap falls by .05 per doubling: .05 is reached at exactly 200. Each interval is of 24
    # noisy repeats; 30 of them cover in 90 %, with a standard error of 5.5 %.
    covers = []
    for seed in range(30):
        curve = curve_of((0.15, 0.10, 0.05, 0.0), n_repeats=24, spread=0.06, seed=seed)
        plan = plan_budget(curve, policy="mine", within=0.05, seed=seed)
        covers.append(plan.lower <= 200 <= plan.upper)
    assert np.mean(covers) > 0.9 - 3 * 0.055


def test_crossings_of_several():
    gaps = np.array([[0.2, 0.1, 0.0, 0.0], [0.04, 0.03, 0.02, 0.0], [0.3, 0.3, 0.3, 0.3]])
    found = _crossings(np.array(BUDGETS, dtype=float), gaps, 0.05)
    np.testing.assert_allclose(found, [100 * np.sqrt(2), 50, np.inf])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": 0.0}, "within=0.0: expected a number between 0 and 1"),
        ({"policy": "yours"}, "no policy 'yours' in the curve; expected one of mine, all data"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        plan_budget(curve_of((0.2, 0.1, 0.1, 0.0)), **{"policy": "mine", "within": 0.1, **options})


def test_needs_repeats_and_one_size():
    few = curve_of((0.2, 0.1, 0.1, 0.0), n_repeats=3)
    with pytest.raises(ValueError, match="3 repeats: expected at least 4"):
        plan_budget(few, policy="mine", within=0.1)
    two = pd.concat([few, few.assign(n_features=3)])
    with pytest.raises(ValueError, match="several numbers of features"):
        plan_budget(two, policy="mine", within=0.1)
