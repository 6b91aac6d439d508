"""Information gain: by hand, by brute force over all configurations, and its monotonicity."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescrowd.budgeted import information_gain

WIDTHS = (2, 3, 4, 2)


def random_model(seed, n_classes=3, widths=WIDTHS):
    rng = np.random.default_rng(seed)
    channels = np.zeros((len(widths), n_classes, max(widths)))
    for f, width in enumerate(widths):
        channels[f, :, :width] = rng.dirichlet(np.full(width, 0.7), n_classes)
    return rng.dirichlet(np.ones(n_classes)), channels


def brute_force(prior, channels, widths, members):
    """I(Y; X_members), summing over every class and configuration."""
    total = 0.0
    for values in itertools.product(*(range(widths[f]) for f in members)):
        joint = prior.copy()
        for f, x in zip(members, values, strict=True):
            joint = joint * channels[f, :, x]
        p = joint.sum()
        total += sum(q * np.log(q / (p * y)) for q, y in zip(joint, prior, strict=True) if q > 0)
    return total


def joint_of(prior, channels, widths, members):
    joint = prior[:, None]
    for f in members:
        joint = information_gain.extend(joint, channels[f, :, : widths[f]])
    return joint


def test_by_hand():
    # a fair coin read through a channel that is right three times in four
    channel = np.array([[[0.75, 0.25], [0.25, 0.75]]])
    expected = np.log(2) + 0.75 * np.log(0.75) + 0.25 * np.log(0.25)
    (found,) = information_gain.information_gains(np.array([[0.5], [0.5]]), channel)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("members", [(), (1,), (2, 0), (0, 1, 2)])
def test_against_brute_force(seed, members):
    prior, channels = random_model(seed)
    joint = joint_of(prior, channels, WIDTHS, members)
    found = information_gain.information_gains(joint, channels)
    before = brute_force(prior, channels, WIDTHS, members)
    for f in set(range(4)) - set(members):
        after = brute_force(prior, channels, WIDTHS, (*members, f))
        assert found[f] == pytest.approx(after - before, abs=1e-10)


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_never_negative_and_diminishing(seed):
    prior, channels = random_model(seed)
    members = np.random.default_rng(seed).permutation(4)[:3]
    gains = [
        information_gain.information_gains(joint_of(prior, channels, WIDTHS, members[:n]), channels)
        for n in range(4)
    ]
    others = [f for f in range(4) if f not in members]
    for smaller, larger in itertools.pairwise(gains):
        assert (larger >= -1e-12).all()
        assert (larger[others] <= smaller[others] + 1e-12).all()


def test_blocks_of_candidates_change_nothing(monkeypatch):
    prior, channels = random_model(3)
    joint = joint_of(prior, channels, WIDTHS, (1, 2))
    whole = information_gain.information_gains(joint, channels)
    monkeypatch.setattr(information_gain, "_BLOCK_CELLS", 1)
    np.testing.assert_allclose(
        information_gain.information_gains(joint, channels), whole, rtol=1e-12
    )


def test_sampled_tables_are_unbiased_and_near_the_exact_gain():
    widths = (4,) * 6
    prior, channels = random_model(11, n_classes=4, widths=widths)
    joint = joint_of(prior, channels, widths, (0, 1, 2, 3, 4))
    exact = information_gain.information_gains(joint, channels)[5]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(100):
        thinned = information_gain.thin(joint, 100, rng)
        np.testing.assert_allclose(thinned.sum(), 1, rtol=1e-9)
        # H(X_i | y) is exact only with the exact prior; each column has weight 1 / 100
        thinned_prior = thinned.sum(axis=1)
        entropy = information_gain.conditional_entropies(channels[[5]])
        found.append(
            information_gain.information_gains(thinned, channels[[5]])[0]
            + float((entropy @ (thinned_prior - prior))[0])
        )
    spread = np.std(found)
    assert spread < 0.01  # .002 to .006 nats are known for 100 samples
    assert np.mean(found) == pytest.approx(exact, abs=4 * spread / np.sqrt(100))


def test_a_large_table_is_sampled_and_keeps_its_best_feature(monkeypatch):
    widths = (3,) * 7
    prior, channels = random_model(5, widths=widths)
    exact = information_gain.greedy(prior, channels, widths, 5)
    monkeypatch.setattr(information_gain, "N_SAMPLES", 400)
    sampled = information_gain.greedy(prior, channels, widths, 5, most=30)
    assert sampled[:3] == exact[:3]  # 27 configurations: exact so far
    reached = brute_force(prior, channels, widths, sampled)
    assert reached >= brute_force(prior, channels, widths, exact) - 0.01


@pytest.mark.parametrize("seed", range(3))
def test_greedy_is_near_the_best_subset(seed):
    prior, channels = random_model(seed, widths=(2, 3, 2, 3, 2))
    widths = (2, 3, 2, 3, 2)
    chosen = information_gain.greedy(prior, channels, widths, 3)
    assert len({*chosen}) == 3
    reached = brute_force(prior, channels, widths, chosen)
    subsets = itertools.combinations(range(5), 3)
    best = max(brute_force(prior, channels, widths, s) for s in subsets)
    assert reached >= (1 - 1 / np.e) * best


def test_greedy_keeps_the_start_and_avoids_the_excluded():
    prior, channels = random_model(2)
    chosen = information_gain.greedy(prior, channels, WIDTHS, 3, start=[3], excluded=[1])
    assert chosen[0] == 3
    assert {*chosen} == {0, 2, 3}


def test_paths_score_what_may_come_next_and_compute_nothing_twice():
    prior, channels = random_model(3)
    scored = []

    def score(joint, candidates):
        scored.append(joint.shape[1])
        return information_gain.information_gains(joint, candidates)

    paths = information_gain.Paths(prior, channels, WIDTHS, score=score)
    found = paths.greedy(3)
    assert found == information_gain.greedy(prior, channels, WIDTHS, 3)
    first, second = found[:2]
    assert scored == [1, WIDTHS[first], WIDTHS[first] * WIDTHS[second]]
    gains = [
        brute_force(prior, channels, WIDTHS, [first, f])
        - brute_force(prior, channels, WIDTHS, [first])
        for f in range(4)
        if f != first
    ]
    others = [f for f in range(4) if f != first]
    np.testing.assert_allclose(paths.scores((first,))[others], gains, atol=1e-12)
    without = information_gain.greedy(prior, channels, WIDTHS, 2, start=[first], excluded=[second])
    assert paths.greedy(2, start=[first], excluded=[second]) == without
    assert len(scored) == 3


def test_ties_go_to_the_first():
    scores = np.array([0.1, 0.3, 0.3 + 1e-15, 0.2])
    assert information_gain.first_best(scores, np.array([False] * 4)) == 1
    assert information_gain.first_best(scores, np.array([False, True, False, False])) == 2
