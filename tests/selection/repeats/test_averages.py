"""The baselines: forward selection by training error, done the slow way."""

import numpy as np
import pytest

import bayescrowd as bc


def drawn(seed=0, m=60, d=5, k=2):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, d)) @ rng.normal(size=(d, d))
    values = truth[:, :, None] + rng.normal(size=(m, d, k)) * rng.uniform(0.5, 3, size=(d, 1))
    return values, truth @ rng.normal(size=d) + rng.normal(size=m)


def training_error(features, y):
    design = np.column_stack([np.ones(len(y)), *features])
    return np.mean((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_averages_selects_forward(seed):
    values, y = drawn(seed)
    means, chosen, errors = values.mean(axis=2), [], []
    for _ in range(4):
        rest = [a for a in range(5) if a not in chosen]
        found = [training_error([means[:, c] for c in [*chosen, a]], y) for a in rest]
        chosen.append(rest[int(np.argmin(found))])
        errors.append(min(found))
    est = bc.Averages(budget=9).fit(values, y)
    assert est.selected_.to_dict() == dict.fromkeys(sorted(chosen), 2)
    np.testing.assert_allclose(est.projected_loss_[[2, 4, 6, 8]], errors, rtol=1e-9)
    assert est.repeats_.loc[5].sum() == 4  # a budget of five buys two pairs


@pytest.mark.parametrize("seed", range(3))
def test_copies_selects_forward_in_the_order_of_copies(seed):
    values, y = drawn(seed)
    times, errors = np.zeros(5, dtype=int), []
    for _ in range(7):
        found = np.full(5, np.inf)
        for a in np.flatnonzero(times < 2):
            taken = times + (np.arange(5) == a)
            columns = [values[:, b, c] for b in range(5) for c in range(taken[b])]
            found[a] = training_error(columns, y)
        times[found.argmin()] += 1
        errors.append(found.min())
    est = bc.Copies(budget=7).fit(values, y)
    assert est.repeats_.loc[7].tolist() == times.tolist()
    np.testing.assert_allclose(est.projected_loss_[1:], errors, rtol=1e-9)


def test_never_more_often_than_in_training():
    values, y = drawn()
    for selector in (bc.Averages, bc.Copies):
        est = selector(budget=100).fit(values, y)
        assert est.repeats_.iloc[-1].tolist() == [2] * 5


def test_costs_are_those_of_all_judgements():
    values, y = drawn()
    est = bc.Averages(budget=8, costs=[4, 1, 1, 1, 1]).fit(values, y)
    assert (est.repeats_ @ est.attributes_["cost"]).iloc[-1] <= 8
    assert set(est.repeats_.to_numpy().ravel()) <= {0, 2}


def test_unequal_numbers():
    values, y = drawn(k=3)
    values[0, 1, 2] = np.nan
    est = bc.Copies(budget=30).fit(values, y)
    assert est.repeats_.iloc[-1].tolist() == [3, 2, 3, 3, 3]
    values[3, 4] = np.nan
    with pytest.raises(ValueError, match="attribute 4 is not judged on every object, which Av"):
        bc.Averages(budget=4).fit(values, y)
