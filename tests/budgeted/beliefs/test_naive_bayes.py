"""Beliefs of naive Bayes: conjugacy, exact draws, and the channel that the classifier reads."""

import numpy as np
import pytest
from scipy import stats

from bayescrowd.budgeted.beliefs.credibility import draws_credibility
from bayescrowd.budgeted.beliefs.majorities import majority_shares
from bayescrowd.budgeted.beliefs.naive_bayes import ChannelReader, NaiveBayesBelief
from bayescrowd.budgeted.space import FeatureSpace
from bayescrowd.models import naive_bayes

SPACE = FeatureSpace(classes=["a", "b"], features={"x": [0, 1, 2], "y": [0, 1]}, strength=0.5)


def learned():
    belief = NaiveBayesBelief(SPACE)
    for feature, cls, value in [(0, 0, 1), (0, 0, 1), (0, 1, 2), (1, 1, 0)]:
        belief = belief.observe(feature, cls, (value,))
    return belief


def test_the_update_of_the_paper():
    belief = NaiveBayesBelief(FeatureSpace(classes=["yes", "no"], features={"x": list("abc")}))
    for value in (0, 0, 1, 2, 2, 2, 2):
        belief = belief.observe(0, 0, (value,))
    assert belief.rows(0)[0].tolist() == [3, 2, 5]
    belief = belief.observe(0, 0, (1,))
    assert belief.rows(0)[0].tolist() == [3, 3, 5]


def test_concentrations_are_those_of_the_model_plus_counts():
    prior = naive_bayes.conditional_concentration(
        naive_bayes.Prior(conditional=0.5), n_classes=2, n_values=(3, 2)
    )
    counts = np.zeros((2, 2, 3))
    counts[0, 0, 1], counts[0, 1, 2], counts[1, 1, 0] = 2, 1, 1
    for f, width in enumerate((3, 2)):
        expected = (np.asarray(prior) + counts)[f, :, :width]
        np.testing.assert_allclose(learned().rows(f), expected, rtol=1e-6)


@pytest.mark.parametrize("measure", ["interval", "variance", "hdi"])
def test_the_closed_form_of_credibility_is_that_of_the_draws(measure):
    belief, rng, prior = learned(), np.random.default_rng(0), np.array([0.7, 0.3])
    draws = np.stack([belief.draw(rng) for _ in range(10_000)])
    for f, width in enumerate((3, 2)):
        known = belief.credibility(f, prior, epsilon=0.1, measure=measure)
        assert known.confusion == 1
        assert known.error == 0
        assert known.least == known.conditional
        found = draws_credibility(draws[:, f, :, :width], prior, epsilon=0.1, measure=measure)
        # the narrowest interval of 10,000 draws is too narrow by less than .005
        slack = 0.005 * (measure == "hdi")
        assert abs(found.value - known.conditional) < 4 * found.error + slack


def test_draws_have_the_moments_of_a_dirichlet():
    belief, rng = learned(), np.random.default_rng(0)
    draws = np.stack([belief.draw(rng) for _ in range(1_000)])
    assert (draws[:, 1, :, 2] == 0).all()
    np.testing.assert_allclose(draws.sum(axis=-1), 1, rtol=1e-12)
    for f, width in enumerate((3, 2)):
        for y, row in enumerate(belief.rows(f)):
            known = stats.dirichlet(row)
            found = draws[:, f, y, :width]
            # a mean or second moment of 1,000 draws has a standard error below .5 / sqrt(1000)
            np.testing.assert_allclose(found.mean(axis=0), known.mean(), atol=4 * 0.016)
            second = known.var() + known.mean() ** 2
            np.testing.assert_allclose((found**2).mean(axis=0), second, atol=4 * 0.016)
            np.testing.assert_allclose(belief.mean()[f, y, :width], known.mean(), rtol=1e-12)


def test_a_tiny_prior_does_not_divide_by_zero():
    space = FeatureSpace(classes=["a", "b"], features={"x": [0, 1]}, strength=1e-4)
    rng = np.random.default_rng(0)
    draws = np.stack([NaiveBayesBelief(space).draw(rng) for _ in range(50)])
    np.testing.assert_allclose(draws.sum(axis=-1), 1)


def test_a_table_at_once_is_the_same_as_one_by_one():
    rng = np.random.default_rng(1)
    target = rng.integers(0, 2, 40)
    labels = np.stack([rng.integers(-1, 3, (40, 3)), rng.integers(-1, 2, (40, 3))], axis=1)
    singly = NaiveBayesBelief(SPACE)
    at_once = singly.observe_all(target, labels)
    for y, row in zip(target, labels, strict=True):
        for f in range(2):
            said = tuple(int(v) for v in row[f] if v >= 0)
            if said:
                singly = singly.observe(f, int(y), said)
    for f in range(2):
        np.testing.assert_allclose(at_once.rows(f), singly.rows(f))


def test_a_reader_looks_values_up_and_ignores_missing_ones():
    reader = ChannelReader(np.array([[0.9, 0.1], [0.3, 0.7]]), majority_shares)
    read = np.exp(reader.log_likelihood(np.array([[1], [-1], [0]])))
    np.testing.assert_allclose(read, [[0.1, 0.7], [1, 1], [0.9, 0.3]])
    several = np.exp(reader.log_likelihood(np.array([[1, 1, 0], [0, 1, -1], [-1, -1, -1]])))
    np.testing.assert_allclose(several, [[0.1, 0.7], [0.5, 0.5], [1, 1]])


@pytest.mark.parametrize("estimate", ["mean", "map"])
def test_readers_follow_slots_to_values(estimate):
    # the feature's third value was seen first: slot 0 belongs to value 2
    belief = NaiveBayesBelief(FeatureSpace(classes=["a", "b"], features={"x": list("pqr")}))
    for _ in range(3):
        belief = belief.observe(0, 0, (0,))
    reader = belief.reader(0, np.array([1, 2, 0]), estimate)
    expected = {"mean": [1 / 6, 1 / 6, 4 / 6], "map": [0, 0, 1]}[estimate]
    np.testing.assert_allclose(reader.channel[0], expected)
    np.testing.assert_allclose(reader.channel[1], 1 / 3)
