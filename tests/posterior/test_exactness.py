"""Samplers against posteriors that are enumerated: every assignment of classes, no sampling.

Four tasks, three workers, eight labels. Given the classes (and, for MACE, the coins) all parameters
integrate out in closed form, so the whole posterior is a sum over 16 (or 16 x 256) terms.
"""

from itertools import product

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import beta

import bayescrowd as bc
from bayescrowd.models import dawid_skene, mace, one_coin
from bayescrowd.posterior.container import group_of

MATRIX = [["a", "a", "b"], ["b", "b", None], ["a", None, None], ["b", "a", None]]
ANN = bc.Annotations.from_matrix(MATRIX)
ITEM, WORKER, LABEL = ANN.task_codes, ANN.worker_codes, ANN.label_codes
N_ITEMS, N_WORKERS, N_CLASSES = 4, 3, 2

CASES = [
    (dawid_skene, "gibbs"),
    pytest.param(dawid_skene, "nuts", marks=pytest.mark.slow),
    pytest.param(mace, "gibbs", marks=pytest.mark.slow),
    pytest.param(one_coin, "gibbs", marks=pytest.mark.slow),
    pytest.param(one_coin, "nuts", marks=pytest.mark.slow),
    pytest.param(mace, "nuts", marks=pytest.mark.slow),
]
LENGTHS = {"gibbs": {"draws": 4000}, "nuts": {"draws": 1000, "warmup": 500}}

DEFAULTS = {dawid_skene: dawid_skene.Prior(), one_coin: one_coin.Prior()}

N_ERRORS = 4.0
"""Monte-Carlo standard errors allowed; 20 quantities leave the band once in 800 keys."""


def log_dirichlet_multinomial(counts, concentration):
    """Log probability of a sequence with these counts."""
    counts, concentration = np.asarray(counts, float), np.asarray(concentration, float)
    total, n = concentration.sum(), counts.sum()
    return (
        gammaln(total)
        - gammaln(total + n)
        + (gammaln(concentration + counts) - gammaln(concentration)).sum()
    )


def mean_row(counts, concentration):
    row = np.asarray(counts, float) + concentration
    return row / row.sum()


def dawid_skene_terms(prior=DEFAULTS[dawid_skene]):
    """Log weight, assignment and parameter means of each term."""
    right, wrong = prior.n_pseudo_labels * prior.accuracy, prior.n_pseudo_labels * 0.4
    rows = np.tile(np.where(np.eye(2, dtype=bool), right, wrong), (N_WORKERS, 1, 1))
    if prior.confusion is not None:
        rows = prior.confusion
    for truth in map(np.array, product(range(2), repeat=N_ITEMS)):
        counts = np.zeros((N_WORKERS, 2, 2))
        np.add.at(counts, (WORKER, truth[ITEM], LABEL), 1)
        weight, prevalence = prevalence_term(truth, prior)
        weight += sum(
            log_dirichlet_multinomial(counts[k, j], rows[k, j]) for k in range(3) for j in range(2)
        )
        confusion = [[mean_row(counts[k, j], rows[k, j]) for j in range(2)] for k in range(3)]
        yield weight, truth, {"prevalence": prevalence, "confusion": np.array(confusion)}


def one_coin_terms(prior=DEFAULTS[one_coin]):
    n, a = np.broadcast_arrays(prior.n_pseudo_labels, prior.accuracy, np.zeros(N_WORKERS))[:2]
    coins = np.stack([n * a, n * (1 - a)], axis=1)
    for truth in map(np.array, product(range(2), repeat=N_ITEMS)):
        counts = np.zeros((N_WORKERS, 2))
        np.add.at(counts, (WORKER, (truth[ITEM] != LABEL).astype(int)), 1)
        weight, prevalence = prevalence_term(truth, prior)
        weight += sum(map(log_dirichlet_multinomial, counts, coins))
        accuracy = np.array(
            [mean_row(row, coin)[0] for row, coin in zip(counts, coins, strict=True)]
        )
        yield weight, truth, {"prevalence": prevalence, "accuracy": accuracy}


def mace_terms():
    prior = mace.Prior()
    coin = np.array([prior.knowing, prior.spamming])
    for truth in map(np.array, product(range(2), repeat=N_ITEMS)):
        prevalence_weight, prevalence = prevalence_term(truth, prior)
        can_know = truth[ITEM] == LABEL
        for knew in map(np.array, product(*([0, 1] if able else [0] for able in can_know))):
            coins, spam = np.zeros((N_WORKERS, 2)), np.zeros((N_WORKERS, 2))
            np.add.at(coins, (WORKER, 1 - knew), 1)
            np.add.at(spam, (WORKER, LABEL), 1 - knew)
            weight = prevalence_weight + sum(
                log_dirichlet_multinomial(coins[k], coin)
                + log_dirichlet_multinomial(spam[k], np.full(2, prior.strategy))
                for k in range(N_WORKERS)
            )
            means = {
                "prevalence": prevalence,
                "competence": np.array([mean_row(row, coin)[0] for row in coins]),
                "strategy": np.array([mean_row(row, np.full(2, prior.strategy)) for row in spam]),
            }
            yield weight, truth, means


def prevalence_term(truth, prior):
    counts = np.bincount(truth, minlength=2)
    concentration = np.full(2, prior.prevalence)
    return log_dirichlet_multinomial(counts, concentration), mean_row(counts, concentration)


TERMS = {dawid_skene: dawid_skene_terms, one_coin: one_coin_terms, mace: mace_terms}


def exact_posterior(model, **prior):
    """Exact label probabilities [item, cls] and posterior means of the parameters."""
    weights, truths, means = zip(*TERMS[model](**prior), strict=True)
    share = np.exp(np.array(weights) - logsumexp(weights))
    probas = np.einsum("t,tik->ik", share, np.eye(2)[np.array(truths)])
    names = means[0]
    return probas, {
        name: sum(s * m[name] for s, m in zip(share, means, strict=True)) for name in names
    }


@pytest.fixture(scope="module")
def posterior():
    """Draws of each case, sampled once."""
    drawn = {}

    def draw(model, method):
        if (model, method) not in drawn:
            drawn[model, method] = bc.sample_posterior(
                model, ANN, method, seed=3, predictive=False, **LENGTHS[method]
            )
        return drawn[model, method]

    return draw


def label_draws(model, post):
    """P(class | labels, parameters) of each draw, [chain, draw, item, cls]."""
    group = group_of(post, "posterior")
    params = model.Params(*(jnp.asarray(group[name].to_numpy()) for name in model.Params._fields))
    labels = dawid_skene.Labels(*map(jnp.asarray, (ITEM, WORKER, LABEL)))

    def one(params):
        return model.label_posterior(params, labels, n_items=N_ITEMS)

    return np.asarray(jax.jit(jax.vmap(jax.vmap(one)))(params), dtype=float)


def errors_of_means(draws):
    """Monte-Carlo standard error of the mean of each entry of [chain, draw, ...]."""
    flat = draws.reshape(*draws.shape[:2], -1)
    ess = np.array([az.ess(np.ascontiguousarray(flat[:, :, i])) for i in range(flat.shape[2])])
    return (flat.std(axis=(0, 1)) / np.sqrt(ess)).reshape(draws.shape[2:])


def assert_means(draws, expected):
    gap = np.abs(draws.mean(axis=(0, 1)) - expected)
    np.testing.assert_array_less(gap, N_ERRORS * errors_of_means(draws))


# Four tasks hardly determine the names of their classes, and the package says so.
pytestmark = pytest.mark.filterwarnings("ignore:label switching", "ignore:the crowd is hardly")


@pytest.mark.parametrize(("model", "method"), CASES)
def test_parameters_have_the_enumerated_means(posterior, model, method):
    group = group_of(posterior(model, method), "posterior")
    _, means = exact_posterior(model)
    for name, expected in means.items():
        assert_means(group[name].to_numpy().astype(float), expected)


@pytest.mark.parametrize(("model", "method"), CASES)
def test_labels_have_the_enumerated_probabilities(posterior, model, method):
    post = posterior(model, method)
    probas, _ = exact_posterior(model)
    draws = label_draws(model, post)
    assert_means(draws, probas)
    np.testing.assert_allclose(bc.label_posterior(post), draws.mean(axis=(0, 1)), atol=1e-5)


def diagonal_betas():
    """Weight of each term, and the beta distributions of P(j | j) of each worker in it."""
    prior = dawid_skene.Prior()
    right, wrong = prior.n_pseudo_labels * prior.accuracy, prior.n_pseudo_labels * 0.4
    weights, shapes = [], []
    for weight, truth, _ in dawid_skene_terms():
        counts = np.zeros((N_WORKERS, 2, 2))
        np.add.at(counts, (WORKER, truth[ITEM], LABEL), 1)
        n_right = np.einsum("kjj->kj", counts)
        weights.append(weight)
        shapes.append((n_right + right, counts.sum(axis=2) - n_right + wrong))
    return np.exp(np.array(weights) - logsumexp(weights)), np.array(shapes)


@pytest.mark.parametrize("method", ["gibbs", pytest.param("nuts", marks=pytest.mark.slow)])
def test_draws_have_the_enumerated_quartiles(posterior, method):
    weights, shapes = diagonal_betas()
    draws = group_of(posterior(dawid_skene, method), "posterior")["confusion"].to_numpy()
    for k, j in product(range(N_WORKERS), range(2)):

        def share(cut, a=shapes[:, 0, k, j], b=shapes[:, 1, k, j]):
            return weights @ beta.cdf(cut, a, b)

        for quantile in (0.25, 0.5, 0.75):
            cut = brentq(lambda x, share=share, q=quantile: share(x) - q, 1e-9, 1 - 1e-9)
            below = (draws[..., k, j, j] < cut).astype(float)
            assert_means(below[..., None], np.array([quantile]))


def test_control_the_posterior_of_another_prior_is_told_apart(posterior):
    post = posterior(dawid_skene, "gibbs")
    draws = label_draws(dawid_skene, post)
    probas, _ = exact_posterior(one_coin)
    with pytest.raises(AssertionError, match="ordered"):
        assert_means(draws, probas)


# Priors of arrays


OWN_PRIORS = {
    dawid_skene: dawid_skene.Prior(
        prevalence=np.array([4.0, 1.5]),
        confusion=np.array(
            [[[5.0, 1.0], [2.0, 3.0]], [[1.5, 1.0], [1.0, 6.0]], [[9.0, 4.0], [0.5, 1.0]]]
        ),
    ),
    one_coin: one_coin.Prior(
        prevalence=np.array([4.0, 1.5]),
        n_pseudo_labels=np.array([3.0, 12.0, 8.0]),
        accuracy=np.array([0.6, 0.9, 0.45]),
    ),
}


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (dawid_skene, "gibbs"),
        (one_coin, "gibbs"),
        pytest.param(dawid_skene, "nuts", marks=pytest.mark.slow),
        pytest.param(one_coin, "nuts", marks=pytest.mark.slow),
    ],
)
def test_priors_of_workers_and_classes_have_the_enumerated_posterior(model, method):
    prior = OWN_PRIORS[model]
    options = {"seed": 3, "prior": prior, "predictive": False, **LENGTHS[method]}
    post = bc.sample_posterior(model, ANN, method, **options)
    probas, means = exact_posterior(model, prior=prior)
    assert_means(label_draws(model, post), probas)
    group = group_of(post, "posterior")
    for name, expected in means.items():
        assert_means(group[name].to_numpy().astype(float), expected)
    # control: the posterior of the default prior is another one
    with pytest.raises(AssertionError, match="ordered"):
        assert_means(label_draws(model, post), exact_posterior(model)[0])


def test_arrays_of_the_same_number_give_the_draws_of_the_number():
    same = {
        "prevalence": jnp.full(2, 3.0),
        "n_pseudo_labels": np.full(3, 8.0),
        "accuracy": np.full((3, 2), 0.6, dtype=np.float32),
    }
    options = {"chains": 1, "draws": 20, "warmup": 5, "predictive": False}
    first, second = (
        group_of(bc.sample_posterior(dawid_skene, ANN, prior=prior, **options), "posterior")
        for prior in (dawid_skene.Prior(), dawid_skene.Prior(**same))
    )
    np.testing.assert_allclose(first["confusion"], second["confusion"], rtol=1e-5)


def test_a_prior_of_the_wrong_workers_is_refused():
    wrong = one_coin.Prior(accuracy=np.full(4, 0.6))
    with pytest.raises(ValueError, match=r"shape \(4,\): expected a number or an array.*worker: 3"):
        bc.sample_posterior(one_coin, ANN, prior=wrong)
