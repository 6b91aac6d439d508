import warnings

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.data.features import as_feature_table
from bayescrowd.mixture import stagewise
from bayescrowd.mixture.mdpd import MDPD
from bayescrowd.mixture.pair_information import PairInformation, scan_cost
from bayescrowd.mixture.splitting import split_direction
from bayescrowd.mixture.stagewise import State, _split, _SymbolMatrix, maximisation, stagewise_em


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
    estimate = maximisation(table, 0.0)(_SymbolMatrix(table).sweep(posterior), None)
    expected = [[1.0, 0.2], [0.0, 0.8], [2 / 3, 0.0], [1 / 3, 1 / 3], [0.0, 2 / 3]]
    np.testing.assert_allclose(np.exp(estimate.log_table), expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(estimate.log_prior), [1.5 / 4, 2.5 / 4])


def test_m_step_of_a_component_without_the_feature_is_the_marginal():
    table = as_feature_table(pd.DataFrame({"a": [0, 0, 1, 0], "b": [0, 1, None, None]}))
    posterior = np.repeat([[1.0, 0.0], [0.0, 1.0]], 2, axis=0)
    estimate = maximisation(table, 0.0)(_SymbolMatrix(table).sweep(posterior), None)
    np.testing.assert_allclose(np.exp(estimate.log_table[2:, 1]), [0.5, 0.5])


def test_m_step_is_that_of_the_mixture():
    table = experts_and_noise(missing=0.2)
    posterior = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=table.n_items)
    estimate = maximisation(table, 0.7)(_SymbolMatrix(table).sweep(posterior), None)
    mixture = MDPD(3, init=posterior, n_init=1, pseudo_counts=0.7, n_iter=1, tol=0).fit(table)
    np.testing.assert_allclose(np.exp(estimate.log_table), mixture.profiles_, rtol=1e-9)


def test_regularised_e_step_hears_the_informative_set_alone():
    table = experts_and_noise(1, missing=0.1)
    symbols = _SymbolMatrix(table)
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
    symbols = _SymbolMatrix(table)
    ones = np.ones((table.n_items, 1))
    before = State(maximisation(table, 0.0)(symbols.sweep(ones), None), ())
    scan = PairInformation(table).scan(ones)
    after = _split(symbols, before, scan, "probability", 0.1).estimate
    np.testing.assert_allclose(np.exp(after.log_prior), [0.5, 0.5])
    profiles = np.exp(after.log_table)
    np.testing.assert_allclose(profiles.mean(axis=1), np.exp(before.estimate.log_table[:, 0]))
    moved = np.flatnonzero(np.abs(profiles[:, 0] - profiles[:, 1]) > 1e-12)
    assert set(moved) == set(symbols.of_features((scan.first, scan.second)))


def test_hessian_is_that_of_the_e_step_that_follows(monkeypatch):
    # The pair enters S first: each split's curvature is the second difference of I(Xi; Xj | Y)
    # when twins that stand a little apart are assigned items by S and the pair.
    rng = np.random.default_rng(3)
    kind = rng.integers(4, size=(600, 1))
    table = as_feature_table(np.where(rng.random((600, 6)) < 0.7, kind, rng.integers(4, size=6)))
    symbols, pairs = _SymbolMatrix(table), PairInformation(table)
    splits = []

    def spied(symbols, state, scan, coordinates, step):
        splits.append((state, scan))
        return _split(symbols, state, scan, coordinates, step)

    monkeypatch.setattr(stagewise, "_split", spied)
    found = stagewise_em(table, 4, coordinates="probability", pseudo_counts=1.0)
    assert len(splits) == 3
    grown = [len(state.informative) for state, _ in splits]
    assert grown == [record.n_informative for record in found.records[1:4]]
    assert grown[-1] > grown[0]
    width = 1e-3
    for state, scan in splits:
        own = [symbols.of_features((f,)) for f in (scan.first, scan.second)]
        profiles = tuple(np.exp(state.estimate.log_table[o, scan.component]) for o in own)
        direction = split_direction(
            symbols.one_hot(scan.first),
            symbols.one_hot(scan.second),
            symbols.posterior(state),
            scan.component,
            profiles,
        )
        moved = _split(symbols, state, scan, "probability", width)
        for place, profile, change in zip(own, profiles, direction[:2], strict=True):
            np.testing.assert_allclose(
                np.exp(moved.estimate.log_table[place, scan.component]), profile + width * change
            )
        before, after = (
            pairs.matrix(symbols.posterior(s))[scan.first, scan.second] for s in (state, moved)
        )
        # Both signs of the step are the same mixture, so that one difference is half of two.
        assert 2 * (after - before) / width**2 == pytest.approx(direction.curvature, rel=5e-3)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_experts_are_found_and_noise_is_not(missing):
    found = stagewise_em(experts_and_noise(3, missing=missing), 2, level=0.05)
    # Three of them may leave nothing for the fourth to explain.
    assert set(found.informative) <= {12, 13, 14, 15}
    assert len(found.informative) >= 3
    assert found.converged
    assert found.posterior.shape == (400, 2)
    assert found.records[-1].scan.max_norm < found.records[0].scan.max_norm / 5


def test_the_better_of_both_coordinates_is_kept():
    for seed in range(4):
        table = experts_and_noise(seed)
        plain, fisher, best = (
            stagewise_em(table, 3, coordinates=c).records[-1].log_likelihood
            for c in ("probability", "fisher", "best")
        )
        assert best == pytest.approx(max(plain, fisher), rel=1e-9)


@pytest.mark.parametrize("stuck", ["probability", "fisher"])
def test_coordinates_that_get_stuck_leave_the_others(monkeypatch, stuck):
    table = experts_and_noise(6)
    grow = stagewise._grow

    def grow_or_stick(*arguments, coordinates, **options):
        if coordinates == stuck:
            raise stagewise._NothingToSplit("stuck")
        return grow(*arguments, coordinates=coordinates, **options)

    monkeypatch.setattr(stagewise, "_grow", grow_or_stick)
    assert stagewise_em(table, 2, level=0.05).converged
    with pytest.raises(ValueError, match="stuck"):
        stagewise_em(table, 2, coordinates=stuck)


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


def test_says_what_it_will_cost_before_it_begins(monkeypatch):
    # 400 complete items of 16 binary features: 120 pairs, quicker in dense tables than in a list
    # of 48,000 co-occurrences.
    def begin(table):
        raise RuntimeError("it has begun")

    monkeypatch.setattr(stagewise, "PairInformation", begin)
    monkeypatch.setattr(stagewise, "MUCH_TIME", 0.0)
    with (
        pytest.warns(stagewise.ExpensiveFitWarning, match="120 pairs of features.*100 iterations"),
        pytest.raises(RuntimeError, match="it has begun"),
    ):
        stagewise_em(experts_and_noise(), 2, coordinates="fisher")


@pytest.mark.parametrize(("n_workers", "warns"), [(1000, False), (20_000, True)])
def test_cost_is_said_of_tables_that_need_gigabytes(monkeypatch, n_workers, warns):
    # Every worker has labelled 40 of 40 tasks; the table itself is not looked at.
    ann = bc.simulate.crowd(40, n_workers, 2, seed=0).annotations
    table = as_feature_table(ann)
    cost = scan_cost(table, 2)
    assert (cost.memory > stagewise.MUCH_MEMORY) == warns
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stagewise._warn_of_cost(table, 2, 10)
    assert [w.category for w in caught] == [stagewise.ExpensiveFitWarning] * warns
