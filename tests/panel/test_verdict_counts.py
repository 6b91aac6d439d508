"""Asked, abstained and never asked, by hand; tables that are no abstentions."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import entr

import bayescrowd as bc
from bayescrowd.panel.verdict_counts import check_abstentions, count_abstained, verdict_counts

PROBAS = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.6, 0.4]])


@pytest.fixture
def ann():
    table = {"x": ["a", "b", None, None], "y": ["a", "b", "b", "a"], "z": [None, None, None, "a"]}
    return bc.Annotations.from_matrix(pd.DataFrame(table, index=["t0", "t1", "t2", "t3"]))


@pytest.fixture
def asked():
    rows = [("t2", "x", "unsure"), ("t1", "z", ""), ("t2", "z", "error"), ("t9", "w", "")]
    return pd.DataFrame(rows, columns=["task", "worker", "value"])


def test_by_hand(ann, asked):
    found = verdict_counts(ann, asked, PROBAS)
    assert found.index.to_list() == ["w", "x", "y", "z"]
    # There are five tasks, t9 among them, which only w was asked about.
    columns = ["n_asked", "n_verdicts", "n_abstained", "n_never_asked"]
    rows = {"w": [1, 0, 1, 4], "x": [3, 2, 1, 2], "y": [4, 4, 0, 1], "z": [3, 1, 2, 2]}
    for name, row in rows.items():
        assert found.loc[name, columns].to_list() == row, name
    assert found["share_abstained"].to_list() == pytest.approx([1, 1 / 3, 0, 2 / 3])
    entropy = entr(PROBAS).sum(axis=1)
    assert found.loc["x", "entropy_judged"] == pytest.approx(entropy[:2].mean())
    assert found.loc["z", "entropy_abstained"] == pytest.approx(entropy[1:3].mean())
    assert found.loc["w", "entropy_abstained"] == pytest.approx(np.log(2))
    assert np.isnan(found.loc["w", "entropy_judged"])
    assert np.isnan(found.loc["y", "entropy_abstained"])


def test_asked_twice_is_not_two_tasks(ann):
    twice = pd.DataFrame({"task": ["t2", "t2", "t0"], "worker": ["x"] * 3, "value": ""})
    found = verdict_counts(ann, twice, PROBAS).loc["x"]
    assert (found["n_asked"], found["n_abstained"], found["n_never_asked"]) == (5, 3, 1)


def test_abstentions_of_each_task(ann, asked):
    assert count_abstained(ann, asked).tolist() == [0, 1, 2, 0]
    assert count_abstained(ann, check_abstentions(None)).tolist() == [0, 0, 0, 0]


def test_none_and_a_table_without_values():
    assert check_abstentions(None).shape == (0, 3)
    found = check_abstentions(pd.DataFrame({"worker": ["x"], "task": ["t"], "other": [1]}))
    assert found.to_dict("records") == [{"task": "t", "worker": "x", "value": ""}]


def test_bad_tables_are_named():
    with pytest.raises(ValueError, match="abstentions has no column 'worker'"):
        check_abstentions(pd.DataFrame({"task": [1]}))
    with pytest.raises(ValueError, match="row 2 of the table of abstentions has no task"):
        check_abstentions(pd.DataFrame({"task": ["t", None], "worker": ["x", "y"]}))
