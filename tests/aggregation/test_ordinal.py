"""Voting on cuts between ordered classes: signs, the class they make, silence, new tasks."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.ordinal import (
    CutScores,
    OrdinalAggregator,
    linear_scores,
    signed_pairs,
)


class EqualWeights(OrdinalAggregator):
    """The simplest method: everybody weighs the same, or nothing for the workers named."""

    def __init__(self, *, silenced=(), seed=0):
        self.silenced = silenced
        self.seed = seed

    def _score(self, pairs):
        weights = np.full((pairs.n_workers, pairs.signs.shape[1]), 3.0)
        weights[list(self.silenced)] = 0.0
        offsets = np.zeros(pairs.signs.shape[1])
        scores = linear_scores(pairs, weights, offsets)
        return CutScores(scores, weights, offsets, np.empty(0), True)


# By hand


def test_signs_of_three_classes():
    ann = bc.Annotations.from_matrix([[0, 2], [1, None], [None, 1]])
    pairs = signed_pairs(ann)
    assert pairs.tasks.tolist() == [0, 0, 1, 2]
    assert pairs.workers.tolist() == [0, 1, 0, 1]
    assert pairs.offsets.tolist() == [0, 2, 3, 4]
    assert pairs.signs.tolist() == [[-1, -1], [1, 1], [1, -1], [1, -1]]


def test_repeated_labels_are_one_pair_with_their_sum():
    frame = pd.DataFrame({"task": [1, 1, 1, 2], "worker": list("aaab"), "label": list("yyny")})
    pairs = signed_pairs(bc.Annotations.from_frame(frame))
    assert pairs.n_labels.tolist() == [3, 1]
    assert pairs.signs.tolist() == [[1], [1]]


def test_the_class_is_the_first_that_a_task_is_not_above():
    ann = bc.Annotations.from_matrix([[0, 0, 2], [2, 2, 0], [1, 1, 1], [0, 2, 1]])
    est = EqualWeights().fit(ann)
    # Cuts of the last task: two of three labels above 0, one of three above 1.
    assert est.labels_.to_list() == [0, 2, 1, 1]
    assert set(np.unique(est.probas_)) == {0.0, 1.0}


def test_weights_are_scaled_and_named_by_the_class_below_the_cut():
    est = EqualWeights(silenced=[1]).fit(bc.Annotations.from_matrix([list("ac"), list("ba")]))
    assert est.weights_.columns.to_list() == ["a", "b"]
    assert est.weights_.to_numpy().tolist() == [[1, 1], [0, 0]]


# Silence


def test_where_nobody_has_a_say_the_votes_stand():
    ann = bc.Annotations.from_matrix([[0, 1, 1], [2, 2, 2], [0, 2, 0], [3, 1, 0]])
    silent = EqualWeights(silenced=[0, 1, 2]).fit(ann)
    pd.testing.assert_frame_equal(silent.probas_, bc.MajorityVote().fit(ann).probas_)


def test_tasks_without_labels_are_open():
    ann = bc.Annotations.from_matrix([[0, 1, 1], [None, None, None], [2, 2, 2]])
    np.testing.assert_allclose(EqualWeights().fit(ann).probas_.loc[1], 1 / 3)


def test_cuts_that_no_label_crosses_answer_themselves():
    codes = np.array([0, 1, 2]), np.array([0, 1, 0]), np.array([1, 2, 2])
    ann = bc.Annotations.from_codes(*codes, tasks=4, workers=2, classes=list("abcde"))
    est = EqualWeights(silenced=[0, 1]).fit(ann)
    assert est.labels_.to_list()[:3] == ["b", "c", "c"]
    one_class = bc.Annotations.from_codes(
        *codes[:2], np.ones(3, dtype=int), tasks=3, workers=2, classes=3
    )
    assert EqualWeights().fit(one_class).labels_.to_list() == [1, 1, 1]


# New tasks, known tasks


def test_new_tasks_are_decided_by_the_weights():
    fitted = bc.Annotations.from_matrix(pd.DataFrame([["a", "b"], ["b", "a"]], columns=["u", "v"]))
    est = EqualWeights(silenced=[1]).fit(fitted)
    new = bc.Annotations.from_matrix(pd.DataFrame([["b", "a", "a"]], columns=["u", "v", "w"]))
    # u weighs 1, v nothing, and the unknown w the mean of both, 1/2.
    assert est.predict(new).to_list() == ["b"]


def test_known_labels_are_kept():
    ann = bc.Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [0, 1, 0]])
    est = EqualWeights().fit(ann, gold={0: 1})
    assert est.probas_.loc[0].to_list() == [0, 1]
    assert est.labels_.to_list() == [1, 1, 0]


@pytest.mark.parametrize(
    "make",
    [bc.GhoshSVD, bc.EigenRatio, lambda: bc.KOS(variant="svd")],
    ids=["ghosh", "ratio", "kos"],
)
def test_the_fitted_tasks_seen_again_get_the_same_answer(make):
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=200)
    labels = np.where(rng.random((200, 12)) < 0.7, truth[:, None], rng.integers(4, size=(200, 12)))
    ann = bc.Annotations.from_matrix(labels)
    est = make().fit(ann)
    pd.testing.assert_frame_equal(est.predict_proba(ann), est.probas_)
