"""The cost of dropping judges: against refits by hand, simulated panels and closed forms."""

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation.auto.gold_report import unseen_probas
from bayescrowd.aggregation.task_sample import sampled_tasks
from bayescrowd.panel import dropping
from bayescrowd.panel.drop_costs import paired_share_change
from bayescrowd.panel.dropping import cost_of_dropping


@pytest.fixture(scope="module")
def panel():
    """Two judges who copy each other, one who knows, and two who guess and labelled fewer tasks."""
    is_judged = np.ones((120, 5), dtype=bool)
    is_judged[110:, 3:] = False
    return bc.simulate.panel(
        *(120, 5),
        clusters=[2],
        copying=1.0,
        accuracy=[0.7, 0.7, 0.95, 0.5, 0.5],
        hard=0.1,
        mask=is_judged,
        seed=4,
    )


@pytest.fixture(scope="module")
def gold(panel):
    return panel.truth.iloc[:80]


@pytest.fixture(scope="module")
def known(panel, gold):
    return panel.annotations.code_truth(gold)


@pytest.fixture(scope="module")
def found(panel, known):
    """The costs of the two copies and of the judge who knows."""
    return cost_of_dropping(panel.annotations, known, ((0, 1),), most=3)


def test_changes_are_those_of_the_default_fitted_with_gold(panel, gold, found):
    ann, judge = panel.annotations, 2
    with_all = bc.AutoAggregator().fit(ann, gold)
    without = bc.AutoAggregator().fit(ann.select_workers([0, 1, 3, 4]), gold)
    changed = (with_all.labels_ != without.labels_).mean()
    assert changed > 0
    assert found.table.loc[judge, "changed"] == pytest.approx(changed)
    low, high = without.dependence_.effective_votes
    assert found.table.loc[judge, "effective_low"] == pytest.approx(low)
    assert found.table.loc[judge, "effective_high"] == pytest.approx(high)
    assert found.effective_votes == pytest.approx(with_all.dependence_.effective_votes)


def test_gold_tasks_are_predicted_without_their_gold(panel, known, found):
    """The changes on gold by a loop over tasks; folds are those of all judges."""
    ann, truth, judge = panel.annotations, panel.truth.to_numpy(), 2
    folds = dropping.gold_folds(ann, known)
    rest = ann.select_workers([0, 1, 3, 4])
    losses, rights = [], []
    for part in (ann, rest):
        probas = bc.AutoAggregator().fit(part).probas_.to_numpy()
        honest = unseen_probas(probas, part, known, folds)
        losses.append([-np.log(honest[i, truth[i]]) for i in range(80)])
        rights.append([float(honest[i].argmax() == truth[i]) for i in range(80)])
    row = found.table.loc[judge]
    assert row["log_loss"] == pytest.approx(np.mean(losses[1]) - np.mean(losses[0]))
    assert row["accuracy"] == pytest.approx(np.mean(rights[1]) - np.mean(rights[0]))
    assert row["log_loss_lower"] < row["log_loss"] < row["log_loss_upper"]
    assert found.n_gold == 80


def test_the_judge_who_knows_is_missed_and_one_of_two_copies_is_not(found):
    assert found.table["log_loss"].idxmax() == 2
    assert found.table.loc[2, "log_loss_lower"] > 0
    copies = found.table.loc[[0, 1]]
    assert (copies["log_loss"] < found.table.loc[2, "log_loss"] / 2).all()
    assert copies["cluster"].to_list() == [1, 1]
    assert found.table["cluster"].isna().sum() == 1
    assert "Dropping judges is not reliably free" in found.summary
    assert "without 2 it is worse" in found.summary


def test_rows_start_with_the_largest_change_and_chance_is_small(found):
    assert found.table["changed"].is_monotonic_decreasing
    assert 0 <= found.by_chance < found.table["changed"].max()
    assert (found.n_left_out, found.n_tasks, found.n_sampled_from) == (2, 120, 120)


@pytest.fixture(scope="module")
def without_gold():
    """The costs of judge 0, who is alone on five tasks, and of one of the two others."""
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 2, (30, 3)).astype(object)
    matrix[:5, 1:] = None
    ann = bc.Annotations.from_matrix(matrix)
    return cost_of_dropping(ann, np.full(30, -1), (), most=2)


def test_without_gold_no_changes_on_gold(without_gold):
    found = without_gold
    assert found.table.columns.to_list() == [
        *["cluster", "changed", "n_unjudged", "effective_low", "effective_high"]
    ]
    assert (len(found.table), found.n_left_out, found.n_gold) == (2, 1, 0)


def test_clusters_come_first_in_turn_and_then_the_most_active():
    matrix = np.random.default_rng(0).integers(0, 2, (40, 7)).astype(object)
    matrix[30:, 5] = None  # judge 5 has fewer labels than 4 and 6
    matrix[20:, 6] = None
    ann = bc.Annotations.from_matrix(matrix)
    clusters = dropping._cluster_numbers(ann.workers, ((0, 1, 2), (3, 6)))
    order = dropping._order(ann, np.arange(7), clusters)
    assert clusters.tolist() == [0, 0, 0, 1, -1, -1, 1]
    assert set(order[:2]) - {0, 1, 2} == {3}  # 3 has more labels than 6
    assert set(order[2:4]) - {0, 1, 2} == {6}
    assert set(order[4:5]) < {0, 1, 2}
    assert order[5:].tolist() == [4, 5]


def test_tasks_that_nobody_else_judged_are_counted(without_gold):
    n_unjudged = without_gold.table["n_unjudged"]
    assert n_unjudged.loc[0] == 5
    assert n_unjudged.drop(0).to_list() == [0]


def test_one_judge_has_no_cost():
    ann = bc.Annotations.from_matrix([["a", None], ["b", None], ["a", None]])
    assert cost_of_dropping(ann, np.full(3, -1), ()) is None


def test_large_panels_are_compared_on_a_sample_with_the_gold(panel, known, monkeypatch):
    monkeypatch.setattr(dropping, "MOST_LABELS", 300)
    few = np.where(np.arange(120) < 40, known, -1)
    found = cost_of_dropping(panel.annotations, few, ((0, 1),), most=1)
    assert 60 < found.n_tasks <= 100
    assert found.n_gold == 40
    assert found.n_sampled_from == 120
    assert (len(found.table), found.n_left_out) == (1, 4)
    # More gold than the sample has tasks would undo the sample.
    sample = sampled_tasks(panel.annotations, 300)
    assert len(sample) < 80
    compared = dropping._compared_tasks(panel.annotations, known)
    assert compared.tolist() == sorted(sample.tolist())


def test_ids_do_not_matter(panel, known, found):
    """Names that sort the other way round, of tasks and of judges, give the same table."""
    frame = panel.annotations.to_frame()
    frame["worker"] = "j" + (9 - frame["worker"]).astype(str)
    frame["task"] = "t" + (500 - frame["task"]).astype(str)
    ann = bc.Annotations.from_frame(frame.sample(frac=1, random_state=0))
    other = cost_of_dropping(ann, known[::-1], (("j9", "j8"),), most=3)
    table = other.table.rename(lambda name: 9 - int(name[1:])).sort_index()
    pd.testing.assert_frame_equal(
        table, found.table.sort_index(), check_dtype=False, check_index_type=False, rtol=1e-6
    )


def test_paired_change_by_hand():
    change = np.array([1.0] * 3 + [-1.0] * 1 + [0.0] * 16)
    mean, lower, upper = paired_share_change(change, 0.9)
    centre, n = (3.5 - 1.5) / 22, 22
    spread = np.sqrt(5 - (3.5 - 1.5) ** 2 / n) / n
    assert mean == pytest.approx(0.1)
    assert [lower, upper] == pytest.approx(
        [centre - 1.6448536 * spread, centre + 1.6448536 * spread]
    )


def test_paired_change_covers():
    """Of 2,000 draws of 20 pairs, 90 % intervals cover 87 % or more, four standard errors less."""
    rng = np.random.default_rng(0)
    for gained, lost in ((0.05, 0.05), (0.02, 0.1), (0.3, 0.1)):
        draws = rng.choice([1.0, -1.0, 0.0], p=[gained, lost, 1 - gained - lost], size=(2000, 20))
        ends = np.array([paired_share_change(row, 0.9)[1:] for row in draws])
        covered = (ends[:, 0] <= gained - lost) & (gained - lost <= ends[:, 1])
        assert covered.mean() >= 0.87
