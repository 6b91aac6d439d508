"""Empirical-Bayes Dawid–Skene against optimisers, SciPy's densities and its NumPyro model."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import dirichlet_multinomial

import bayescrowd as bc
from bayescrowd.aggregation.shrunken.ability import (
    STRENGTHS,
    AbilityBase,
    EmpiricalBayesModel,
    row_evidence,
)
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.models import ability_dawid_skene

# By hand.


def test_rows_by_hand():
    base = AbilityBase(
        intercept=np.array([0.0, np.log(3)]),
        ability=np.array([0.0, np.log(2)]),
        variance=1.0,
        wrong=np.array([[0.0, 1.0], [1.0, 0.0]]),
        strength=4.0,
        n_updates=1,
    )
    worker, label = np.array([0, 0, 1, -1]), np.array([0, 1, 1, 1])
    # Odds of a right answer: 1 and 3 for worker 0 and strangers, 2 and 6 for worker 1.
    expected = [[1 / 2, 1 / 4], [1 / 2, 3 / 4], [1 / 3, 6 / 7], [1 / 2, 3 / 4]]
    np.testing.assert_allclose(base.rows(worker, label), expected)


# Reference.


def test_row_evidence_is_the_dirichlet_multinomial_density():
    ann = bc.Annotations.from_matrix([list("abca"), list("abab"), list("cbaa"), list("aaca")])
    pairs = WorkerLabelPairs(ann)
    truth = np.eye(3)[[0, 1, 2, 0]]
    counts = pairs.incidence(3).counts(truth)[: len(pairs)]
    totals = pairs.by_worker(counts)
    model = EmpiricalBayesModel()
    base = model.base(pairs, counts, None)
    dense = np.zeros((4, 3, 3))
    dense[pairs.worker, :, pairs.label] = counts
    worker, label = (axis.ravel() for axis in np.indices((4, 3)))
    rows = base.rows(worker, label).reshape(4, 3, 3).transpose(0, 2, 1)
    of_labels = base.rows(pairs.worker, pairs.label)
    for strength in (0.5, 8.0):
        expected = 0.0
        for w in range(4):
            for k in range(3):
                n = dense[w, k].astype(int)
                # SciPy's density counts the orders in which the labels may come.
                orders = dirichlet_multinomial.logpmf(n, np.ones(3), n.sum()) - np.log(
                    2 / ((n.sum() + 1) * (n.sum() + 2))
                )
                assert orders == pytest.approx(0)
                ways = np.array([np.log(np.arange(1, x + 1)).sum() for x in (n.sum(), *n)])
                expected += dirichlet_multinomial.logpmf(n, strength * rows[w, k], n.sum())
                expected -= ways[0] - ways[1:].sum()
        assert row_evidence(counts, totals, of_labels, strength) == pytest.approx(expected)


def test_abilities_are_those_of_an_optimiser():
    data = bc.simulate.crowd(150, 12, 3, labels_per_task=6, accuracy=0.7, seed=5)
    ann = data.annotations
    model = bc.EmpiricalBayesDawidSkene(n_iter=60, tol=0.0).fit(ann, data.truth)
    base = model._found.base
    truth = data.truth.to_numpy()[ann.task_codes]
    is_right = truth == ann.label_codes

    def loss(x):
        easiness, ability = x[:3], x[3:]
        chance = expit(easiness[truth] + ability[ann.worker_codes])
        pseudo = 0.5 * np.log(expit(easiness)) + 0.5 * np.log(expit(-easiness))
        fit = np.where(is_right, np.log(chance), np.log1p(-chance)).sum()
        return -fit - pseudo.sum() + 0.5 * (ability**2).sum() / base.variance

    best = minimize(loss, np.zeros(15), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(np.r_[base.intercept, base.ability], best, atol=1e-4)
    np.testing.assert_allclose(model.abilities_, base.ability)


def test_learned_strength_is_the_best_of_the_grid():
    # Rows that scatter as those of a Dirichlet with 4 pseudo-labels, seen on known truth.
    confusions = np.random.default_rng(0).dirichlet([3.0, 0.5, 0.5], size=(40, 3))
    for k in range(3):
        confusions[:, k] = np.roll(confusions[:, k], k, axis=1)
    data = bc.simulate.full_confusion_crowd(300, 40, 3, confusions=confusions, density=0.5)
    model = bc.EmpiricalBayesDawidSkene(strength="learned", n_iter=10, tol=0.0)
    model.fit(data.annotations, data.truth)
    # 120 rows tell a factor of two apart.
    assert model.strength_ in (2.0, 4.0, 8.0)
    assert model.strength_ in STRENGTHS


# Agreement with the generative model.


def test_it_is_the_point_estimate_of_the_numpyro_model():
    data = bc.simulate.crowd(80, 7, 3, labels_per_task=5, accuracy=0.7, seed=1)
    ann = data.annotations
    est = bc.EmpiricalBayesDawidSkene(n_iter=25, tol=0.0).fit(ann)
    found = est._found
    base = found.base
    concentration = ability_dawid_skene.confusion_concentration(
        jnp.asarray(base.intercept),
        jnp.asarray(base.ability),
        jnp.asarray(base.wrong.T + 0.3 * np.eye(3)),  # its diagonal does not matter
        jnp.asarray(base.strength),
    )
    pairs = WorkerLabelPairs(ann)
    counts = np.zeros((7, 3, 3))
    counts[pairs.worker, :, pairs.label] = found.counts
    # Given the bases, rows are conjugate: these are the means of their Dirichlet posteriors.
    posterior = counts + np.asarray(concentration)
    mean = posterior / posterior.sum(axis=2, keepdims=True)
    confusions = est.confusions_.to_numpy().reshape(7, 3, 3)
    np.testing.assert_allclose(confusions, mean, rtol=1e-5)  # JAX has single precision
    params = ability_dawid_skene.Params(
        prevalence=jnp.asarray(est.priors_.to_numpy()),
        easiness=jnp.asarray(base.intercept),
        spread=jnp.asarray(np.sqrt(base.variance)),
        ability=jnp.asarray(base.ability),
        mistaken=jnp.asarray(base.wrong.T),
        strength=jnp.asarray(base.strength),
        confusion=jnp.asarray(confusions),
    )
    labels = ability_dawid_skene.Labels(
        *map(jnp.asarray, (ann.task_codes, ann.worker_codes, ann.label_codes))
    )
    probas = ability_dawid_skene.label_posterior(params, labels, n_items=80)
    np.testing.assert_allclose(est.probas_, probas, atol=2e-5)


@pytest.mark.slow
def test_labels_agree_with_draws_from_the_posterior():
    data = bc.simulate.crowd(100, 10, 2, labels_per_task=6, accuracy=0.8, seed=0)
    est = bc.EmpiricalBayesDawidSkene().fit(data.annotations)
    post = est.posterior(method="nuts", chains=1, draws=200, warmup=200, progress=False)
    probas = bc.label_posterior(post)
    clear = (est.probas_.max(axis=1) > 0.9) & (probas.max(axis=1) > 0.9)
    assert clear.mean() > 0.7
    assert (est.labels_ == probas.idxmax(axis=1))[clear].all()


# Published crowds.


@pytest.mark.parametrize(("name", "error"), [("bluebird", 10.19), ("rte", 7.25), ("dog", 16.12)])
def test_errors_on_public_crowds(published, name, error):
    data = published(name)
    model = bc.EmpiricalBayesDawidSkene().fit(data.annotations)
    assert 100 * bc.metrics.error_rate(model.probas_, data.truth) < error + 0.005


# Recovery, with its control.


def test_few_labels_per_worker_are_enough():
    """Where Dawid–Skene has 10 labels per worker and fits noise, abilities help."""
    accuracy = np.random.default_rng(3).uniform(0.5, 0.95, 300)
    data = bc.simulate.one_coin_crowd(600, 300, 4, labels_per_task=5, accuracy=accuracy, seed=1)
    ours, theirs = (
        (method.fit(data.annotations).labels_ != data.truth).mean()
        for method in (bc.EmpiricalBayesDawidSkene(), bc.DawidSkene(pseudo_counts=0.0))
    )
    # The labels differ on about 40 tasks, so that the difference has a standard error of .01.
    assert ours < theirs - 0.01
    abilities = bc.EmpiricalBayesDawidSkene().fit(data.annotations).abilities_
    shuffled = np.random.default_rng(0).permutation(accuracy)
    # Ten labels tell an accuracy to 0.13, against a spread of 0.13: a correlation of about .7.
    assert np.corrcoef(abilities, accuracy)[0, 1] > 0.5
    assert abs(np.corrcoef(abilities, shuffled)[0, 1]) < 0.25


# Memory.


def test_matrices_are_made_when_they_are_read():
    ann = bc.simulate.crowd(50, 6, 3, labels_per_task=4, seed=0).annotations
    model = bc.EmpiricalBayesDawidSkene().fit(ann)
    assert "confusions_" not in vars(model)
    assert isinstance(model.confusions_, pd.DataFrame)
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = bc.EmpiricalBayesDawidSkene().confusions_


# Bad input.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prior": "flat"}, "prior='flat': expected one of shares, learned, uniform"),
        ({"strength": 0.0}, "strength=0.0: expected a finite number above 0 or 'learned'"),
        ({"strength": "some"}, "strength='some': expected a finite number above 0 or 'learned'"),
        ({"n_iter": 0}, "n_iter=0: expected at least 1"),
        ({"tol": -1.0}, "tol=-1.0: expected a number >= 0"),
    ],
)
def test_bad_parameters(parameters, message):
    ann = bc.Annotations.from_matrix([list("ab"), list("bb")])
    with pytest.raises(ValueError, match=message):
        bc.EmpiricalBayesDawidSkene().set_params(**parameters).fit(ann)
