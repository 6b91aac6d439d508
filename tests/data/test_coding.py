"""Tables of judgements as integer codes: rows keep their order, vocabularies are sorted."""

import numpy as np
import pandas as pd
import pytest

from bayescrowd.data.coding import check_codes, code_long_table, code_matrix
from bayescrowd.data.vocabulary import Where

TABLE = pd.DataFrame({"task": [2, 1, 1, 2], "worker": list("baab"), "label": ["y", "n", "y", None]})


def code_table(duplicates):
    return code_long_table(TABLE, "task", "worker", "label", None, duplicates, Where())


def test_long_table():
    codes = code_table("keep")
    assert codes.task.tolist() == [1, 0, 0]
    assert codes.worker.tolist() == [1, 0, 0]
    assert codes.label.tolist() == [1, 0, 1]
    assert (list(codes.tasks), list(codes.workers)) == ([1, 2], ["a", "b"])
    assert (list(codes.classes), codes.n_dropped) == (["n", "y"], 1)


@pytest.mark.parametrize(("duplicates", "expected"), [("first", [1, 0]), ("last", [1, 1])])
def test_repeated_judgements_of_a_long_table(duplicates, expected):
    assert code_table(duplicates).label.tolist() == expected


def test_matrix():
    codes = code_matrix(pd.DataFrame({"w2": ["a", None], "w1": ["b", "a"]}, index=[8, 7]), None)
    assert codes.task.tolist() == [1, 1, 0]
    assert codes.worker.tolist() == [1, 0, 0]
    assert codes.label.tolist() == [0, 1, 0]
    assert (list(codes.tasks), list(codes.workers)) == ([7, 8], ["w1", "w2"])


def test_codes_are_kept():
    task, worker = np.array([1, 0], dtype=np.uint8), np.array([0, 2])
    codes = check_codes(task, worker, task, 2, ["a", "b", "c"], 2)
    assert codes.task.dtype == np.int64
    assert (codes.task.tolist(), codes.worker.tolist()) == ([1, 0], [0, 2])
    assert (list(codes.tasks), list(codes.workers)) == ([0, 1], ["a", "b", "c"])
