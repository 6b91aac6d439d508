"""Labels that differ only in case or surrounding blanks are counted, and merged on request."""

import json

import numpy as np
import pandas as pd
import pytest

from bayescrowd.data.annotations import Annotations
from bayescrowd.io.reading import read_annotations, read_truth
from bayescrowd.io.spellings import SpellingWarning
from bayescrowd.io.verdicts import read_verdicts

LABELS = ["Cat", "cat", "dog", " dog", "DOG", "cat", "owl"]
"""'cat' occurs twice, 'Cat', 'DOG', 'dog' and ' dog' once: without the blank, 'dog' twice."""


def write(folder, labels, name="x.csv"):
    rows = [{"task": t, "worker": "ab"[t % 2], "label": text} for t, text in enumerate(labels)]
    path = folder / name
    if path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        path.write_text(json.dumps(rows))
    return path


def labels_of(ann):
    return ann.to_frame()["label"].tolist()


# By hand


def test_spellings_are_counted(tmp_path):
    found = r"'cat' \(2\), 'Cat' \(1\)|'Cat' \(1\), 'cat' \(2\)"
    with pytest.warns(SpellingWarning, match=rf"x\.csv: labels that differ .*({found})") as caught:
        ann = read_annotations(write(tmp_path, LABELS))
    message = str(caught[0].message)
    assert "' dog' (1)" in message
    assert "'owl'" not in message
    assert message.endswith("tidy= merges them")
    assert "\n" not in message
    assert labels_of(ann) == LABELS


@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.parquet"])
def test_the_most_frequent_spelling_wins(tmp_path, name):
    ann = read_annotations(write(tmp_path, LABELS, name), tidy=True)
    assert labels_of(ann) == ["cat", "cat", "dog", "dog", "dog", "cat", "owl"]
    assert len(ann.notes) == 1
    note = ann.notes[0].partition("blanks: ")[2]
    assert note == "'Cat' (1) into 'cat' (2); ' dog' (1), 'DOG' (1) into 'dog' (1)"


def test_ties_go_to_the_spelling_that_comes_first(tmp_path):
    ann = read_annotations(write(tmp_path, ["No", "yes", "YES", "no", "Yes"]), tidy=True)
    assert labels_of(ann) == ["No", "yes", "yes", "No", "yes"]


def test_blanks_do_not_count_as_a_spelling(tmp_path):
    """Of ' No' twice, 'no' once and 'No' never, 'No' wins: its letters are the most frequent."""
    ann = read_annotations(write(tmp_path, [" No", "no", " No", "yes"]), tidy=True)
    assert labels_of(ann) == ["No", "No", "No", "yes"]


@pytest.mark.parametrize("tidy", [False, True])
def test_nothing_is_said_or_done_where_nothing_differs(tmp_path, tidy):
    ann = read_annotations(write(tmp_path, ["cat", "cats", "c at", "cat"]), tidy=tidy)
    assert labels_of(ann) == ["cat", "cats", "c at", "cat"]
    assert ann.notes == ()


def test_integers_with_blanks_become_integers(tmp_path):
    path = write(tmp_path, ["1", " 1", "0", "0 "])
    ann = read_annotations(path, tidy=True)
    assert ann.classes.tolist() == [0, 1]
    assert read_annotations(write(tmp_path, [1, 1, 0, 0])).classes.equals(ann.classes)


def test_missing_labels_stay_missing(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label\n1,a,Cat\n2,a,\n3,a,cat\n4,a, \n5,b,dog\n6,b,cat\n")
    ann = read_annotations(path, tidy=True)
    assert (labels_of(ann), ann.n_dropped) == (["cat", "cat", "dog", "cat"], 2)


def test_declared_classes_win(tmp_path):
    path = write(tmp_path, ["cat", "cat", "Cat", "dog"])
    ann = read_annotations(path, classes=["dog", "CAT", "owl"], tidy=True)
    assert labels_of(ann) == ["CAT", "CAT", "CAT", "dog"]
    assert ann.classes.tolist() == ["dog", "CAT", "owl"]


def test_declared_classes_may_differ_in_case_on_purpose(tmp_path):
    path = write(tmp_path, ["T", "t", "T", "t"])
    for tidy in (False, True):
        ann = read_annotations(path, classes=["T", "t"], tidy=tidy)
        assert (labels_of(ann), ann.notes) == (["T", "t", "T", "t"], ())


def test_an_ordered_categorical_keeps_its_order(tmp_path):
    order = ["low", "Mid", "mid", "high"]
    labels = pd.Categorical(["mid", "high", "Mid", "mid"], categories=order, ordered=True)
    frame = pd.DataFrame({"task": range(4), "worker": "a", "label": labels})
    frame.to_parquet(tmp_path / "x.parquet")
    ann = read_annotations(tmp_path / "x.parquet", tidy=True)
    assert ann.classes.tolist() == ["low", "mid", "high"]
    assert labels_of(ann) == ["mid", "high", "mid", "mid"]


def test_wide_tables_and_verdicts(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("task,ann,bob\n1,Pass,pass\n2,fail,Unsure\n3,pass,FAIL\n4,fail,fail\n")
    wide = read_annotations(path, tidy=True)
    assert wide.classes.tolist() == ["fail", "pass", "Unsure"]
    verdicts = read_verdicts(path, abstentions=["unsure"], tidy=True)
    assert verdicts.annotations.classes.tolist() == ["fail", "pass"]
    assert verdicts.abstentions["value"].tolist() == ["unsure"]


# Known labels


@pytest.fixture
def animals():
    return Annotations.from_matrix([["cat", "dog"], ["dog", "dog"], ["cat", "cat"]])


def test_known_labels_take_the_spelling_of_the_classes(tmp_path, animals):
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\n0,CAT\n1,dog \n2,Owl\n")
    truth = read_truth(path, animals, tidy=True)
    assert truth.tolist() == ["cat", "dog", "Owl"]
    assert truth.attrs["notes"][0].endswith("'CAT' (1) into 'cat'; 'dog ' (1) into 'dog'")


def test_known_labels_that_differ_in_case_are_reported(tmp_path, animals):
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\n0,CAT\n1,dog\n2,CAT\n")
    with pytest.warns(SpellingWarning, match=r"truth\.csv: .*: 'CAT' \(2\), where .* is 'cat'; "):
        truth = read_truth(path, animals)
    assert truth.tolist() == ["CAT", "dog", "CAT"]


def test_two_spellings_of_one_known_label_agree(tmp_path, animals):
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\n0,CAT\n0,cat\n1,dog\n")
    assert read_truth(path, animals, tidy=True).tolist() == ["cat", "dog"]
    with (
        pytest.warns(SpellingWarning),
        pytest.raises(ValueError, match="a second, different truth label for task '0'"),
    ):
        read_truth(path, animals)


# Invariants


def test_merging_is_the_same_as_reading_clean_labels(tmp_path):
    """Labels with a random case and random blanks give the annotations of those without."""
    rng = np.random.default_rng(3)
    clean = rng.choice(["cat", "dog", "owl", "fox"], 400)
    spoilt = [
        " " * rng.integers(2)
        + (text.upper() if rng.random() < 0.2 else text)
        + " " * rng.integers(2)
        for text in clean
    ]
    ann = read_annotations(write(tmp_path, spoilt), tidy=True)
    assert labels_of(ann) == clean.tolist()


def test_long_lists_are_cut_short(tmp_path):
    labels = [text for k in range(30) for text in (f"c{k}", f"C{k}")]
    with pytest.warns(SpellingWarning, match="and 25 more") as caught:
        read_annotations(write(tmp_path, labels))
    assert len(str(caught[0].message)) < 500
