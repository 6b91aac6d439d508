"""Samplers are calibrated on what their models simulate, and wrong ones are found out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bayescrowd import models
from bayescrowd.models import (
    dawid_skene,
)
from bayescrowd.models.dawid_skene import Labels, Prior
from bayescrowd.posterior import calibration
from bayescrowd.posterior.calibration import Calibration, Simulated, ecdf_band
from bayescrowd.posterior.gibbs import Gibbs
from bayescrowd.posterior.nuts import nuts_kernel

LEVEL = 1e-3
"""Level of each test; all models make some 80, so that one key in 13 would fail somewhere."""

CASE = calibration.crowd_case(dawid_skene)


# The tests of uniformity


def found_of(ranks, n_draws):
    """A result with given ranks [simulation, quantity]: draws 0..n_draws-1, truths between them."""
    ranks = np.asarray(ranks)
    draws = np.broadcast_to(np.arange(n_draws)[:, None], (len(ranks), n_draws, ranks.shape[1]))
    names = tuple(f"q{i}" for i in range(ranks.shape[1]))
    return Calibration(names, ranks - 0.5, draws.astype(float))


def test_ranks_by_hand():
    draws = np.array([[[0.1], [0.5], [0.3]], [[0.1], [0.5], [0.3]]])
    found = Calibration(("q",), np.array([[0.4], [0.0]]), draws)
    assert found.ranks.tolist() == [[2], [0]]
    np.testing.assert_allclose(calibration.ecdf(found), [[0.5, 0.5, 1.0]])
    # centred draws -.2, .2, 0: products -.04 and 0, squares .04, .04 and 0
    np.testing.assert_allclose(found.autocorrelation, [(-0.04 / 2) / (0.08 / 3)])


def test_chi_square_by_hand():
    # 8 ranks in 2 bins of 4 ranks: six and two, so that the statistic is (2^2 + 2^2) / 4
    found = found_of(np.array([[0, 0, 1, 2, 3, 3, 4, 7]]).T, 7)
    expected = stats.chi2(1).sf(2.0)
    np.testing.assert_allclose(calibration.chi_square_p_values(found, n_bins=2), expected)


@pytest.mark.parametrize(("n_simulations", "n_draws", "level"), [(60, 7, 0.1), (200, 31, 0.02)])
def test_bands_hold_as_often_as_they_say(n_simulations, n_draws, level):
    n_repeats = 4000
    ranks = np.random.default_rng(0).integers(n_draws + 1, size=(n_simulations, n_repeats))
    share = calibration.is_outside(found_of(ranks, n_draws), level=level).mean()
    error = np.sqrt(level / n_repeats)
    # binomial intervals change in jumps: the band may be a little wider than it has to be
    assert 0.6 * level - 4 * error < share < level + 4 * error


def test_bands_enclose_the_pointwise_intervals():
    band = ecdf_band(100, 15, level=0.05)
    pointwise = stats.binom(100, band.position).ppf([[0.025], [0.975]]) / 100
    assert (band.lower < pointwise[0]).all()
    assert (band.upper > pointwise[1]).all()
    # but not those of Bonferroni, which ignore that neighbours go together
    apart = stats.binom(100, band.position).ppf([[0.025 / 15], [1 - 0.025 / 15]]) / 100
    assert (band.upper - band.lower).sum() < (apart[1] - apart[0]).sum()


@pytest.mark.parametrize("shape", [(2.0, 2.0), (0.6, 0.6), (1.0, 1.4)])
def test_control_ranks_that_are_not_uniform_are_found_out(shape):
    # too wide, too narrow and biased posteriors
    u = np.random.default_rng(1).beta(*shape, size=(512, 1))
    found = found_of((u * 32).astype(int), 31)
    assert calibration.is_outside(found, level=LEVEL).all()
    assert (calibration.chi_square_p_values(found) < LEVEL).all()


def test_bins_have_to_divide_the_ranks():
    with pytest.raises(ValueError, match="n_bins=5: expected a divisor of 8"):
        calibration.chi_square_p_values(found_of([[0], [1]], 7), n_bins=5)


# Samplers


def simulated_crowds(seed, prior, n_simulations):
    """Parameters and labels drawn by NumPy, which knows our model not and compiles nothing."""
    rng = np.random.default_rng(seed)
    item, worker = map(np.asarray, CASE.design)
    right, wrong = prior.n_pseudo_labels * prior.accuracy, prior.n_pseudo_labels * 0.4
    rows = np.where(np.eye(2, dtype=bool), right, wrong)
    prevalence = rng.dirichlet(np.full(2, prior.prevalence), size=n_simulations)
    confusion = np.stack([rng.dirichlet(row, size=(n_simulations, 4)) for row in rows], axis=2)
    truth = (rng.random((n_simulations, 12)) < prevalence[:, 1:]).astype(int)
    says_one = confusion[np.arange(n_simulations)[:, None], worker, truth[:, item], 1]
    label = (rng.random(says_one.shape) < says_one).astype(int)
    same = [jnp.asarray(np.tile(codes, (n_simulations, 1))) for codes in (item, worker)]
    params = dawid_skene.Params(*(jnp.asarray(p, jnp.float32) for p in (prevalence, confusion)))
    return Simulated(params, Labels(*same, jnp.asarray(label)))


def test_control_a_sampler_that_ignores_the_data_is_found_out_by_the_likelihood():
    # Draws from the prior are calibrated parameter by parameter: ranks of the truth among them are
    # uniform, since it is such a draw itself.
    crowds = simulated_crowds(7, Prior(), 256)
    others = simulated_crowds(8, Prior(), 256 * 31).params
    shuffled = jax.tree.map(lambda p: p.reshape(256, 31, *p.shape[1:]), others)
    both = [
        np.asarray(jax.jit(jax.vmap(of))(params, crowds.data))
        for of, params in ((quantities, crowds.params), (jax.vmap(quantities, (0, None)), shuffled))
    ]
    found = Calibration(("prevalence", "confusion", "log_likelihood"), *both)
    assert calibration.is_outside(found, level=LEVEL).tolist() == [False, False, True]


def quantities(params, labels):
    log_joint = dawid_skene.label_log_joint(params, labels, n_items=12)
    log_likelihood = jax.nn.logsumexp(log_joint, axis=-1).sum()
    return jnp.stack([params.prevalence[0], params.confusion[0, 0, 0], log_likelihood])


# All models, from their own simulations; `test_sbc.py` has small versions


def assert_calibrated(found):
    p_values = calibration.chi_square_p_values(found)
    assert (p_values > LEVEL).all(), dict(zip(found.quantities, p_values, strict=True))
    assert not calibration.is_outside(found, level=LEVEL).any()
    # beside the -1 / n_draws of independent draws; the ranks' variance grows by twice of it
    assert (found.autocorrelation < 0.05).all(), found.autocorrelation


NAMES = {*models.catalogue("labels"), *models.catalogue("features")}
SLOWLY_MIXING = {"ability_dawid_skene"}  # no affordable thinning makes its draws independent


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NAMES - SLOWLY_MIXING))
def test_every_sampler_is_calibrated(name):
    model = getattr(models, name)
    case, thin, warmup = calibration.standard_case(model)
    kernel = Gibbs(model) if model.FACTS.has_conditionals else nuts_kernel(model)
    key_simulate, key_sample = jax.random.split(jax.random.key(11))
    simulated = calibration.simulate_prior(key_simulate, case, n_simulations=256)
    found = calibration.calibrate(key_sample, kernel, case, simulated, thin=thin, warmup=warmup)
    assert_calibrated(found)
