"""Tables of Chinese restaurants: their means, and customers who stay outside."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayescrowd.draws.restaurant_tables import table_counts

N_ERRORS = 4.0
"""Standard errors allowed; the 8 means leave the band once in 2,000 keys."""


@pytest.mark.parametrize("n_labels", [11, 20])
def test_tables_of_restaurants(n_labels):
    # E t = sum of a / (a + i) over a cell's labels, i = 0, 1, ...; variances of Bernoullis
    counts = np.array([[[3.0, 0.0], [1.0, 5.0]], [[2.0, 0.0], [0.0, 0.0]]])
    concentration = np.array([[0.7, 4.0], [2.0, 1.5]])
    draw = jax.jit(jax.vmap(partial(table_counts, n_labels=n_labels), in_axes=(0, None, None)))
    n = 4_000
    drawn = draw(jax.random.split(jax.random.key(1), n), *map(jnp.asarray, (counts, concentration)))
    mean, variance = np.zeros((2, 2)), np.zeros((2, 2))
    for worker, true, observed in product(range(2), repeat=3):
        a = float(concentration[true, observed])
        share = a / (a + np.arange(counts[worker, true, observed]))
        mean[true, observed] += share.sum()
        variance[true, observed] += (share * (1 - share)).sum()
    gap = np.abs(np.asarray(drawn).mean(axis=0) - mean)
    assert (gap <= N_ERRORS * np.sqrt(variance / n) + 1e-6).all()
