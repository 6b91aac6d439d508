"""Numbers of tables in Chinese restaurants: auxiliary variables of pooled Dirichlet rows.

Counts n whose row of probabilities, a Dirichlet of concentrations a, is integrated out have a
density in which Gamma(a + n) / Gamma(a) is a sum over t of Stirling numbers times a^t. Given t, the
a of several rows that share them, a multiple of a Dirichlet row, are conjugate (Y. W. Teh,
M. I. Jordan, M. J. Beal and D. M. Blei 2006, "Hierarchical Dirichlet processes", JASA 101,
section 5.3). t is the number of tables that n customers of a Chinese restaurant sit at: a sum of
Bernoulli(a / (a + i)), i = 0 .. n - 1.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bayescrowd.draws.uniforms import draw_uniforms

__all__ = ["table_counts"]


def table_counts(
    rng_key: PRNGKeyArray,
    counts: Float[Array, "group ..."],
    concentration: Float[Array, "*cell"],
    *,
    n_labels: int,
) -> Float[Array, "*cell"]:
    """Tables of each cell's restaurants, [true, observed] for instance, summed over groups.

    A label is a customer. It does not matter which of a cell's labels is its i-th, so labels are
    assigned to the cells in order.

    Args:
        rng_key: the source of randomness.
        counts: number of labels in each cell of each group, such as a worker.
        concentration: concentrations of the cells, the same in all groups.
        n_labels: number of labels, at least as many as there are in the counts; those beyond them
            stay outside.

    Examples:
        The first customer of a restaurant always opens a table:

        >>> import jax
        >>> counts = jnp.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]])
        >>> table_counts(jax.random.key(0), counts, jnp.ones((2, 2)), n_labels=5).tolist()
        [[2.0, 0.0], [0.0, 1.0]]
    """
    n_cells = concentration.size
    sizes = counts.reshape(-1, n_cells).astype(int).ravel()
    cell = jnp.repeat(jnp.arange(len(sizes)), sizes, total_repeat_length=n_labels)
    rank = jnp.arange(n_labels) - (jnp.cumsum(sizes) - sizes)[cell]
    a = concentration.ravel()[cell % n_cells]
    opens = (draw_uniforms(rng_key, (n_labels,)) * (a + rank) < a) & (rank < sizes[cell])
    return jnp.zeros(n_cells).at[cell % n_cells].add(opens).reshape(concentration.shape)
