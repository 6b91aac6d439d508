"""Tables known by draws: batches are joined chain by chain, and credibility is not cut short."""

from itertools import repeat

import numpy as np
import pytest

from bayescrowd.budgeted.beliefs.credibility import MOST_ERROR, table_credibility
from bayescrowd.budgeted.beliefs.drawn_tables import (
    DrawnTables,
    _joined,
    credibility_of_batches,
)

ROWS = np.array([[30.0, 8.0, 2.0], [5.0, 5.0, 10.0]])
PRIOR = np.array([0.6, 0.4])
N_CHAINS = 16
SETTINGS = {"epsilon": 0.05, "measure": "interval"}
EXACT = table_credibility(ROWS, PRIOR, **SETTINGS)


def batches(seed):
    """Batches of 256 independent draws from the Dirichlet rows."""
    rng = np.random.default_rng(seed)
    while True:
        rows = [rng.dirichlet(row, 16 * N_CHAINS) for row in ROWS]
        yield DrawnTables(np.stack(rows, axis=1), None)


def found(seed, required=None):
    return credibility_of_batches(batches(seed), N_CHAINS, PRIOR, **SETTINGS, required=required)


def test_each_chain_goes_on_where_it_was():
    first, second = (np.arange(4).reshape(4, 1, 1) + step for step in (0.0, 10.0))
    joined = _joined([DrawnTables(first, None), DrawnTables(second, None)], n_chains=2)
    assert joined.conditional.ravel().tolist() == [0, 1, 10, 11, 2, 3, 12, 13]
    assert joined.confusion is None


def test_the_error_is_small_and_covers():
    for seed in range(5):
        known = found(seed)
        assert known.confusion == 1
        assert known.error <= MOST_ERROR
        assert abs(known.conditional - EXACT) < 4.5 * known.error


def test_few_draws_do_not_say_yes_by_chance():
    """What is required is .02 above the truth, as far as 2.5 errors of `MOST_ERROR`.

    Each of 100 comparisons is then wrong with a probability of about .01; more than five wrong ones
    have a probability below .001. One batch has an error of about .02, and is often too high.
    """
    required = EXACT + 0.02
    said = [found(seed, (required, 1.0)).conditional >= required for seed in range(100)]
    assert sum(said) <= 5
    single = (next(batches(seed)) for seed in range(100))
    alone = [tables.credibility(PRIOR, **SETTINGS)[0].value >= required for tables in single]
    assert sum(alone) >= 10
    # what is as credible as required by a wide margin takes one batch
    few = iter([next(batches(0))])
    known = credibility_of_batches(few, N_CHAINS, PRIOR, **SETTINGS, required=(EXACT - 0.2, 1.0))
    assert known.conditional > EXACT - 0.2


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_renaming_hidden_values_leaves_the_credibility(noise):
    rng = np.random.default_rng(0)
    conditional = np.stack([rng.dirichlet(row[:2], 256) for row in ROWS], axis=1)
    of_right = np.array([[1 - noise, noise], [noise, 1 - noise]])
    confusion = np.stack([rng.dirichlet(60 * row, 256) for row in of_right], axis=1)
    order = rng.permuted(np.tile([0, 1], (256, 1)), axis=1)
    renamed = DrawnTables(
        np.take_along_axis(conditional, order[:, None, :], axis=2),
        np.take_along_axis(confusion, order[:, :, None], axis=1),
    )
    plain, other = (
        credibility_of_batches(repeat(tables), N_CHAINS, PRIOR, **SETTINGS, required=(0.0, 0.0))
        for tables in (DrawnTables(conditional, confusion), renamed)
    )
    np.testing.assert_allclose(other, plain, rtol=1e-6)
