"""The alarm, by hand and as the default raises it."""

import numpy as np
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.auto.alarm import ADVICE, raise_alarm, vote_disagreement


@pytest.fixture
def ann():
    rows = [list("aab"), list("abb"), list("bbb"), ["a", "b", None], [None, None, None]]
    return bc.Annotations.from_matrix(rows)


def answer(labels):
    return np.array([[0.8, 0.2] if label == "a" else [0.3, 0.7] for label in labels])


def test_disagreement_by_hand(ann):
    # The fourth task is a tie, which either answer respects; the fifth has no votes.
    assert vote_disagreement(answer("abbaa"), ann) == 0
    assert vote_disagreement(answer("abbba"), ann) == 0
    assert vote_disagreement(answer("babba"), ann) == pytest.approx(2 / 4)


@pytest.mark.parametrize(
    ("labels", "instability", "reason"),
    [
        ("abbaa", 0.1, ""),
        ("abbaa", float("nan"), ""),
        ("bbbaa", 0.1, "The answer differs from the majority vote on 25% of the tasks."),
        ("abbaa", 0.5, "Fits under other weights of the raters contradict each other"),
    ],
)
def test_signs(ann, labels, instability, reason):
    alarm = raise_alarm(answer(labels), ann, instability=instability, vote_weight=0.5)
    assert alarm.buy_gold == bool(reason)
    assert alarm.reason.startswith(reason)
    assert bool(alarm.reason) == bool(reason)


def test_the_default_says_it_in_words():
    """Of two camps that contradict each other, nothing says which is right."""
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 2, 100), rng.integers(0, 2, 100)
    matrix = np.stack([one, one, one, other, other, other], axis=1)
    est = bc.AutoAggregator().fit(bc.Annotations.from_matrix(matrix))
    assert est.alarm_.buy_gold
    assert ADVICE in est.why_
    assert est.alarm_.reason in est.why_
    easy = bc.AutoAggregator().fit(bc.simulate.crowd(100, 8, accuracy=0.9, seed=1).annotations)
    assert not easy.alarm_.buy_gold
    assert ADVICE not in easy.why_
