"""What draws of the model of judgements say about repeats: coverage of the truth, and tables."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc


def simulated(seed, m=300, k=2, spread=(0.3, 1.0, 2.0)):
    rng = np.random.default_rng(seed)
    covariance = np.array(
        [[1.0, 0.4, 0.0, 0.8], [0.4, 1.0, 0.0, 0.6], [0.0, 0.0, 1.0, 0.5], [0.8, 0.6, 0.5, 1.5]]
    )
    drawn = rng.multivariate_normal(np.zeros(4), covariance, size=m)
    noise = np.array(spread)[:, None] * rng.normal(size=(m, 3, k))
    return drawn[:, :3, None] + noise, drawn[:, 3], covariance, np.array(spread) ** 2


def true_loss(covariance, internal, repeats):
    asked = np.flatnonzero(repeats)
    matrix = covariance[np.ix_(asked, asked)] + np.diag(internal[asked] / repeats[asked])
    b = covariance[asked, -1]
    return covariance[-1, -1] - b @ np.linalg.solve(matrix, b)


@pytest.fixture(scope="module")
def fitted():
    values, y, covariance, internal = simulated(5)
    est = bc.MultiSelection(budget=8).fit(values, y)
    return est, est.posterior(values, y, draws=600, warmup=100), covariance, internal


def test_intervals_hold_the_truth(fitted):
    """99.8 % intervals of three variances, three reliabilities and nine losses."""
    est, post, covariance, internal = fitted
    table = post.attributes(probability=0.998)
    for name, truth in (("internal_variance", internal), ("reliability", 1 / (1 + internal))):
        part = table[name]
        assert ((part["lower"] < truth) & (truth < part["upper"])).all()
    curve = post.loss_curve(probability=0.998)
    for budget, repeats in est.repeats_.iterrows():
        loss = true_loss(covariance, internal, repeats.to_numpy())
        assert curve.loc[budget, "lower"] < loss < curve.loc[budget, "upper"]
    assert curve.index.equals(est.repeats_.index)


def test_means_are_near_the_unbiased_estimates(fitted):
    est, post, _, _ = fitted
    table = post.attributes()
    # the prior has one pseudo-judgement among 300
    np.testing.assert_allclose(
        table["internal_variance", "mean"], est.internal_variance_, rtol=0.05
    )
    np.testing.assert_allclose(table["reliability", "mean"], est.reliability_, atol=0.05)


def test_differences_between_repeat_vectors(fitted):
    _, post, _, _ = fitted
    clear = post.compare(8, 1)
    assert clear.loc["difference", "upper"] < 0
    assert clear.loc["difference", "first_better"] == 1.0
    one, other = {0: 4, 1: 4}, pd.Series({0: 4, 1: 4})
    same = post.compare(one, other)
    assert same.loc["difference", ["mean", "lower", "upper"]].tolist() == [0, 0, 0]
    assert same.loc["difference", "first_better"] == 0
    curve = post.loss_curve()
    assert clear.loc["first", "mean"] == pytest.approx(curve.loc[8, "mean"])
    assert (curve["falls"].dropna() == 1).all()


def test_draws_are_good_enough_for_diagnose(fitted):
    _, post, _, _ = fitted
    found = bc.diagnose(post.container)
    assert found.rhat < 1.05
    assert set(found.table.index) == {"internal_variance", "reliability", "loss"}


def test_attributes_and_probabilities_that_are_not_there(fitted):
    _, post, _, _ = fitted
    with pytest.raises(ValueError, match="attribute 7 is not in the model"):
        post.loss_draws({7: 1})
    with pytest.raises(ValueError, match=r"probability=1\.5"):
        post.attributes(probability=1.5)


def test_of_many_attributes_the_path_alone_is_modelled():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 70))
    values = truth[:, :, None] + rng.normal(size=(60, 70, 2))
    est = bc.MultiSelection(budget=3).fit(values, truth[:, 0])
    post = est.posterior(values, truth[:, 0], draws=5, warmup=2, chains=1)
    assert set(est.selected_.index) <= set(post.draws.attributes)
    assert len(post.draws.attributes) <= 3
