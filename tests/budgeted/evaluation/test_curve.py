"""Paired comparisons: pairing, summaries by hand, continuing an interrupted run."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.evaluation import paired_runs
from bayescrowd.budgeted.evaluation.curve import curve_run
from bayescrowd.budgeted.evaluation.curve_tables import ALL_DATA, curve_means, paired_differences
from bayescrowd.budgeted.evaluation.paired_runs import learn_from_all


def run(birds, policies=(bc.RoundRobin, bc.TsGreedy), **options):
    arguments = {"budgets": [12, 24], "n_features": 1, "repeats": 3, "n_jobs": 1}
    chosen = policies if isinstance(policies, dict) else list(policies)
    return bc.budget_curve(chosen, birds, **(arguments | options), target="kind")


def test_one_row_per_run_and_the_same_numbers_again(birds):
    curve = run(birds, all_data=True)
    assert len(curve) == 3 * 2 * 3
    assert curve["policy"].unique().tolist() == ["RoundRobin", "TsGreedy", ALL_DATA]
    bought = curve[curve["policy"] != ALL_DATA]
    assert (bought["spent"] == bought["budget"]).all()
    assert (curve[curve["policy"] == ALL_DATA]["spent"] == 4 * 240).all()
    pd.testing.assert_frame_equal(run(birds, all_data=True), curve)


def test_one_run_is_played_again(birds):
    noisy = {"labels_per_query": 3, "noise": "uniform", "rate": 0.2, "seed": 4}
    curve = run(birds, [bc.BLeafs], **noisy)
    for _, row in curve.iterrows():
        result = curve_run(
            bc.BLeafs, birds, row["budget"], 1, repeat=row["repeat"], target="kind", **noisy
        )
        assert (result.selected, result.spent) == (row["selected"], row["spent"])
    with pytest.raises(ValueError, match="n_features=9: expected 1 to 4"):
        curve_run(bc.BLeafs, birds, 12, 9, repeat=0, target="kind")


def test_all_data_are_learned_once_per_repeat(birds, monkeypatch):
    sizes = []

    def counted(*arguments, **options):
        sizes.append(arguments[3])
        return learn_from_all(*arguments, **options)

    monkeypatch.setattr(paired_runs, "learn_from_all", counted)
    both = run(birds, {}, all_data=True, n_features=[2, 1])
    assert sizes == [(2, 1)] * 3
    for k in (1, 2):
        alone = run(birds, {}, all_data=True, n_features=k)
        part = both[both["n_features"] == k].reset_index(drop=True)
        pd.testing.assert_frame_equal(part, alone)
    assert (both.groupby(["n_features", "repeat"])["error"].nunique() == 1).all()


def test_a_policy_beside_itself_makes_no_difference(birds):
    curve = run(birds, {"one": bc.TsGreedy, "other": bc.TsGreedy})
    assert (paired_differences(curve, "one")["difference"] == 0).all()


def test_another_policy_in_the_comparison_changes_nothing(birds):
    alone = run(birds, [bc.TsGreedy])
    beside = run(birds)
    beside = beside[beside["policy"] == "TsGreedy"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, beside)


@pytest.mark.slow
def test_other_processes_give_the_same_numbers(birds):
    pd.testing.assert_frame_equal(run(birds, repeats=2, n_jobs=2), run(birds, repeats=2))


def test_options_sizes_and_noise_reach_the_policies(birds):
    policies = {"revisit": partial(bc.BLeafs, revisit=True)}
    curve = run(
        birds, policies, n_features=[1, 2], labels_per_query=3, noise="uniform", rate=0.2, repeats=1
    )
    assert curve[["n_features", "budget"]].values.tolist() == [[1, 12], [1, 24], [2, 12], [2, 24]]
    assert curve["selected"].map(len).tolist() == [1, 1, 2, 2]
    assert (curve["spent"] <= curve["budget"]).all()


def test_costs_count_against_the_budget(birds):
    curve = run(birds, [bc.RoundRobin], costs={"beak": 4.0}, budgets=np.array([14.0]), repeats=1)
    assert curve["spent"].tolist() == [14.0]  # two of each at 1 + 1 + 1 + 4


def test_summaries_by_hand():
    rows = [("A", 1, 10, 0, 0.2), ("A", 1, 10, 1, 0.4), ("B", 1, 10, 0, 0.1), ("B", 1, 10, 1, 0.1)]
    curve = pd.DataFrame(rows, columns=["policy", "n_features", "budget", "repeat", "error"])
    means = curve_means(curve.assign(spent=10.0, selected=[()] * 4))
    assert means.loc[("A", 1, 10), "error"] == pytest.approx(0.3)
    assert means.loc[("A", 1, 10), "standard_error"] == pytest.approx(0.1)
    difference = paired_differences(curve, "A").loc[("B", 1, 10)]
    assert difference["difference"] == pytest.approx(-0.2)
    assert difference["standard_error"] == pytest.approx(0.1)
    with pytest.raises(ValueError, match="against='C': expected one of A, B"):
        paired_differences(curve, "C")


def test_a_journal_continues_where_it_was_torn(birds, tmp_path):
    path = tmp_path / "curve.jsonl"
    whole = run(birds, journal=path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + len(whole)
    marked = json.loads(lines[1]) | {"error": 0.123}
    path.write_bytes(
        b"".join([lines[0], json.dumps(marked).encode() + b"\n", *lines[2:7]]) + b'{"p'
    )
    again = run(birds, journal=path)
    assert (again["error"] == 0.123).sum() == 1  # taken from the journal, not run again
    other = again["error"] != 0.123
    pd.testing.assert_frame_equal(again[other], whole[other])
    assert len(path.read_bytes().splitlines()) == 1 + len(whole)


def test_a_journal_of_another_comparison_is_refused(birds, tmp_path):
    path = tmp_path / "curve.jsonl"
    run(birds, journal=path, repeats=1)
    assert len(run(birds, journal=path, repeats=2)) == 8  # more repeats are welcome
    with pytest.raises(ValueError, match="the journal has seed 0, and this run has 1"):
        run(birds, journal=path, seed=1)
    with pytest.raises(ValueError, match=r"the journal has table '.+', and this run has"):
        run(birds.sample(frac=1, random_state=0), journal=path)
    path.write_text(path.read_text() + "nonsense\n")
    with pytest.raises(ValueError, match="line 10: this is not a line of the journal"):
        run(birds, journal=path)


def test_a_class_that_no_training_row_has_is_an_error_in_the_test_rows():
    rng = np.random.default_rng(0)
    kinds = ["a"] * 20 + ["b"] * 20 + ["rare"]
    table = pd.DataFrame({"x": rng.integers(0, 2, 41), "y": rng.integers(0, 3, 41), "t": kinds})
    curve = bc.budget_curve(
        [bc.RoundRobin], table, [5], 1, target="t", repeats=12, train_share=0.5, n_jobs=1
    )
    assert curve["error"].between(0, 1).all()


BAD = [
    ({"repeats": 0}, "repeats=0"),
    ({"train_share": 1.0}, "train_share=1.0"),
    ({"budgets": [0]}, "budget=0"),
    ({"n_features": 9}, "n_features=9"),
    ({"n_features": 9, "policies": {}, "all_data": True}, "n_features=9: expected 1 to 4"),
    ({"budgets": []}, "budgets, n_features: expected at least one of each"),
    ({"policies": {}}, "policies: expected at least one"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_arguments(birds, changes, message):
    with pytest.raises(ValueError, match=message):
        run(birds, **changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": "word"}, "line 2: error is 'word'; expected a number"),
        ({"spent": None}, "line 2: spent is None; expected a number"),
        ({"policy": 3}, "line 2: policy is 3; expected text"),
        ({"selected": [["a"]]}, "line 2: this is not a line of the journal"),
    ],
)
def test_a_journal_line_of_wrong_types_is_refused(birds, tmp_path, change, message):
    path = tmp_path / "journal"
    run(birds, journal=path, repeats=1)
    header, line, *rest = path.read_text().splitlines(keepends=True)
    changed = json.dumps({**json.loads(line), **change}) + "\n"
    path.write_text("".join([header, changed, *rest]))
    with pytest.raises(ValueError, match=message):
        run(birds, journal=path, repeats=1)
