"""Shares of classes: closed forms, weights, unusual gold, and coverage."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bayescrowd as bc
from bayescrowd.gold.shares import METHODS, share_table


@pytest.fixture(scope="module")
def crowd():
    return bc.simulate.crowd(300, 7, 3, labels_per_task=4, accuracy=0.7, seed=4)


def test_gold_only_is_the_share_with_jeffreys_interval():
    truth = np.array([0, 1, 1, 1, 1])
    probas = np.full((20, 2), 0.5)
    found = share_table(probas, np.arange(5), truth, np.ones(5), method="gold-only", level=0.9)
    np.testing.assert_allclose(found["share"], [0.2, 0.8])
    ends = scipy.stats.beta(1.5, 4.5).ppf([0.05, 0.95])
    np.testing.assert_allclose([found["lower"][0], found["upper"][0]], ends)


def test_ppi_formula():
    rng = np.random.default_rng(0)
    f = rng.random(50)
    y = rng.random(12) < f[:12]
    probas = np.stack([1 - f, f], axis=1)
    found = share_table(probas, np.arange(12), y.astype(int), np.ones(12), method="ppi", level=0.9)
    power = np.cov(y, f[:12], ddof=0)[0, 1] / ((1 + 12 / 50) * f.var())
    estimate = np.mean(y - power * f[:12]) + power * f.mean()
    error = np.sqrt((y - power * f[:12]).var(ddof=1) / 12 + power**2 * f.var() / 50)
    assert found["share"][1] == pytest.approx(estimate)
    assert found["upper"][1] == pytest.approx(estimate + scipy.stats.norm.ppf(0.95) * error)


def test_rogan_gladen_formula():
    called = np.arange(100) < 40
    probas = np.stack([~called, called], axis=1).astype(float)
    place = np.array([0, 1, 2, 50, 51, 52, 53, 54, 55])
    truth = np.array([1, 1, 0, 0, 0, 0, 0, 0, 1])
    found = share_table(probas, place, truth, np.ones(9), method="rogan-gladen", level=0.9)
    sens, spec = 2.5 / 4, 5.5 / 7
    one, other = ((q + s - 1) / (sens + spec - 1) for q, s in ((0.4, spec), (0.6, sens)))
    assert found["share"][1] == pytest.approx(one / (one + other))


@pytest.mark.parametrize("method", METHODS)
def test_equal_weights_change_nothing(crowd, method):
    gold = crowd.truth.sample(30, random_state=1)
    est = bc.MajorityVote().fit(crowd.annotations)
    plain = bc.prevalence(est, gold, method=method)
    weighted = bc.prevalence(est, gold, method=method, weights=pd.Series(7.0, index=gold.index))
    pd.testing.assert_frame_equal(plain.shares, weighted.shares)
    assert plain.shares["share"].sum() == pytest.approx(1)
    assert (plain.shares["lower"] <= plain.shares["share"]).all()
    assert (plain.shares["share"] <= plain.shares["upper"]).all()
    assert set(plain.beside) == set(METHODS) - {method}
    assert plain.n_gold == 30


def test_gold_that_the_fit_has_used_is_not_counted_twice(crowd):
    gold = crowd.truth.sample(30, random_state=1)
    plain = bc.prevalence(bc.DawidSkene().fit(crowd.annotations), gold)
    used = bc.prevalence(bc.DawidSkene().fit(crowd.annotations, gold), gold)
    pd.testing.assert_frame_equal(plain.shares, used.shares)


def test_class_that_nobody_chose_has_a_share(crowd):
    gold = crowd.truth.sample(20, random_state=1)
    gold.iloc[:5] = 9
    found = bc.prevalence(bc.MajorityVote().fit(crowd.annotations), gold)
    assert 0.1 < found.shares.loc[9, "share"] < 0.4
    assert np.isfinite(found.shares.to_numpy()).all()


def test_messages(crowd):
    est = bc.MajorityVote().fit(crowd.annotations)
    with pytest.warns(bc.TruthWarning), pytest.raises(ValueError, match="no gold task"):
        bc.prevalence(est, {"nowhere": 1})
    with pytest.raises(ValueError, match="weight"):
        bc.prevalence(est, crowd.truth.iloc[:3], weights={crowd.truth.index[0]: -1.0})


@pytest.mark.parametrize("n_gold", [10, 50])
def test_coverage(n_gold):
    """Of 200 intervals at 90 %, at least 85 %: 170 is 2.4 standard errors below 180."""
    crowd = bc.simulate.crowd(600, 5, 2, accuracy=0.7, prevalence=[0.3, 0.7], seed=1)
    ann, truth = crowd.annotations, crowd.annotations.code_truth(crowd.truth)
    probas = bc.DawidSkene().fit(ann).probas_.to_numpy()
    true, hits = (truth == 1).mean(), 0
    for seed in range(200):
        place = np.random.default_rng(seed).choice(600, n_gold, replace=False)
        found = share_table(
            probas, place, truth[place], np.ones(n_gold), method="post-stratified", level=0.9
        )
        hits += found["lower"][1] <= true <= found["upper"][1]
    assert hits >= 170
