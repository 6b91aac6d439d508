"""How much a classifier's probabilities say beyond its label."""

import numpy as np
import pytest
from scipy.special import softmax

from bayescrowd.aggregation.auto import prediction_strength
from bayescrowd.aggregation.auto.prediction_strength import fit_strength

N, K = 4000, 3


def simulated(seed=0, signal=1.5, sharpness=1.0):
    """True classes, and the probabilities of a classifier that is calibrated at sharpness 1.

    Its features are N(signal e_z, 1): the log odds of the classes are signal times the features.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=N)
    features = signal * np.eye(K)[truth] + rng.normal(size=(N, K))
    return truth, softmax(sharpness * signal * features, axis=1)


def fitted(mixed, probas, is_labelled=None):
    leading = probas.argmax(axis=1)
    is_labelled = np.ones(len(mixed), dtype=bool) if is_labelled is None else is_labelled
    return fit_strength(mixed, probas, leading, is_labelled)


def sure(truth, chance=0.999):
    """An answer that is all but certain of the truth."""
    return np.where(np.eye(K)[truth] > 0, chance, (1 - chance) / (K - 1))


def log_loss(probas, truth):
    return -np.log(probas[np.arange(len(truth)), truth]).mean()


def test_calibrated_probabilities_have_strength_one():
    truth, probas = simulated()
    found = fitted(sure(truth), probas)
    # The standard error is 1 / sqrt(information); the variance of the features given the label, at
    # a chance of being wrong of a quarter, gives at least .1 per task: .05.
    assert found.value == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("sharpness", [0.5, 2.0])
def test_strength_undoes_a_wrong_temperature(sharpness):
    truth, probas = simulated()
    plain = fitted(sure(truth), probas)
    found = fitted(sure(truth), simulated(sharpness=sharpness)[1])
    # Logarithms are scaled, up to the floor of 1e-6 and the prior, which hardly weigh here.
    assert found.value * sharpness == pytest.approx(plain.value, rel=0.02)
    np.testing.assert_allclose(found.ratio, plain.ratio, rtol=0.05, atol=0.02)


def test_the_parameters_are_a_maximum(monkeypatch):
    """Equation 3 with its priors, written again, falls in every direction."""
    truth, probas = simulated(seed=3)
    rng = np.random.default_rng(1)
    mixed = 0.5 * sure(truth) + 0.5 * rng.dirichlet(np.ones(K), size=N)
    kept = []
    inner = prediction_strength._fit
    monkeypatch.setattr(
        prediction_strength, "_fit", lambda *args: kept.append(inner(*args)) or kept[-1]
    )
    fitted(mixed, probas)
    label = probas.argmax(axis=1)
    h = np.stack([mixed[label == k].sum(axis=0) + 2 * mixed.mean(axis=0) for k in range(K)])
    h = (h / h.sum(axis=1, keepdims=True))[label]
    x = np.log(probas)
    x = x - np.stack([x[label == k].mean(axis=0) for k in range(K)])[label]

    def objective(parameters):
        offsets = parameters[1:].reshape(K + 1, K)
        g = softmax(np.log(h) + offsets[label] + parameters[0] * x, axis=1)
        log_prior = -0.5 * parameters[0] ** 2 - 0.5 * (parameters[1:] ** 2).sum() / 4
        return np.log((mixed / h * g).sum(axis=1)).sum() + log_prior

    best = objective(kept[0])
    for _ in range(20):
        step = rng.normal(size=len(kept[0]))
        assert objective(kept[0] + 0.05 * step) < best
    assert best > objective(np.zeros(len(kept[0])))


def test_probabilities_that_say_no_more_than_the_label_change_nothing():
    truth, probas = simulated()
    rng = np.random.default_rng(2)
    mixed = 0.5 * sure(truth) + 0.5 * rng.dirichlet(np.ones(K), size=N)
    label = probas.argmax(axis=1)
    found = fitted(mixed, np.where(np.eye(K)[label] > 0, 0.9, 0.05))
    assert found.value == 0.0
    np.testing.assert_allclose(found.correct(mixed), mixed, atol=0.01)


def test_shuffled_confidence_is_all_but_ignored():
    truth, probas = simulated()
    label = probas.argmax(axis=1)
    rng = np.random.default_rng(5)
    noise = rng.uniform(0.4, 1.0, N)
    random = np.where(np.eye(K)[label] > 0, noise[:, None], (1 - noise[:, None]) / (K - 1))
    found = fitted(0.5 * sure(truth) + 0.5 / K, random)
    assert found.value < 0.1


def test_tasks_of_one_side_only():
    truth, probas = simulated()
    mixed = sure(truth)
    is_labelled = np.arange(N) >= 100  # the crowd has not labelled the first 100 tasks
    mixed[:100] = 1 / K
    probas[-50:] = np.nan
    found = fit_strength(
        mixed, probas, np.where(np.isnan(probas[:, 0]), -1, probas.argmax(1)), is_labelled
    )
    corrected = found.correct(mixed)
    np.testing.assert_allclose(corrected.sum(axis=1), 1.0)
    np.testing.assert_allclose(corrected[-50:], mixed[-50:])
    assert found.only.tolist() == list(range(100))
    # the classifier is calibrated, so its own probabilities are what there is to find
    assert log_loss(corrected[:100], truth[:100]) == pytest.approx(
        log_loss(probas[:100], truth[:100]), abs=0.05
    )


def test_the_order_of_tasks_does_not_matter():
    truth, probas = simulated()
    mixed = 0.6 * sure(truth) + 0.4 / K
    order = np.random.default_rng(0).permutation(N)
    found, again = fitted(mixed, probas), fitted(mixed[order], probas[order])
    assert again.value == pytest.approx(found.value, abs=1e-4)
    np.testing.assert_allclose(again.ratio, found.ratio[order], rtol=1e-3)
