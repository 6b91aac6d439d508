"""B-LEAFS: the searches' budgets, credibility, and what the paper leaves open."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.beliefs.credibility import table_credibility
from bayescrowd.budgeted.information_gain import information_gains
from bayescrowd.budgeted.policies.bleafs import _ceilings
from bayescrowd.budgeted.space import FeatureSpace


def space(n_features=6, n_values=3):
    features = {f"f{i}": list(range(n_values)) for i in range(n_features)}
    return FeatureSpace(classes=[0, 1], features=features)


def play(policy, *, informative=("f0", "f1"), seed=0):
    """Informative features are right nine times in ten; the others are noise."""
    rng = np.random.default_rng(seed)
    while (query := policy.ask()) is not None:
        n_values = len(policy.space.features[query.feature])
        is_right = query.feature in informative and rng.random() < 0.9
        policy.tell(query, query.target if is_right else int(rng.integers(n_values)))
    return policy


@pytest.mark.parametrize(
    ("budget", "n_features", "expected"),
    [(200, 4, [100, 150, 175, 200]), (100, 2, [50, 100]), (7, 3, [3, 4, 7]), (30, 1, [30])],
)
def test_ceilings_are_those_of_table_1(budget, n_features, expected):
    assert _ceilings(budget, n_features) == expected


def test_a_feature_is_selected_as_soon_as_it_is_credible():
    policy = bc.BLeafs(space(), 200, 1, delta=0.5, seed=0)
    asked = []
    while (query := policy.ask()) is not None:
        asked.append(query)
        policy.tell(query, query.target if query.feature == "f0" else query.id % 3)
        known = policy.credibility()[query.feature]
        assert (known >= 0.5) == bool(policy.stopped), "stops at the first credible feature"
    assert policy.result().selected == (asked[-1].feature,)
    assert policy.stopped == "all features selected"
    assert policy.spent < 200


def test_the_printed_delta_spends_everything():
    policy = play(bc.BLeafs(space(), 60, 2, delta="printed"))
    assert policy.spent == 60


def test_thresholds_differ_by_the_number_of_values():
    mixed = FeatureSpace(classes=[0, 1], features={"two": [0, 1], "ten": list(range(10))})
    policy = bc.BLeafs(mixed, 60, 1)
    by_name = dict(zip(policy.core.problem.space.names, policy.core.delta, strict=True))
    limits = {}
    for name, width in (("two", 2), ("ten", 10)):
        rows = [1 + n / 2 / width * np.ones((2, width)) for n in (30, 60)]
        limits[name] = 1 - np.mean([table_credibility(r, np.array([0.5, 0.5])) for r in rows])
    assert by_name == pytest.approx(limits)


def test_a_selected_feature_is_not_asked_about_again():
    policy = bc.BLeafs(space(), 120, 3, seed=4)
    rng = np.random.default_rng(0)
    while (query := policy.ask()) is not None:
        chosen = {policy.core.problem.space.names[f] for f in policy.state.memory.chosen}
        assert query.feature not in chosen
        policy.tell(query, int(rng.integers(3)))


def queries_per_search(policy, seed):
    """Number of queries of each search, answered as in `play`."""
    rng = np.random.default_rng(seed)
    n_queries = [0] * policy.n_features
    while (query := policy.ask()) is not None:
        n_queries[len(policy.state.memory.chosen)] += 1
        is_right = query.feature in ("f0", "f1") and rng.random() < 0.9
        policy.tell(query, query.target if is_right else int(rng.integers(3)))
    return n_queries


def test_leftovers_are_carried_over_or_not():
    carried = [queries_per_search(bc.BLeafs(space(), 60, 3, seed=s), s) for s in range(3)]
    kept = [queries_per_search(bc.BLeafs(space(), 60, 3, carry=False, seed=s), s) for s in range(3)]
    shares, ceilings = [30, 15, 15], [30, 45, 60]
    assert (np.array(kept) <= shares).all()
    assert (np.cumsum(carried, axis=1) <= ceilings).all()
    assert (np.array(carried) > shares).any()
    assert np.array(carried)[:, 0].tolist() == np.array(kept)[:, 0].tolist()


def test_revisiting_spends_the_rest_on_selected_features():
    plain = play(bc.BLeafs(space(), 150, 2, seed=1))
    again = play(bc.BLeafs(space(), 150, 2, seed=1, revisit=True))
    assert plain.spent < again.spent == 150
    assert plain.result().selected == again.result().selected
    more = again.result().spending["labels"] - plain.result().spending["labels"]
    assert {*more[more > 0].index} <= {*again.result().selected}
    counts = again.result().spending.loc[list(again.result().selected), "observations"]
    before = plain.result().spending.loc[list(again.result().selected), "observations"]
    assert counts.max() - counts.min() <= max(1, before.max() - before.min())


def test_posterior_mean_pick_is_the_greedy_choice():
    policy = bc.BLeafs(space(), 60, 1, pick="posterior-mean", seed=0)
    play(policy)
    best = information_gains(np.array([[0.5], [0.5]]), policy.state.belief.mean()).argmax()
    assert policy.state.memory.chosen == (best,)


def test_searches_without_budget_take_the_posterior_mean():
    # ceilings 1, 1, 1, 3: the second and third search cannot buy anything
    policy = bc.BLeafs(space(), 3, 4, delta="printed", seed=0)
    assert _ceilings(3, 4) == [1, 1, 1, 3]
    play(policy)
    assert len({*policy.state.memory.chosen}) == 4
    assert policy.spent == 3


def test_a_search_ends_with_a_feature_without_instances():
    policy = bc.BLeafs(space(n_features=3), 60, 1, delta="printed", seed=0)
    query = policy.ask()
    policy.exhausted(query)
    again = policy.ask()
    assert again.feature == query.feature
    policy.exhausted(again)
    assert policy.ask() is None
    assert policy.result().selected == (query.feature,)
    assert policy.spent == 0


def test_finds_the_informative_features():
    found = [
        {*play(bc.BLeafs(space(), 150, 2, seed=s), seed=s).result().selected} for s in range(4)
    ]
    # measured 4 of 4; by chance a pair is right once in fifteen
    assert sum(pair == {"f0", "f1"} for pair in found) >= 3


@pytest.mark.parametrize("measure", ["variance", "hdi"])
def test_other_measures_of_credibility_stop_as_well(measure):
    policy = play(bc.BLeafs(space(n_features=3), 40, 1, measure=measure, seed=0))
    assert policy.stopped == "all features selected"
    assert policy.spent <= 40


def noisy(policy, *, rate, seed=0):
    """Answers as in `play`, three labels each, of which a share is wrong."""
    rng = np.random.default_rng(seed)
    while (query := policy.ask()) is not None:
        is_right = query.feature in ("f0", "f1") and rng.random() < 0.9
        value = query.target if is_right else int(rng.integers(3))
        wrong = rng.random(3) < rate
        policy.tell(query, ((value + wrong * rng.integers(1, 3, 3)) % 3).tolist())
    return policy


def of_crowd(**options):
    return bc.BLeafs(
        space(n_features=4), 240, 1, model="access_path", labels_per_query=3, **options
    )


def test_both_kinds_of_parameters_must_be_credible():
    # a delta of .97 is met at once: the other one decides
    by_feature = noisy(of_crowd(delta=0.5, crowd_delta=0.97), rate=0.2)
    by_crowd = noisy(of_crowd(delta=0.97, crowd_delta=0.5), rate=0.2)
    both = noisy(of_crowd(delta=0.5), rate=0.2)
    assert both.core.crowd_delta.tolist() == both.core.delta.tolist() == [0.5] * 4
    for policy, table in ((by_feature, 0), (by_crowd, 1)):
        (f,) = policy.state.memory.chosen
        known = policy.state.belief.credibility(
            f, policy.core.problem.prior, epsilon=0.05, measure="interval"
        )
        # it stopped at the first estimate that was clearly, or exactly enough, above .5
        assert policy.spent < 240
        assert known[table] > 0.5 - 4 * 0.01
    assert both.spent >= max(by_feature.spent, by_crowd.spent)


def test_guesses_are_never_credible_however_many():
    # two labels in three are wrong: a label of three values says nothing
    assert noisy(of_crowd(delta=0.5), rate=2 / 3).spent == 240


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, np.nan, np.inf, "mid"])
def test_a_delta_is_a_rule_or_between_0_and_1(delta):
    for name in ("delta", "crowd_delta"):
        with pytest.raises(ValueError, match=f"{name}=.*midpoint.* a number between 0 and 1"):
            of_crowd(**{name: delta})


def test_bad_arguments():
    with pytest.raises(ValueError, match="expected 'same', since model='naive_bayes'"):
        bc.BLeafs(space(), 20, 1, crowd_delta=0.3)
    with pytest.raises(ValueError, match="epsilon=0"):
        bc.BLeafs(space(), 20, 1, epsilon=0)
