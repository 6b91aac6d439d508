"""Information about the hidden class: against enumeration, and on crowds with known workers."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import bayescrowd as bc
from bayescrowd.aggregation.shrunken.ability import implied_rows
from bayescrowd.aggregation.worker_label_pairs import WorkerLabelPairs
from bayescrowd.data.features import as_feature_table
from bayescrowd.selection.workers.class_information import (
    _coin_information,
    _matrix_information,
    _shrunken_rows,
    measure_class_information,
)
from bayescrowd.selection.workers.held_out_gains import TEMPERATURES, _block_gains
from bayescrowd.selection.workers.mutual_information import (
    NEGLIGIBLE,
    NOTICEABLE,
    _last_useful_size,
)


def enumerated(joint):
    """Mutual information of a table of probabilities, cell by cell."""
    left, right = joint.sum(axis=1), joint.sum(axis=0)
    return sum(
        joint[i, j] * np.log(joint[i, j] / (left[i] * right[j]))
        for i in range(joint.shape[0])
        for j in range(joint.shape[1])
        if joint[i, j] > 0
    )


def unequal_crowd(seed):
    """Ten spammers with 200 labels each, and thirty good workers with 20 each, of 3 classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=200)
    rows = [(task, f"s{w}", rng.integers(3)) for w in range(10) for task in range(200)]
    for w in range(30):
        for task in rng.choice(200, 20, replace=False):
            right = rng.random() < 0.85
            rows.append((task, f"g{w}", truth[task] if right else rng.integers(3)))
    return pd.DataFrame(rows, columns=["task", "worker", "label"]), pd.Series(truth)


# Against enumeration.


@pytest.mark.parametrize("accuracy", [0.0, 0.2, 1 / 3, 0.9, 1.0])
def test_information_of_one_accuracy(accuracy):
    priors = np.array([0.5, 0.3, 0.2])
    rows = np.full((3, 3), (1 - accuracy) / 2)
    np.fill_diagonal(rows, accuracy)
    found = _coin_information(np.array([accuracy]), priors)
    np.testing.assert_allclose(found, enumerated(priors[:, None] * rows), atol=1e-12)


def test_information_of_matrices():
    data = bc.simulate.crowd(60, 5, 3, labels_per_task=4, accuracy=0.7, seed=0)
    pairs = WorkerLabelPairs(data.annotations)
    posterior = np.random.default_rng(0).dirichlet(np.ones(3), size=60)
    rows, priors = implied_rows(pairs, posterior), posterior.mean(axis=0)
    counts = np.zeros((5, 3, 3))
    np.add.at(
        counts.transpose(0, 2, 1),
        (data.annotations.worker_codes, data.annotations.label_codes),
        posterior[data.annotations.task_codes],
    )
    cells = np.indices((5, 3)).reshape(2, -1)
    base = rows.base.rows(*cells).reshape(5, 3, 3).transpose(0, 2, 1)
    strength = rows.base.strength
    matrices = base if np.isinf(strength) else counts + strength * base
    matrices = matrices / matrices.sum(axis=2, keepdims=True)
    expected = [enumerated(priors[:, None] * matrix) for matrix in matrices]
    np.testing.assert_allclose(_matrix_information(pairs, rows, priors), expected, atol=1e-12)


def test_predictions_by_enumeration():
    # Two items, three features, two classes. Feature 2 ranks first, 0 second, 1 last; it gives
    # item 0 two values, neither of which may predict the other.
    rng = np.random.default_rng(1)
    log_rows = np.log(rng.uniform(0.1, 0.9, size=(6, 2)))
    prior = np.array([0.3, 0.7])
    item, feature = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 2, 2, 0, 2])
    rank, sizes = np.array([1, 2, 0]), [1, 2, 3]
    found = _block_gains(log_rows, np.log(prior), item, feature, rank, sizes, 2)
    assert found.shape == (len(TEMPERATURES), 3, 2)
    for step, temperature in enumerate(TEMPERATURES):
        for place, size in enumerate(sizes):
            expected = np.zeros(2)
            for entry in range(6):
                weights = prior.copy()
                for other in range(6):
                    speaks = item[other] == item[entry] and feature[other] != feature[entry]
                    if speaks and rank[feature[other]] < size:
                        weights = weights * np.exp(log_rows[other]) ** (1 / temperature)
                rows = np.exp(log_rows[entry])
                ratio = (weights * rows).sum() / weights.sum() / (prior * rows).sum()
                expected[item[entry]] += np.log(ratio)
            np.testing.assert_allclose(found[step, place], expected, atol=1e-12)


def test_where_to_stop_by_hand():
    # Of a gain of 1, a loss of 0.2 % is nothing and one of 1 % too much; in between the standard
    # error decides.
    assert (NEGLIGIBLE, NOTICEABLE) == (0.002, 0.01)
    held_out = np.array([0.5, 0.985, 0.992, 0.999, 1.0, 0.9995])
    assert _last_useful_size(held_out, np.zeros(6)) == 3
    assert _last_useful_size(held_out, np.full(6, 0.009)) == 2
    assert _last_useful_size(held_out, np.full(6, 0.9)) == 2
    # A lucky number among worse ones is passed over.
    assert _last_useful_size(np.array([0.5, 0.9999, 0.9, 1.0]), np.zeros(4)) == 3
    # Where nobody predicts anybody, nothing is allowed to be lost.
    assert _last_useful_size(np.array([-0.3, -0.1, -0.2]), np.ones(3)) == 1


# Workers.


def test_spammers_with_many_labels_come_last():
    frame, _ = unequal_crowd(0)
    found = bc.MutualInformationSelector().fit(frame)
    assert {name[0] for name in found.ranking_[:30]} == {"g"}
    assert {name[0] for name in found.ranking_[30:]} == {"s"}
    assert sum(name[0] == "s" for name in found.selected_) <= 2
    assert sum(name[0] == "g" for name in found.selected_) >= 28
    # The control: the paper's score takes diligence for information.
    paper = bc.MutualInformationSelector(1, estimator="paper").fit(frame)
    assert "s" in {name[0] for name in paper.ranking_[:30]}


def test_names_and_order_do_not_matter():
    frame, _ = unequal_crowd(1)
    whole = bc.MutualInformationSelector().fit(frame)
    rng = np.random.default_rng(2)
    other = frame.sample(frac=1, random_state=3)
    tasks, workers = (
        rng.permutation(200),
        dict(zip(sorted(set(frame["worker"])), rng.permutation(40), strict=True)),
    )
    other = other.assign(
        task=tasks[other["task"]],
        worker=other["worker"].map(workers),
        label=np.array([2, 0, 1])[other["label"]],
    )
    again = bc.MutualInformationSelector().fit(other)
    np.testing.assert_allclose(
        again.scores_[[workers[name] for name in whole.scores_.index]], whole.scores_, atol=1e-9
    )
    assert set(again.selected_) == {workers[name] for name in whole.selected_}


@pytest.mark.slow
def test_models_that_collapse_do_not_spoil_the_ranking():
    # Seventy of a hundred guess, and two of the default's models find a single class.
    data = bc.simulate.sparse_crowd(2000, 100, 2, alpha=0.3, accuracy=0.75, seed=7)
    found = bc.MutualInformationSelector().fit(data.annotations)
    assert set(found.ranking_[:30]) == set(range(30))
    assert set(range(30)) <= set(found.selected_)
    assert len(found.selected_) <= 40


def test_everybody_stays_where_workers_are_good_and_labels_few():
    data = bc.simulate.crowd(400, 50, 3, labels_per_task=5, accuracy=0.8, seed=1)
    assert len(bc.MutualInformationSelector().fit(data.annotations).selected_) >= 47


@pytest.mark.parametrize("name", ["bluebird", "rte", "dog", "web"])
def test_ranks_by_accuracy_as_the_default_aggregator_does_or_better(published, name):
    data = published(name)
    ann = data.annotations
    frame = ann.to_frame()
    frame["right"] = frame["label"] == frame["task"].map(data.truth)
    by_worker = frame[frame["task"].isin(data.truth.index)].groupby("worker")["right"]
    accuracy = by_worker.mean()[by_worker.count() >= 5]
    found = bc.MutualInformationSelector(1).fit(ann).scores_[accuracy.index].to_numpy()
    default = bc.aggregate(ann).worker_quality_["information"][accuracy.index].to_numpy()
    rng, accuracy = np.random.default_rng(0), accuracy.to_numpy()

    def gain(workers):
        ours, theirs = (
            spearmanr(scores[workers], accuracy[workers]).statistic for scores in (found, default)
        )
        return ours - theirs

    # Two standard errors of the difference, by resampling the workers.
    samples = [gain(rng.integers(0, len(accuracy), len(accuracy))) for _ in range(200)]
    assert gain(slice(None)) > -2 * np.std(samples)


def test_public_crowd_loses_its_spammers(published):
    # Thirteen workers of rte gave two fifths of its labels, and most of them guess.
    data = published("rte")
    selector = bc.MutualInformationSelector().fit(data.annotations)
    kept = selector.transform(data.annotations)
    assert kept.n_labels < 0.75 * data.annotations.n_labels
    votes = [
        bc.metrics.error_rate(bc.MajorityVote().fit(ann).probas_, data.truth)
        for ann in (data.annotations, kept)
    ]
    assert votes[1] < votes[0] - 0.02


# Other features.


def test_rows_of_a_feature_that_says_nothing_are_its_shares():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=400)
    table = as_feature_table(
        pd.DataFrame(
            {"clear": np.array(["p", "q"])[kind], "noise": np.tile(["u", "v", "w", "u"], 100)}
        )
    )
    rows, is_known = _shrunken_rows(table, np.eye(2)[kind])
    assert is_known.all()
    np.testing.assert_allclose(rows[2:, 0], rows[2:, 1])
    np.testing.assert_allclose(rows[:2], np.eye(2), atol=0.01)


def test_mixture_of_other_features():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=500)
    table = pd.DataFrame(
        {
            "noise": rng.choice(["u", "v", "w"], 500),
            "strong": np.where(rng.random(500) < 0.95, kind, 2),
            "weak": np.where(rng.random(500) < 0.75, kind, 1 - kind),
            "middle": np.where(rng.random(500) < 0.9, kind, 1 - kind),
        }
    )
    found = bc.MutualInformationSelector(n_components=2).fit(table)
    assert found.ranking_.to_list() == ["strong", "middle", "weak", "noise"]
    # I(value; class) of 90 % accuracy with even classes is log 2 - h(0.1) = 0.368; 500 items give
    # it a standard error of about 0.03, of which three are allowed.
    assert found.scores_["middle"] == pytest.approx(0.368, abs=0.09)
    assert found.scores_["noise"] < 0.01
    assert found.selected_.to_list() == ["strong", "middle", "weak"]


def test_one_item_is_not_enough():
    with pytest.raises(ValueError, match="needs at least 2 items, got 1"):
        measure_class_information(as_feature_table(np.array([[0, 1]])), n_components=2, seed=0)
