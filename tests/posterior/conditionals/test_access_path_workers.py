"""Workers with pooled parameters of their own: both samplers against numerical integration."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from bayescrowd.models import access_path
from bayescrowd.posterior.conditionals.access_path import CONDITIONALS
from bayescrowd.posterior.conditionals.access_path_sweep import FeatureReadings, Tables
from bayescrowd.posterior.conditionals.access_path_workers import (
    PooledTables,
    draw_groups,
    shared_concentration,
    sweep_pooled,
)

POOLING = 3.0
PRIOR = access_path.Prior(right=4.0, wrong=1.0, pooling=POOLING)

# Six readings of one feature of two values, of items of known classes: (group, label) of each of
# their labels. The second group is mostly right and the third mostly wrong.
TARGET = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
LABELS = [
    [(0, 0), (1, 0), (2, 1)],
    [(1, 0), (2, 1)],
    [(0, 0), (1, 0), (2, 1), (2, 0)],
    [(0, 1), (1, 1), (2, 0)],
    [(0, 0), (1, 1)],
    [(1, 1), (2, 0), (2, 0)],
]
N_LABELS = sum(map(len, LABELS))
COUNTS = np.zeros((6, 3, 2), dtype=np.float32)
for r, labels in enumerate(LABELS):
    for place in labels:
        COUNTS[r][place] += 1

N_CHAINS, N_WARMUP, N_SWEEPS = 300, 40, 60
N_ERRORS = 4.5
"""Standard errors allowed; the 20 quantities leave the band once in 7,000 keys."""


def integrated():
    """E theta_y, E and E square of the groups' rows: values enumerated, shared rows on a grid."""
    grid = (np.arange(4_000) + 0.5) / 4_000
    log_weights, found = [], []
    for values in product([0, 1], repeat=len(TARGET)):
        z = np.eye(2)[list(values)]
        conditional = 1 + np.eye(2)[TARGET].T @ z
        by_group = np.einsum("rz,rgx->gzx", z, COUNTS)
        log_weight = betaln(*conditional.T).sum()
        rows = np.zeros((2, 3, 2))
        for true in (0, 1):
            alpha = np.where(np.arange(2) == true, PRIOR.right, PRIOR.wrong) + by_group[0, true]
            log_density = (alpha[0] - 1) * np.log(grid) + (alpha[1] - 1) * np.log1p(-grid)
            a, b = POOLING * grid, POOLING * (1 - grid)
            for n in by_group[1:, true]:
                log_density += betaln(a + n[0], b + n[1]) - betaln(a, b)
            log_weight += logsumexp(log_density)
            share = np.exp(log_density - logsumexp(log_density))
            n = by_group[1:, true].sum(axis=-1)[:, None]
            a_own = a + by_group[1:, true, :1]
            first = np.concatenate([grid[None], a_own / (POOLING + n)])
            second = a_own * (a_own + 1) / ((POOLING + n) * (POOLING + n + 1))
            rows[:, :, true] = [
                share @ first.T,
                share @ np.concatenate([grid[None] ** 2, second]).T,
            ]
        log_weights.append(log_weight)
        found.append((conditional[:, 0] / conditional.sum(axis=1), rows[0], rows[1]))
    share = np.exp(np.array(log_weights) - logsumexp(log_weights))
    return [np.tensordot(share, np.stack(each), 1) for each in zip(*found, strict=True)]


def assert_means(by_sweep, expected):
    """Chains are independent: their spread is the standard error of their mean."""
    by_chain = np.asarray(by_sweep, dtype=float).mean(axis=0)
    error = by_chain.std(axis=0, ddof=1) / np.sqrt(len(by_chain))
    gap = np.abs(by_chain.mean(axis=0) - expected)
    np.testing.assert_array_less(gap, N_ERRORS * error + 1e-4)


def summaries(conditional, groups):
    """What `integrated` has, of draws of the tables of each chain."""
    first = groups[..., 0]
    return conditional[..., 0], first, first**2


@pytest.fixture(scope="module")
def exact():
    return integrated()


def test_chains_of_one_feature_have_the_integrated_means(exact):
    prior = Tables(np.ones((2, 2), np.float32), np.float32([[4, 1], [1, 4]]))
    # two slots and a group are empty
    readings = FeatureReadings(
        np.concatenate([TARGET, np.int32([-1, -1])]),
        np.pad(COUNTS, ((0, 2), (0, 1), (0, 0))).reshape(8, -1),
    )
    state = PooledTables(
        Tables(*(np.repeat(rows[None], N_CHAINS, axis=0) for rows in prior)),
        np.zeros((N_CHAINS, 3, 2, 2), np.float32),
    )
    rng, kept = np.random.default_rng(0), []
    for key in jax.random.split(jax.random.key(1), N_WARMUP + N_SWEEPS):
        state = sweep_pooled(key, state, readings, prior, POOLING, n_labels=N_LABELS + 7)
        state = jax.tree.map(np.asarray, state)
        conditional = state.shared.conditional
        mean = conditional / conditional.sum(axis=-1, keepdims=True)
        kept.append(summaries(mean, draw_groups(rng, state, POOLING)[:, :3]))
    n_seen = np.asarray(state.own).sum(axis=(1, 2, 3))
    assert (n_seen == COUNTS[:, 1:].sum()).all()
    for found, expected in zip(zip(*kept[N_WARMUP:], strict=True), exact, strict=True):
        assert_means(np.stack(found), expected)


@jax.jit
def run_whole_tables(rng_key):
    reading = jnp.repeat(
        jnp.arange(6), jnp.array([*map(len, LABELS)]), total_repeat_length=N_LABELS
    )
    group, label = jnp.array([place for labels in LABELS for place in labels]).T
    observations = access_path.Observations(
        jnp.asarray(TARGET), jnp.arange(6), jnp.zeros(6, int), reading, group, label
    )
    first = CONDITIONALS.first_params(PRIOR, n_groups=3, n_classes=2, n_values=(2,))

    def chain(key):
        def sweep(params, key):
            params = CONDITIONALS.draw_params(
                key, jnp.asarray(TARGET), params, observations, PRIOR, n_values=(2,)
            )
            return params, summaries(params.conditional[0], params.confusion[0])

        return jax.lax.scan(sweep, first, jax.random.split(key, N_WARMUP + N_SWEEPS))[1]

    return jax.vmap(chain, out_axes=1)(jax.random.split(rng_key, N_CHAINS))


def test_whole_tables_have_the_integrated_means(exact):
    for found, expected in zip(run_whole_tables(jax.random.key(2)), exact, strict=True):
        assert_means(found[N_WARMUP:], expected)


def test_control_without_pooling_the_means_are_others(exact):
    alone = np.einsum("rz,rgx->gzx", np.eye(2)[TARGET], COUNTS) + np.float32([[4, 1], [1, 4]])
    assert np.abs(alone[1:, :, 0] / alone[1:].sum(axis=-1) - exact[1][1:]).max() > 0.05


def test_the_first_groups_labels_are_counted_as_they_are():
    found = shared_concentration(
        jax.random.key(0), jnp.ones((2, 2)), jnp.zeros((0, 2, 2)), jnp.ones((2, 2)), n_labels=4
    )
    np.testing.assert_array_equal(found, np.ones((2, 2)))


def test_draws_of_the_whole_model_are_left_alone():
    """Geweke (2004): parameters drawn anew given what they simulated have the same distribution."""
    n_draws, sizes = 4_000, {"n_groups": 3, "n_classes": 2, "n_values": (2, 3)}
    item, feature = map(jnp.asarray, np.divmod(np.arange(8), 2))
    reading, group = map(jnp.asarray, np.divmod(np.arange(24), 3))

    def around_a_draw(key):
        key_model, key_draw = jax.random.split(key)
        drawn = access_path.simulate(
            key_model, item, feature, reading, group, n_items=4, prior=PRIOR, **sizes
        )
        again = CONDITIONALS.draw_params(
            key_draw, drawn.truth, drawn.params, drawn.observations, PRIOR, n_values=(2, 3)
        )
        is_right = drawn.observations.label == drawn.value[reading]
        seen = jnp.array([1.0, *(is_right.reshape(8, 3).mean(axis=0) - 0.75)])

        def statistics(params):
            flat = jnp.concatenate([params.conditional.ravel(), params.confusion.ravel()])
            return jnp.outer(seen, jnp.concatenate([flat, flat**2])).ravel()

        return statistics(drawn.params), statistics(again)

    keys = jax.random.split(jax.random.key(5), n_draws)
    before, after = map(np.asarray, jax.jit(jax.vmap(around_a_draw))(keys))
    change = after - before
    spread = change.std(axis=0) / np.sqrt(n_draws)
    # some 300 statistics leave 5 standard errors once in 6,000 keys
    assert np.abs(change.mean(axis=0)[spread > 1e-9] / spread[spread > 1e-9]).max() < 5
