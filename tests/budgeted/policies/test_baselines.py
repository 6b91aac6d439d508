"""The baselines: what each of them asks, step by step."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.information_gain import greedy, information_gains
from bayescrowd.budgeted.space import FeatureSpace

FEATURES = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
SPACE = FeatureSpace(classes=[0, 1], features=FEATURES, prior=[0.7, 0.3])


def steps(policy, seed=0):
    """Play with random answers; yields each query before it is answered."""
    rng = np.random.default_rng(seed)
    while (query := policy.ask()) is not None:
        yield query
        policy.tell(query, int(rng.integers(len(policy.space.features[query.feature]))))


def conditional_entropy(policy, feature):
    """H(Y | X) of one feature at the posterior mean, from the reported answers."""
    counts = np.ones((2, len(FEATURES[feature])))
    for query in policy.result().history.itertuples():
        if query.feature == feature:
            counts[query.target, query.answers[0]] += 1
    joint = counts / counts.sum(axis=1, keepdims=True) * np.array([[0.7], [0.3]])
    return -(joint * np.log(joint / joint.sum(axis=0))).sum()


def test_round_robin_is_even():
    policy = bc.RoundRobin(SPACE, 11, 1)
    features = [query.feature for query in steps(policy)]
    assert features[:3] * 4 == [*features, features[2]]


def test_biased_robin_stays_while_the_conditional_entropy_falls():
    policy = bc.BiasedRobin(SPACE, 40, 1, seed=1)
    order = list(policy.core.problem.space.names)
    losses, last = {}, None
    n_moves = 0
    for query in steps(policy):
        if last is not None:
            has_fallen = conditional_entropy(policy, last) < losses[last] - 1e-12
            following = order[(order.index(last) + 1) % 3]
            assert query.feature == (last if has_fallen else following)
            n_moves += not has_fallen
        last = query.feature
        losses[last] = conditional_entropy(policy, last)
    assert 0 < n_moves < 39


def test_ts_greedy_asks_each_of_k_features_once_per_draw():
    policy = bc.TsGreedy(SPACE, 20, 2, seed=0)
    features = [query.feature for query in steps(policy)]
    pairs = list(zip(features[::2], features[1::2], strict=True))
    assert all(one != other for one, other in pairs)
    assert len({*pairs}) > 2  # it explores


def test_ts_greedy_chooses_greedily_under_its_draw():
    policy = bc.TsGreedy(SPACE, 20, 2, seed=3)
    state, own = policy.state, policy.core.problem.space
    drawn = state.belief.draw(state.position.generator())
    expected = greedy(SPACE.class_prior, drawn, state.belief.n_outcomes, 2)
    names = [own.names[f] for f in expected]
    assert [query.feature for query in policy.ask_batch(2)] == names


def test_posterior_mean_greedy_asks_what_looks_best():
    policy = bc.PosteriorMeanGreedy(SPACE, 30, 1, seed=0)
    own = policy.core.problem.space
    for query in steps(policy):
        gains = information_gains(own.class_prior[:, None], policy.state.belief.mean())
        best = gains.round(12).max()
        assert gains[own.names.index(query.feature)] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("explore", ["thompson", "biased-robin", "round-robin"])
def test_explore_then_commit_buys_in_the_second_half_what_looks_best(explore):
    policy = bc.ExploreThenCommit(SPACE, 40, 2, explore=explore, seed=2)
    features = []
    for query in steps(policy):
        features.append(query.feature)
        if len(features) > 20:
            own, belief = policy.core.problem.space, policy.state.belief
            best = greedy(own.class_prior, belief.mean(), belief.n_outcomes, 2)
            asked = policy.result().spending["observations"]
            names = [own.names[f] for f in best]
            assert query.feature == min(names, key=lambda name: asked[name])
    assert len(features) == 40
    twin = {"thompson": bc.TsGreedy, "biased-robin": bc.BiasedRobin, "round-robin": bc.RoundRobin}
    assert features[:20] == [q.feature for q in steps(twin[explore](SPACE, 40, 2, seed=2))][:20]


def test_explore_then_commit_waits_for_answers_before_it_commits():
    policy = bc.ExploreThenCommit(SPACE, 8, 1, seed=0)
    queries = policy.ask_batch(8)
    assert len(queries) == 4
    assert policy.stopped == ""
    for query in queries:
        policy.tell(query, 0)
    assert len(policy.ask_batch(8)) == 4


def test_bad_share():
    with pytest.raises(ValueError, match=r"share=1\.5: expected a number from 0 to 1"):
        bc.ExploreThenCommit(SPACE, 20, 1, share=1.5)
