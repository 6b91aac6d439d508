"""Beliefs by NUTS: against closed forms, enumeration and Gibbs; replays; every policy."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import gammaln

import bayescrowd as bc
from bayescrowd.budgeted.beliefs import nuts
from bayescrowd.budgeted.beliefs.access_path import AccessPathBelief
from bayescrowd.budgeted.beliefs.credibility import MOST_ERROR
from bayescrowd.budgeted.beliefs.feature_readings import Reading, noisy_observations, observations
from bayescrowd.budgeted.beliefs.naive_bayes import NaiveBayesBelief
from bayescrowd.budgeted.beliefs.warm_nuts import N_KEPT
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import access_path, naive_bayes

SPACE = FeatureSpace(classes=["p", "q"], features={"x": ["a", "b"], "y": ["a", "b"]})
READINGS = [(0, (0, 0)), (0, (0, 1)), (1, (1, 1)), (1, (1, 0)), (0, (0, 0))]
POLICIES = [bc.RoundRobin, bc.BiasedRobin, bc.TsGreedy, bc.ExploreThenCommit, bc.BLeafs]


def observed(belief, n_labels):
    for cls, labels in READINGS:
        belief = belief.observe(0, cls, labels[:n_labels])
    return belief


def moments(belief, rng, n_draws):
    drawn = np.array([belief.draw(rng)[0] for _ in range(n_draws)])
    return belief.mean()[0], drawn.std(axis=0)


def assert_agree(found, expected):
    """Means within 4.5 standard errors of N_KEPT draws, which are about independent.

    A standard deviation's relative error is about 1 / sqrt(2 N_KEPT) = .044 for either.
    """
    (mean, spread), (right_mean, right_spread) = found, expected
    assert (np.abs(mean - right_mean) < 4.5 * right_spread / np.sqrt(N_KEPT)).all()
    assert (np.abs(spread / right_spread - 1) < 4.5 * 0.063).all()


def enumerated(readings, prior):
    """Mean and standard deviation of P(two labels | class), all hidden values enumerated."""
    gamma = np.asarray(access_path.confusion_concentration(prior, n_values=(2,)))[0]
    weights, firsts, seconds = [], [], []
    outcomes = [((0, 0), 1), ((0, 1), 2), ((1, 1), 1)]
    for values in itertools.product(range(2), repeat=len(readings)):
        of_class, of_value = np.ones((2, 2)), gamma.astype(float).copy()
        for z, (cls, labels) in zip(values, readings, strict=True):
            of_class[cls, z] += 1
            for label in labels:
                of_value[z, label] += 1
        tables = (of_class, of_value)
        weights.append(sum(float(gammaln(t).sum() - gammaln(t.sum(axis=1)).sum()) for t in tables))
        draws_of = np.random.default_rng(0)
        theta = [np.array([draws_of.dirichlet(row, 4_000) for row in t]) for t in tables]
        channel = np.stack(
            [
                n * np.einsum("ynz,zn->yn", theta[0], theta[1][:, :, one] * theta[1][:, :, two])
                for (one, two), n in outcomes
            ],
            axis=-1,
        )
        firsts.append(channel.mean(axis=1))
        seconds.append((channel**2).mean(axis=1))
    share = np.exp(np.array(weights) - max(weights))
    share /= share.sum()
    mean, second = (np.tensordot(share, np.array(part), 1) for part in (firsts, seconds))
    return mean, np.sqrt(second - mean**2)


def test_naive_bayes_agrees_with_the_closed_form():
    belief = observed(nuts.NutsBelief(SPACE, 1, naive_bayes.Prior()), 1)
    exact = observed(NaiveBayesBelief(SPACE), 1)
    rows = exact.rows(0)
    mean = rows / rows.sum(axis=1, keepdims=True)
    spread = np.sqrt(mean * (1 - mean) / (rows.sum(axis=1, keepdims=True) + 1))
    assert_agree(moments(belief, np.random.default_rng(0), 2_000), (mean, spread))
    # the other feature has its prior still
    np.testing.assert_allclose(belief.mean()[1], 0.5)
    prior = np.array([0.5, 0.5])
    for feature in (0, 1):
        known, right = (
            one.credibility(feature, prior, epsilon=0.1, measure="interval")
            for one in (belief, exact)
        )
        assert known.error <= MOST_ERROR
        assert abs(known.conditional - right.conditional) < 4.5 * known.error


def test_the_access_path_agrees_with_enumeration_and_gibbs():
    right = enumerated(READINGS, access_path.Prior())
    belief = observed(nuts.NutsBelief(SPACE, 2, access_path.Prior()), 2)
    assert_agree(moments(belief, np.random.default_rng(0), 1_000), right)
    gibbs = observed(AccessPathBelief(SPACE, 2), 2)
    mean, spread = moments(gibbs, np.random.default_rng(0), 1_000)
    # 32 chains of Gibbs sampling, whose mean given the hidden values is exact
    assert (np.abs(mean - right[0]) < 4.5 * right[1] / np.sqrt(32)).all()
    assert (np.abs(spread / right[1] - 1) < 4.5 / np.sqrt(64)).all()
    # labels are read by the probability of their multiset, whatever their order
    read = belief.reader(0, np.arange(2), "mean").log_likelihood(np.array([[0, 1], [1, 1]]))
    np.testing.assert_allclose(np.exp(read[0]) * 2, belief.mean()[0][:, 1], rtol=1e-6)
    np.testing.assert_allclose(np.exp(read[1]), belief.mean()[0][:, 2], rtol=1e-6)


@pytest.mark.parametrize("is_noisy", [False, True])
def test_padding_leaves_the_density_as_it_is(is_noisy):
    readings = [Reading(0, cls, labels) for cls, labels in READINGS]
    model = access_path if is_noisy else naive_bayes
    table = jax.numpy.array([[[0.7, 0.3], [0.2, 0.8]]])
    params = model.Params(*[jax.numpy.array([0.5, 0.5]), table, table[:, None]][: 2 + is_noisy])
    totals = []
    for slots in (5, 64):
        data = noisy_observations(readings, slots, 2) if is_noisy else observations(readings, slots)
        joint = model.label_log_joint(params, data, n_items=slots)
        totals.append(float(jax.scipy.special.logsumexp(joint, axis=-1).sum()))
    np.testing.assert_allclose(*totals, rtol=1e-6)


@pytest.mark.parametrize("kind", POLICIES, ids=lambda kind: kind.__name__)
def test_every_policy_runs_on_nuts_and_is_replayed(kind):
    def policy():
        return kind(SPACE, 10, 1, sampler="nuts", seed=3)

    whole = policy()
    while (query := whole.ask()) is not None:
        whole.tell(query, "a" if query.feature == "x" and query.target == "p" else "b")
    assert whole.spent <= 10
    assert whole.credibility().between(0, 1).all()
    again = policy().replay(whole.events)
    assert again.result().selected == whole.result().selected
    np.testing.assert_array_equal(again.state.belief.mean(), whole.state.belief.mean())
    with pytest.raises(ValueError, match="estimate='map': draws"):
        whole.result(estimate="map")


def test_unknown_samplers_are_refused():
    with pytest.raises(ValueError, match=r"sampler='hmc': expected one of conjugate, nuts, or"):
        bc.RoundRobin(SPACE, 9, 1, sampler="hmc")
    with pytest.raises(ValueError, match="BudgetedSelection has a prior of its own"):
        bc.BudgetedSelection(SPACE, 9, 1, sampler="nuts")
