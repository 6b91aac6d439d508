"""Verdicts on good, short, stuck and divergent chains; comparison of models."""

import arviz
import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.posterior.container import assemble, dataset_of, group_of


def container(draws, *, log_likelihood=None, diverging=None, codes=(0, 1, 2)):
    groups = {"posterior": dataset_of({"rate": (("chain", "draw"), draws)})}
    if diverging is not None:
        groups["sample_stats"] = dataset_of({"diverging": (("chain", "draw"), diverging)})
    if log_likelihood is not None:
        values = (("chain", "draw", "task"), log_likelihood)
        groups["log_likelihood"] = dataset_of({"labels": values})
    columns = {name: (("judgement",), np.array(codes)) for name in ("task_code", "worker_code")}
    groups["constant_data"] = dataset_of(columns)
    groups["observed_data"] = dataset_of({"label": (("judgement",), np.array(codes))})
    return assemble(groups)


def normal(n_chains=4, n_draws=500, seed=0):
    return np.random.default_rng(seed).normal(size=(n_chains, n_draws))


def test_good_chains_are_trusted():
    diagnosis = bc.diagnose(container(normal()))
    assert diagnosis.is_trustworthy
    assert str(diagnosis).startswith("Nothing speaks against these draws: worst R-hat 1.0")
    assert diagnosis.rhat < 1.01
    # independent draws: the effective size is the number of draws, give or take
    assert 1500 < diagnosis.ess_bulk < 2500
    assert diagnosis.problems == ()


def test_a_real_posterior_is_judged(post):
    diagnosis = bc.diagnose(post)
    assert set(diagnosis.table.index) == {"prevalence", "confusion", "marginal_log_likelihood"}
    assert diagnosis.table.shape == (3, 3)
    assert diagnosis.n_divergent == 0
    assert diagnosis.is_trustworthy, diagnosis.verdict


def test_a_stuck_chain_is_not_trusted():
    draws = normal()
    draws[2] += 3
    diagnosis = bc.diagnose(container(draws))
    assert not diagnosis.is_trustworthy
    assert "chains disagree about rate (R-hat 1." in diagnosis.verdict
    assert "should be below 1.01)" in diagnosis.verdict


def test_how_much_of_a_variable_is_stuck_is_said():
    draws = np.stack([normal(seed=seed) for seed in range(3)], axis=-1)
    draws[2, :, 1] += 3
    stuck = {"posterior": dataset_of({"rate": (("chain", "draw", "worker"), draws)})}
    verdict = bc.diagnose(assemble(stuck)).verdict
    assert "should be below 1.01, is not in 1 of 3 entries)" in verdict


def test_slow_chains_are_not_trusted():
    noise = normal(n_draws=1000)
    draws = np.zeros_like(noise)
    for t in range(1, 1000):
        draws[:, t] = 0.98 * draws[:, t - 1] + noise[:, t]
    assert "draw more" in bc.diagnose(container(draws)).verdict


def test_one_chain_is_not_trusted():
    assert "one chain alone" in bc.diagnose(container(normal(n_chains=1))).verdict


def test_two_draws_are_not_trusted():
    verdict = bc.diagnose(container(normal(n_draws=2))).verdict
    assert verdict.startswith("Do not trust these draws")


def test_divergences_are_not_trusted():
    diverging = np.zeros((4, 500), dtype=bool)
    diverging[1, :7] = True
    diagnosis = bc.diagnose(container(normal(), diverging=diverging))
    assert diagnosis.n_divergent == 7
    assert "7 of 2000 transitions diverged" in diagnosis.verdict


# Comparison


def log_likelihoods(level, seed, n_tasks=3):
    noise = np.random.default_rng(seed).normal(scale=0.05, size=(4, 500, n_tasks))
    return noise + np.asarray(level)


def test_comparison_by_hand():
    better, worse = np.array([-1.0, -2.0, -3.0]), np.array([-1.5, -2.0, -4.0])
    table = bc.compare(
        {
            "worse": container(normal(), log_likelihood=log_likelihoods(worse, 1)),
            "better": container(normal(), log_likelihood=log_likelihoods(better, 2)),
        }
    )
    assert table.index.to_list() == ["better", "worse"]
    # nearly constant likelihoods: leaving a task out changes nothing
    np.testing.assert_allclose(table["elpd"], [-6.0, -7.5], atol=0.02)
    np.testing.assert_allclose(table["elpd_diff"], [0.0, -1.5], atol=0.02)
    np.testing.assert_allclose(table["dse"], [0, np.sqrt(3 * np.var(worse - better))], atol=0.02)
    assert table["n_bad"].to_list() == [0, 0]


def test_weights_by_hand():
    # the one predicts 30 tasks well, the other 10, and neither the rest: shares 3/4 and 1/4
    good, bad = np.full(40, -1.0), np.full(40, -15.0)
    first = np.where(np.arange(40) < 30, good, bad)
    codes = tuple(range(40))
    table = bc.compare(
        {
            name: container(normal(), log_likelihood=log_likelihoods(level, 1, 40), codes=codes)
            for name, level in (("first", first), ("second", good + bad - first))
        }
    )
    np.testing.assert_allclose(table["weight"], [0.75, 0.25], atol=1e-3)


@pytest.mark.filterwarnings("ignore")  # ArviZ's own, of pandas and of rounding
def test_weights_and_differences_are_those_of_arviz():
    rng = np.random.default_rng(3)
    levels = rng.normal(-2, 0.5, size=(60, 1)) + rng.normal(0, 0.4, size=(60, 3))
    posteriors = {
        name: container(
            normal(), log_likelihood=log_likelihoods(level, k, 60), codes=tuple(range(60))
        )
        for k, (name, level) in enumerate(zip("abc", levels.T, strict=True))
    }
    table = bc.compare(posteriors)
    other = arviz.compare(posteriors)
    assert table.index.to_list() == other.index.to_list()
    # ArviZ maximises the same concave function by SLSQP, to about three digits
    np.testing.assert_allclose(table["weight"], other["weight"].astype(float), atol=0.01)
    # ArviZ 1.x rounds what it prints
    np.testing.assert_allclose(table["dse"], other["dse"].astype(float), atol=0.06)


def test_unreliable_tasks_are_counted():
    heavy = log_likelihoods([-1.0, -2.0, -3.0], 1)
    heavy[0, :5, 2] -= 40.0
    posteriors = {"heavy": container(normal(), log_likelihood=heavy)}
    with pytest.warns(UserWarning, match="heavy: 1 of 3"):
        assert bc.compare(posteriors)["n_bad"].to_list() == [1]


def test_tasks_without_labels_play_no_role():
    levels = np.array([-1.0, -2.0, 0.0])
    values = log_likelihoods(levels, 1)
    values[:, :, 2] = 0.0
    labelled = container(normal(), log_likelihood=values, codes=(0, 1, 1))
    np.testing.assert_allclose(bc.compare({"a": labelled})["elpd"], [-3.0], atol=0.02)


def test_a_real_posterior_is_compared(post):
    table = bc.compare({"dawid_skene": post})
    total = group_of(post, "log_likelihood")["labels"].sum("task").mean()
    # leaving tasks out costs density; 39 tasks of at most six labels in three classes
    assert 39 * -6 * np.log(3) < table.loc["dawid_skene", "elpd"] < float(total)
    assert isinstance(table, pd.DataFrame)


def test_posteriors_of_other_labels_are_refused():
    first = container(normal(), log_likelihood=log_likelihoods(-1.0, 0))
    other = container(normal(), log_likelihood=log_likelihoods(-1.0, 0), codes=(0, 2, 1))
    with pytest.raises(ValueError, match="'a' and 'b' are posteriors of different labels"):
        bc.compare({"a": first, "b": other})


def test_missing_log_likelihoods_are_named():
    with pytest.raises(ValueError, match="'a' has no log-likelihoods: sample it with"):
        bc.compare({"a": container(normal())})


def test_nothing_cannot_be_compared():
    with pytest.raises(ValueError, match="no posteriors"):
        bc.compare({})
