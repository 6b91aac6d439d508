import numpy as np
import pandas as pd
import pytest

from bayescrowd.feature_table import as_feature_table
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.mixture.pair_information import PairInformation
from bayescrowd.mixture.stages import State, _split, _Symbols, maximisation, stagewise_em


def experts_and_noise(seed=0, n_items=400, missing=0.0):
    """Four features that copy one of two kinds nine times of ten, after twelve coins."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=(n_items, 1))
    experts = np.where(rng.random((n_items, 4)) < 0.9, kind, 1 - kind)
    table = np.hstack([rng.integers(2, size=(n_items, 12)), experts]).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    return as_feature_table(table)


def test_m_step_by_hand():
    table = as_feature_table(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 2, None]}))
    posterior = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    estimate = maximisation(table, 0.0)(_Symbols(table).sweep(posterior), None)
    expected = [[1.0, 0.2], [0.0, 0.8], [2 / 3, 0.0], [1 / 3, 1 / 3], [0.0, 2 / 3]]
    np.testing.assert_allclose(np.exp(estimate.log_table), expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(estimate.log_prior), [1.5 / 4, 2.5 / 4])


def test_m_step_of_a_component_without_the_feature_is_the_marginal():
    table = as_feature_table(pd.DataFrame({"a": [0, 0, 1, 0], "b": [0, 1, None, None]}))
    posterior = np.repeat([[1.0, 0.0], [0.0, 1.0]], 2, axis=0)
    estimate = maximisation(table, 0.0)(_Symbols(table).sweep(posterior), None)
    np.testing.assert_allclose(np.exp(estimate.log_table[2:, 1]), [0.5, 0.5])


def test_m_step_is_that_of_the_mixture():
    table = experts_and_noise(missing=0.2)
    posterior = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=table.n_items)
    estimate = maximisation(table, 0.7)(_Symbols(table).sweep(posterior), None)
    mixture = MDPD(3, init=posterior, n_init=1, pseudo_counts=0.7, n_iter=1, tol=0).fit(table)
    np.testing.assert_allclose(np.exp(estimate.log_table), mixture.profiles_, rtol=1e-9)


def test_regularised_e_step_hears_the_informative_set_alone():
    table = experts_and_noise(1, missing=0.1)
    symbols = _Symbols(table)
    posterior = np.random.default_rng(0).dirichlet([1.0, 1.0], size=table.n_items)
    estimate = maximisation(table, 1.0)(symbols.sweep(posterior), None)
    np.testing.assert_allclose(
        symbols.posterior(State(estimate, ())), np.tile(np.exp(estimate.log_prior), (400, 1))
    )
    matrix = table.matrix.toarray()
    chosen = [*range(2, 4), *range(28, 30)]  # features 1 and 14, two values each
    scores = matrix[:, chosen] @ estimate.log_table[chosen] + estimate.log_prior
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(symbols.posterior(State(estimate, (14, 1))), expected, rtol=1e-9)


def test_split_moves_two_features_and_keeps_the_distribution_on_average():
    table = experts_and_noise(2)
    symbols = _Symbols(table)
    ones = np.ones((table.n_items, 1))
    before = State(maximisation(table, 0.0)(symbols.sweep(ones), None), ())
    scan = PairInformation(table).scan(ones)
    after = _split(symbols, before, ones, scan, 0.1).estimate
    np.testing.assert_allclose(np.exp(after.log_prior), [0.5, 0.5])
    profiles = np.exp(after.log_table)
    np.testing.assert_allclose(profiles.mean(axis=1), np.exp(before.estimate.log_table[:, 0]))
    moved = np.flatnonzero(np.abs(profiles[:, 0] - profiles[:, 1]) > 1e-12)
    assert set(moved) == set(symbols.of_features((scan.first, scan.second)))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_experts_are_found_and_noise_is_not(missing):
    found = stagewise_em(experts_and_noise(3, missing=missing), 2, level=0.05)
    # Three of them may leave nothing for the fourth to explain.
    assert set(found.informative) <= {12, 13, 14, 15}
    assert len(found.informative) >= 3
    assert found.converged
    assert found.posterior.shape == (400, 2)
    assert found.records[-1].scan.max_norm < found.records[0].scan.max_norm / 5


def test_no_tolerance_runs_all_iterations():
    found = stagewise_em(experts_and_noise(4), 2, n_iter=7, tol=0.0)
    assert len(found.records) == 8
    assert not found.converged


def test_control_shuffled_features_have_nothing_informative():
    table = experts_and_noise(5)
    rng = np.random.default_rng(0)
    values = table.matrix.toarray()[:, 1::2]
    shuffled = as_feature_table(rng.permuted(values, axis=0))
    found = stagewise_em(shuffled, 2, level=0.01)
    # The pair that was split, since a second component was asked for, and nothing else.
    assert len(found.informative) == 2
