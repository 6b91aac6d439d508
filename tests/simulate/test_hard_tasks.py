"""Hard tasks: which labels are misled, how often, and which stay unchanged."""

import numpy as np
import pytest

import bayescrowd as bc


@pytest.fixture(scope="module")
def easy():
    return bc.simulate.crowd(
        4000, 30, 3, labels_per_task=5, accuracy=0.8, prevalence=[0.6, 0.3, 0.1], seed=3
    )


def test_without_hard_tasks_nothing_changes(easy):
    for options in ({"share": 0.0}, {"pull": 0.0}):
        same = bc.simulate.with_hard_items(easy, **options)
        np.testing.assert_array_equal(same.annotations.label_codes, easy.annotations.label_codes)


def test_all_misled_answer_for_the_lure(easy):
    lures = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    hard = bc.simulate.with_hard_items(easy, share=[1.0, 0.0, 0.0], pull=1.0, lures=lures)
    ann, truth = hard.annotations, hard.truth.to_numpy()
    label = ann.label_codes
    other = truth[ann.task_codes] != 0
    np.testing.assert_array_equal(label[other], easy.annotations.label_codes[other])
    # Of class 0, every label is a draw from the row of class 1.
    seen = hard.parameters.confusions[ann.worker_codes[~other], 1]
    expected = seen.mean(axis=0)
    share = np.bincount(label[~other], minlength=3) / (~other).sum()
    # Labels are independent given their rows; the tolerance is four standard errors of a share.
    assert np.abs(share - expected).max() < 4 * np.sqrt(0.25 / (~other).sum())


def test_errors_on_a_task_go_together(easy):
    """Pairs of judgements err together more often than independent ones would."""

    def excess(data):
        wrong = (data.annotations.label_codes != data.truth.to_numpy().repeat(5)).reshape(-1, 5)
        n_wrong = wrong.sum(axis=1)
        return (n_wrong * (n_wrong - 1) / 20).mean() - wrong.mean() ** 2

    hard = bc.simulate.with_hard_items(easy, share=0.3, pull=0.6, seed=1)
    # Error rates of .2 and, on 3 tasks in 10, about .6: a variance between tasks of .3 .7 .4^2, or
    # .034. That of the classes is below .002, and the standard errors below .004.
    assert excess(easy) < 0.012
    assert excess(hard) > 0.022


def test_experts_are_misled_less(easy):
    accuracy = np.einsum("wkk,k->w", easy.parameters.confusions, easy.parameters.prevalence)
    better = accuracy > np.median(accuracy)
    drops = []
    for expertise in (0.0, 3.0):
        hard = bc.simulate.with_hard_items(easy, share=1.0, pull=0.5, expertise=expertise)
        ann = hard.annotations
        right = ann.label_codes == hard.truth.to_numpy()[ann.task_codes]
        drops.append(
            right[better[ann.worker_codes]].mean() - right[~better[ann.worker_codes]].mean()
        )
    assert drops[1] > drops[0] + 0.2


def test_same_seed_same_labels(easy):
    one, same, other = (bc.simulate.with_hard_items(easy, seed=seed) for seed in (1, 1, 2))
    assert (one.annotations.label_codes == same.annotations.label_codes).all()
    assert (one.annotations.label_codes != other.annotations.label_codes).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1.5}, "share=1.5: expected a number from 0 to 1"),
        ({"share": [0.1, 0.2]}, r"share has shape \(2,\); expected one number per class, 3"),
        ({"pull": -0.1}, "pull=-0.1: expected a number from 0 to 1"),
        ({"concentration": 0.0}, "concentration=0.0: expected a finite number above 0"),
        ({"lures": np.eye(2)}, r"lures have shape \(2, 2\); expected true x lure, \(3, 3\)"),
        ({"lures": np.eye(3)}, "lures of class 0 are .*; expected probabilities of the other"),
        ({"seed": -1}, "seed=-1: expected a whole number from 0"),
    ],
)
def test_bad_input(easy, options, message):
    with pytest.raises(ValueError, match=message):
        bc.simulate.with_hard_items(easy, **options)


def test_a_crowd_that_was_not_simulated_is_refused(easy):
    with pytest.raises(
        ValueError, match="the parameters of 'crowd' are unknown; expected a simulated crowd"
    ):
        bc.simulate.with_hard_items(easy._replace(parameters=None))
