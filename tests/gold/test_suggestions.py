"""Which tasks to send for gold: the design's probabilities, and shares without bias."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.gold.suggestions import inclusion


@pytest.fixture(scope="module")
def crowd():
    return bc.simulate.crowd(40, 6, 2, labels_per_task=3, accuracy=0.7, seed=6)


@pytest.fixture(scope="module")
def est(crowd):
    return bc.DawidSkene().fit(crowd.annotations)


def test_probabilities_sum_to_the_number_and_stay_below_one():
    entropy = np.array([0.0, 0.0, 0.0, 0.01, 0.69])
    uniform, chance = inclusion(entropy, 1.0, 2.0)
    assert chance.sum() == pytest.approx(3)
    assert chance.max() <= 1
    assert (chance >= uniform).all()
    np.testing.assert_allclose(inclusion(np.zeros(4), 1.0, 1.0)[1], 0.5)
    np.testing.assert_allclose(inclusion(entropy, 3.0, 2.0)[1], 1)


def test_the_first_ten_are_uniform(est):
    np.testing.assert_allclose(bc.suggest_gold(est, 10)["weight"], 4)
    assert (bc.suggest_gold(est, 10)["reason"] == "random").all()


def test_weighted_totals_are_unbiased(crowd, est):
    """The mean of 600 draws is within four of its standard errors of the truth."""
    gold = crowd.truth.iloc[:12]  # chosen in no random way
    is_one = (crowd.truth == 1).astype(float)
    totals, sizes, seen = [], [], pd.Series(0.0, index=crowd.truth.index)
    for seed in range(600):
        chosen = bc.suggest_gold(est, 8, seed=seed, gold=gold)
        totals.append((chosen["weight"] * is_one[chosen.index]).sum() + is_one[gold.index].sum())
        sizes.append(chosen["weight"].sum() + len(gold))
        seen[chosen.index] += 1
    for found, true in ((totals, is_one.sum()), (sizes, 40)):
        assert abs(np.mean(found) - true) < 4 * np.std(found) / np.sqrt(600) + 1e-9
    assert (seen[gold.index] == 0).all()
    assert (seen.drop(gold.index) > 0).all()


def test_uncertain_tasks_come_more_often(est):
    entropy = -(est.probas_ * np.log(est.probas_.clip(1e-12))).sum(axis=1)
    counts = pd.Series(0, index=entropy.index)
    for seed in range(300):
        counts[bc.suggest_gold(est, 20, seed=seed).index] += 1
    assert counts[entropy > entropy.median()].mean() > counts[entropy <= entropy.median()].mean()


def test_the_choice_depends_on_the_seed_and_not_on_ids(crowd, est):
    chosen = bc.suggest_gold(est, 15, seed=3)
    pd.testing.assert_frame_equal(chosen, bc.suggest_gold(est, 15, seed=3))
    assert not chosen.index.equals(bc.suggest_gold(est, 15, seed=4).index)
    frame = crowd.annotations.to_frame()
    name = {task: 1000 - 7 * i for i, task in enumerate(crowd.annotations.tasks)}
    renamed = bc.DawidSkene().fit(frame.assign(task=frame["task"].map(name)).iloc[::-1])
    again = bc.suggest_gold(renamed, 15, seed=3)
    expected = chosen.rename(index=name).sort_index()
    np.testing.assert_allclose(again.sort_index()["weight"].sum(), expected["weight"].sum())
    prints = crowd.annotations.votes[:, 0]  # tasks with the same labels may stand for each other
    old = prints[crowd.annotations.tasks.get_indexer(chosen.index)]
    back = {new: task for task, new in name.items()}
    new = prints[crowd.annotations.tasks.get_indexer([back[task] for task in again.index])]
    assert sorted(old) == sorted(new)


def test_messages(est):
    with pytest.raises(ValueError, match="expected at most"):
        bc.suggest_gold(est, 41)
    with pytest.raises(TypeError, match="expected a fitted aggregator"):
        bc.suggest_gold(3, 2)
