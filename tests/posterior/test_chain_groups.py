"""Groups of chains that agree, and whether they stay apart."""

import numpy as np

from bayescrowd.posterior.chain_groups import group_chains, stay_apart


def test_chains_that_agree_are_in_one_mode():
    draws = np.random.default_rng(0).normal(size=(5, 300, 4))
    draws[[1, 3], :, 2] += 4
    draws[4, :, 0] -= 4
    assert group_chains([draws, draws[:, :, 0]]).tolist() == [0, 1, 0, 1, 2]
    assert group_chains([draws[:, :, [1, 3]]]).tolist() == [0] * 5


def slow_chains(n_draws=1_000):
    """Four chains whose draws remember the last hundred; the last one is elsewhere."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4, n_draws + 200, 2))
    kernel = 0.97 ** np.arange(200)
    slow = np.apply_along_axis(lambda x: np.convolve(x, kernel, "valid"), 1, noise)[:, :n_draws]
    slow /= slow.std()
    slow[3, :, 0] += 12
    return slow


def test_slow_chains_stay_apart_and_creeping_ones_do_not():
    draws = slow_chains()
    assert group_chains([draws]).tolist() == [0, 0, 0, 1]
    assert stay_apart([draws], np.array([0, 0, 0, 1]))
    draws[3, :, 0] -= np.linspace(0, 10, draws.shape[1])
    assert not stay_apart([draws], np.array([0, 0, 0, 1]))
