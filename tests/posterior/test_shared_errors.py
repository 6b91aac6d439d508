"""Errors of raters on the same task: by hand, without false alarms, and found on panels."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.models.dawid_skene import Labels
from bayescrowd.posterior import shared_errors
from bayescrowd.posterior.container import assemble, dataset_of
from bayescrowd.posterior.shared_errors import (
    SharedErrors,
    check_shared_errors,
    error_correlation,
    fit_problems,
)

OPTIONS = {"chains": 2, "draws": 300, "predictive": False, "log_likelihood": False}


def panel(n_tasks=300, n_workers=8, *, share=0.3, seed=0):
    """Binary labels; on a share of the tasks each rater is right with 0.4 instead of 0.9."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_tasks)
    accuracy = np.where(rng.random(n_tasks) < share, 0.4, 0.9)[:, None]
    is_right = rng.random((n_tasks, n_workers)) < accuracy
    return bc.Annotations.from_matrix(np.where(is_right, truth[:, None], 1 - truth[:, None]))


def independent(n_tasks=300, n_workers=8, *, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_tasks)
    is_right = rng.random((n_tasks, n_workers)) < rng.uniform(0.6, 0.9, size=n_workers)
    return bc.Annotations.from_matrix(np.where(is_right, truth[:, None], 1 - truth[:, None]))


def correlation_by_hand(item, worker, label, truth):
    """The formula with loops over pairs."""
    wrong = (label != truth[item]).astype(float)
    rate = np.zeros(len(item))
    for i in range(len(item)):
        of_class = truth[item] == truth[item[i]]
        everyone = (wrong[of_class].sum() + 1) / (of_class.sum() + 2)
        own = of_class & (worker == worker[i])
        weight = shared_errors.SHRINKAGE
        rate[i] = (wrong[own].sum() + weight * everyone) / (own.sum() + weight)
    top = bottom = 0.0
    for i in range(len(item)):
        for j in range(len(item)):
            if item[i] == item[j] and worker[i] != worker[j]:
                top += (wrong[i] - rate[i]) * (wrong[j] - rate[j])
                bottom += np.sqrt(rate[i] * (1 - rate[i]) * rate[j] * (1 - rate[j]))
    return top / bottom


def test_the_correlation_is_that_of_loops_over_pairs():
    rng = np.random.default_rng(1)
    # worker 0 labels item 0 twice: these two labels are no pair
    item, worker = (np.concatenate([codes, [0]]) for codes in np.divmod(np.arange(40), 4))
    label, truth = rng.integers(3, size=41), rng.integers(3, size=10)
    _, pairs = np.unique(item * 4 + worker, return_inverse=True)
    found = error_correlation(
        Labels(*map(jnp.asarray, (item, worker, label))),
        jnp.asarray(truth),
        jnp.asarray(pairs),
        n_workers=4,
        n_classes=3,
    )
    # float32 sums of forty terms
    assert float(found) == pytest.approx(correlation_by_hand(item, worker, label, truth), rel=1e-4)


def test_summaries_by_hand():
    found = SharedErrors(np.array([0.3, 0.2, 0.1]), np.array([0.0, 0.1, 0.2]), n_votes=5.0)
    assert found.excess == pytest.approx(0.1)
    assert found.inflation == pytest.approx(0.4)
    assert found.p_value == pytest.approx(1 / 3)
    assert found.z == pytest.approx(0.1 / np.std([0.3, 0.1, -0.1]))
    assert found.fits
    assert fit_problems(found, model="dawid_skene") == []


def test_what_is_significant_but_does_not_matter_is_no_problem():
    noise = np.random.default_rng(0).normal(0, 1e-4, size=100)
    small = SharedErrors(0.01 + noise, noise[::-1], n_votes=4.0)
    assert small.z > 10
    assert small.fits
    (problem,) = fit_problems(small._replace(n_votes=40.0), model="dawid_skene")
    assert "correlate by 0.01, where the model expects" in problem
    assert "task_subtypes" in problem
    assert (
        "task_subtypes" not in fit_problems(small._replace(n_votes=40.0), model="task_subtypes")[0]
    )


def test_independent_crowds_raise_no_alarm():
    # one shape, so that everything is compiled once
    found = []
    for seed in range(25):
        data = independent(60, 6, seed=seed)
        post = bc.sample_posterior(
            "dawid_skene", data, **{**OPTIONS, "chains": 1, "draws": 200}, seed=seed
        )
        found.append(check_shared_errors(post))
    z = np.array([one.z for one in found])
    # Predictive p-values average over draws and are narrower than uniform: z has a standard
    # deviation of 0.4 to 0.6 (100 crowds of three shapes, none of them above 2), not one.
    assert (np.abs(z) < shared_errors.LEAST_Z).all()
    assert all(one.fits for one in found)
    assert 0.1 < np.median([one.p_value for one in found]) < 0.9


def test_a_panel_is_found_and_subtypes_explain_it():
    data = panel()
    simple, better = (
        check_shared_errors(bc.sample_posterior(model, data, **OPTIONS))
        for model in ("dawid_skene", "task_subtypes")
    )
    assert not simple.fits
    assert simple.p_value == 0.0
    assert better.fits
    assert better.z < simple.z / 2


def test_the_verdict_says_that_the_model_does_not_fit():
    post = bc.sample_posterior("dawid_skene", panel(), chains=4, draws=1000, predictive=False)
    diagnosis = bc.diagnose(post)
    assert not diagnosis.is_trustworthy
    expected = "These draws are right for a model that does not fit: raters err together"
    assert diagnosis.verdict.startswith(expected), diagnosis.verdict
    assert "gold labels" in diagnosis.problems[-1]
    assert diagnosis.shared_errors is not None
    again = check_shared_errors(post)
    np.testing.assert_array_equal(again.observed, diagnosis.shared_errors.observed)


def test_labels_without_a_pair_and_other_draws_are_not_judged():
    one_each = pd.DataFrame({"task": range(20), "worker": [0, 1] * 10, "label": [0, 1] * 10})
    with pytest.warns(UserWarning, match="classes"):  # which such labels cannot determine
        post = bc.sample_posterior("one_coin", one_each, **{**OPTIONS, "draws": 20}, warmup=5)
    assert check_shared_errors(post) is None
    other = dataset_of({"rate": (("chain", "draw"), np.zeros((2, 5)))})
    assert check_shared_errors(assemble({"posterior": other})) is None


@pytest.mark.slow
def test_leaving_tasks_out_prefers_subtypes_on_a_panel():
    # 300 tasks differ by three standard errors; the ratio grows with the root of their number
    data = panel(1200)
    posts = {
        model: bc.sample_posterior(model, data, draws=500, predictive=False)
        for model in ("dawid_skene", "hierarchical_dawid_skene", "task_subtypes")
    }
    table = bc.compare(posts)
    assert table.index[0] == "task_subtypes"
    assert (table["elpd_diff"].iloc[1:] < -4 * table["dse"].iloc[1:]).all()
