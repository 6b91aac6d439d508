"""BudgetedSelection: its value by brute force; its gains, classes, stopping and batches."""

import itertools

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.shrinkage import ShrunkBelief
from bayescrowd.budgeted.information_gain import extend
from bayescrowd.budgeted.policies import lookahead
from bayescrowd.budgeted.policies.lookahead import expected_accuracy
from bayescrowd.budgeted.space import FeatureSpace


def test_value_by_brute_force():
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(3))
    widths = (2, 3, 4)
    channels = [rng.dirichlet(np.ones(w), 3) for w in widths]
    joint = extend(extend(prior[:, None], channels[0]), channels[1])
    accuracy = brier = 0.0
    for values in itertools.product(*map(range, widths)):
        p = prior * np.prod([c[:, x] for c, x in zip(channels, values, strict=True)], axis=0)
        accuracy += p.max()
        brier += (p**2).sum() / p.sum()
    found = expected_accuracy(joint, channels[2][None])
    assert found[0] == pytest.approx(accuracy + 0.02 * brier, rel=1e-12)


def space(**changes):
    features = {f"f{i}": [0, 1] for i in range(5)}
    return FeatureSpace(**({"classes": [0, 1], "features": features} | changes))


def play(policy, informative=("f0", "f1"), seed=0, batch=1, right=0.9):
    rng = np.random.default_rng(seed)
    asked = []
    while queries := policy.ask_batch(batch):
        asked.append(queries)
        for query in queries:
            share = right if query.feature in informative else 0.5
            is_right = rng.random() < share
            policy.tell(query, query.target if is_right else 1 - query.target)
    return asked


def test_value_in_blocks_is_the_value(monkeypatch):
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(30)).reshape(3, 10)
    channels = rng.dirichlet(np.ones(4), (5, 3))
    whole = expected_accuracy(joint, channels)
    monkeypatch.setattr(lookahead, "_BLOCK_CELLS", 4 * channels.size)  # blocks of 4, 4 and 2
    np.testing.assert_allclose(expected_accuracy(joint, channels), whole, rtol=1e-12)


def value(prior, channels):
    """Worth of a set of features, from its full table."""
    joint = prior[:, None]
    for channel in channels:
        joint = (joint[:, :, None] * channel[:, None]).reshape(len(prior), -1)
    return joint.max(axis=0).sum() + 0.02 * (joint**2 / joint.sum(axis=0)).sum()


def greedy_without(prior, mean, left_out, n):
    chosen = []
    while len(chosen) < min(n, len(mean) - len(left_out)):
        rest = [f for f in range(len(mean)) if f not in (*chosen, *left_out)]
        chosen.append(max(rest, key=lambda f: value(prior, mean[[*chosen, f]])))
    return chosen


@pytest.mark.parametrize("n_features", [1, 2, 3, 5])
def test_gains_are_as_defined(n_features):
    policy = bc.BudgetedSelection(space(prior=[0.7, 0.3]), 60, n_features)
    rng = np.random.default_rng(0)
    for _ in range(30):
        query = policy.ask()
        # features of different worth, so that no two sets tie
        share = 0.9 - 0.08 * int(query.feature[1])
        policy.tell(query, query.target if rng.random() < share else 1 - query.target)
    core, state = policy.core, policy.state
    prior, mean = core.problem.prior, state.belief.mean()
    paths = core._paths(state)
    chosen = paths.greedy(n_features)
    assert chosen == greedy_without(prior, mean, [], n_features)
    features = [0, 1, 2, 3, 4]
    unknown = np.full(5, np.inf)  # nothing to average with
    found = core._refresh(np.random.default_rng(7), state, unknown, paths, chosen, features, 6)
    n_observations = (30 / n_features) * np.tile(prior, (5, 1))
    futures = state.belief.imagine(np.random.default_rng(7), features, n_observations, 6)
    for f in features:
        best = greedy_without(prior, mean, [f], n_features)
        others, value_now = mean[best[: n_features - 1]], value(prior, mean[best])
        better = [
            max(value_now, value(prior, [*others, channel])) for channel in (mean[f], *futures[f])
        ]
        # accuracies near 1, computed in another order
        assert found[f] == pytest.approx(np.mean(better[1:]) - better[0], abs=1e-12)


def observed(n, n_features=2, budget=60):
    """A policy after n answers at random."""
    policy = bc.BudgetedSelection(space(), budget, n_features)
    rng = np.random.default_rng(0)
    for _ in range(n):
        policy.tell(policy.ask(), int(rng.integers(2)))
    return policy


@pytest.mark.parametrize("n_draws", [4, 16, 64])
def test_few_draws_replace_a_part_of_what_was_found(n_draws):
    policy = observed(10)
    core, state = policy.core, policy.state
    paths = core._paths(state)
    chosen = paths.greedy(2)
    before = np.array([0.3, 0.1, 0.2, np.inf, 0.4])

    def refreshed(gains, features):
        rng = np.random.default_rng(3)
        return core._refresh(rng, state, gains, paths, chosen, features, n_draws)

    fresh = refreshed(np.full(5, np.inf), [0, 2, 3])
    share = min(1.0, n_draws / 16)
    expected = before.copy()
    expected[[0, 2]] = (1 - share) * before[[0, 2]] + share * fresh[[0, 2]]
    expected[3] = fresh[3]  # nothing was found before
    np.testing.assert_allclose(refreshed(before, [0, 2, 3]), expected, rtol=1e-12)


@pytest.mark.parametrize(("settled", "served", "n_draws"), [(200, 1, 16), (10, 2, 8)])
def test_gains_are_computed_less_often_once_they_are_settled(monkeypatch, settled, served, n_draws):
    monkeypatch.setattr(lookahead, "SETTLED", settled)
    policy = observed(20)
    imagine, calls = ShrunkBelief.imagine, []

    def counted(self, rng, features, n_observations, n):
        calls.append(n)
        return imagine(self, rng, features, n_observations, n)

    monkeypatch.setattr(ShrunkBelief, "imagine", counted)
    for _ in range(12):
        policy.tell(policy.ask(), 0)
    assert calls == [n_draws] * (12 // served)


def test_answers_that_gains_do_not_know_of_leave_less_to_learn():
    policy = observed(10)
    core, state = policy.core, policy.state  # 50 left: 25 answers are imagined of each feature
    everything = np.ones(5, dtype=bool)
    outlook = lookahead.Outlook(
        gains=np.array([0.5, 0.49, 0.1, 0.1, 0.1]),
        members=(2, 3),
        unknown=np.zeros(5, dtype=np.int64),
        n_more=1,
    )
    assert core._best(state, outlook, everything) == 0
    asked = outlook._replace(unknown=np.array([1, 0, 0, 0, 0]))  # .5 / (1 + 1 / 25) = .481
    assert core._best(state, asked, everything) == 1
    nothing = outlook._replace(gains=np.zeros(5))
    assert core._best(state, nothing, everything) in (2, 3)


def test_buys_the_informative_features():
    shares = []
    for seed in range(2):
        policy = bc.BudgetedSelection(space(), 60, 2, seed=seed)
        play(policy, seed=seed)
        assert {*policy.result().selected} == {"f0", "f1"}
        shares.append(policy.result().spending.loc[["f0", "f1"], "labels"].sum() / 60)
    assert np.mean(shares) > 0.6  # evenly spread, it would be .4; measured .78


def test_classes_are_balanced_by_their_prior():
    policy = bc.BudgetedSelection(space(prior=[0.75, 0.25]), 40, 1)
    play(policy)
    history = policy.result().history
    for _, part in history.groupby("feature"):
        n_first = (part["target"] == 0).sum()
        assert abs(n_first - 0.75 * len(part)) <= 1


def test_classes_are_drawn_from_the_prior_if_wanted():
    policy = bc.BudgetedSelection(space(prior=[0.75, 0.25]), 60, 1, target="prior")
    play(policy)
    n_first = (policy.result().history["target"] == 0).sum()
    # binomial: standard deviation sqrt(60 * .75 * .25) = 3.4
    assert abs(n_first - 45) < 4 * 3.4
    by_feature = policy.result().history.groupby("feature")["target"]
    balanced = [abs((y == 0).sum() - 0.75 * len(y)) <= 1 for _, y in by_feature]
    assert not all(balanced)  # as they would be if the classes were chosen


def test_gains_vanish_once_nothing_is_left_to_learn():
    policy = bc.BudgetedSelection(space(), 40, 1)
    play(policy, informative=("f0",), right=1.0)
    assert policy.gains().index.to_list() == [f"f{i}" for i in range(5)]
    # a perfect feature leaves nothing to gain
    assert policy.gains().max() < 0.05


def test_stops_when_nothing_is_worth_its_price():
    policy = bc.BudgetedSelection(space(), 200, 1, stop="worthless")
    play(policy, informative=("f0",), right=1.0)
    assert policy.stopped == "no purchase is worth its price"
    assert policy.spent < 150
    assert policy.result().selected == ("f0",)
    never = bc.BudgetedSelection(space(), 40, 1)
    play(never, informative=("f0",), right=1.0)
    assert never.spent == 40


def test_it_stops_at_once_if_nothing_is_worth_its_price():
    policy = bc.BudgetedSelection(space(), 60, 1, stop="worthless", least_gain=10.0)
    assert policy.ask() is None  # no feature can gain ten times certainty
    assert policy.stopped == "no purchase is worth its price"


def test_an_expensive_feature_is_bought_less():
    spent = {}
    for cost in (1.0, 6.0):
        labels = []
        for seed in range(2):
            policy = bc.BudgetedSelection(space(costs={"f1": cost}), 40, 1, seed=seed)
            play(policy, seed=seed)
            labels.append(policy.result().spending.loc["f1", "labels"])
        spent[cost] = np.mean(labels)
    assert spent[6.0] < spent[1.0]


def test_large_batches_are_spread_over_features():
    policy = bc.BudgetedSelection(space(), 60, 2)
    batches = play(policy, batch=20)
    assert len(batches) == 3
    assert len({query.feature for query in batches[0]}) >= 3
    assert {*policy.result().selected} == {"f0", "f1"}


def test_all_features_selected():
    policy = bc.BudgetedSelection(space(), 30, 5)
    play(policy)
    assert {*policy.result().selected} == {f"f{i}" for i in range(5)}
