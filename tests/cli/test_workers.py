"""`bayescrowd workers`: ranks, keeps, writes and draws; every bad input in one line."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Four informative workers, w0 to w3, among eight who are not."""
    monkeypatch.chdir(tmp_path)
    data = bc.simulate.sparse_crowd(200, 12, alpha=0.3, accuracy=0.85, seed=4)
    frame = data.annotations.to_frame()
    frame["worker"] = "w" + frame["worker"].astype(str)
    frame.to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path


@pytest.fixture
def labels(folder):
    return bc.read_annotations(folder / "labels.csv")


def refusal(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main(["workers", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


def test_files_hold_what_the_selector_finds(folder, labels):
    command = ["workers", "labels.csv", "--top", "4", "--out", "reduced.csv"]
    assert main([*command, "--scores", "scores.csv", "--plot", "scores.png"]) == 0
    selector = bc.MutualInformationSelector(4).fit(labels)
    reduced = pd.read_csv("reduced.csv")
    pd.testing.assert_frame_equal(reduced, selector.transform(labels).to_frame(), check_dtype=False)
    assert set(reduced["worker"]) == {"w0", "w1", "w2", "w3"}
    scores = pd.read_csv("scores.csv")
    assert list(scores.columns) == [
        *["rank", "worker", "score", "n_labels", "selected"],
        *["accuracy", "flag"],
    ]
    assert scores["worker"].tolist() == selector.ranking_.tolist()
    np.testing.assert_allclose(scores["score"], np.sort(selector.scores_)[::-1])
    assert scores["selected"].tolist() == [True] * 4 + [False] * 8
    assert (folder / "scores.png").read_bytes()[:4] == b"\x89PNG"


def test_auto_is_the_default(folder, labels, capsys):
    assert main(["workers", "labels.csv", "--json"]) == 0
    default = json.loads(capsys.readouterr().out)
    assert main(["workers", "labels.csv", "--auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == default
    selector = bc.MutualInformationSelector().fit(labels)
    kept = [worker["worker"] for worker in default["workers"] if worker["selected"]]
    assert kept == selector.selected_.tolist()
    assert default["selection"]["rule"] == "held-out"
    assert default["selection"]["n_labels"] == 200 * len(kept)
    assert default["input"]["n_workers"] == 12
    sizes = [row["n_workers"] for row in default["selection"]["held_out"]]
    assert sizes == list(range(3, 13))


@pytest.mark.parametrize("rule", ["knee", "95%"])
def test_other_rules(folder, labels, capsys, rule):
    assert main(["workers", "labels.csv", "--rule", rule, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = bc.MutualInformationSelector(rule=rule).fit(labels)
    assert document["selection"]["n_workers"] == len(expected.selected_)


def test_summary(folder, capsys):
    assert main(["workers", "labels.csv", "--top", "4", "--out", "reduced.csv.gz"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = [" ".join(line.split()) for line in captured.out.splitlines()]
    assert lines[0] == "labels.csv: 2,400 labels of 200 tasks by 12 workers, 3 classes"
    assert "kept (top 4): 4 of 12 workers, 800 of 2,400 labels" in lines
    assert any(line.startswith("1 w") and line.endswith("200 yes") for line in lines)
    assert any(line.endswith("--scores FILE writes all 12") for line in lines)
    assert lines[-1] == "reduced.csv.gz: 800 labels written"


def test_tables_on_standard_output(folder, capsys):
    assert main(["workers", "labels.csv", "--top", "2", "--scores", "-"]) == 0
    captured = capsys.readouterr()
    assert len(pd.read_csv(io.StringIO(captured.out))) == 12
    assert "kept (top 2)" in captured.err


def test_tasks_that_lose_all_labels_are_counted(folder, capsys):
    frame = pd.read_csv("labels.csv")
    lonely = pd.DataFrame({"task": [999], "worker": ["newcomer"], "label": [0]})
    pd.concat([frame, lonely]).to_csv("more.csv", index=False)
    assert main(["workers", "more.csv", "--top", "4"]) == 0
    assert "1 task without any label left" in capsys.readouterr().out


def test_columns_and_heuristics(folder, capsys):
    renamed = pd.read_csv("labels.csv").rename(columns={"task": "t", "worker": "who", "label": "l"})
    renamed.to_csv("renamed.csv", index=False)
    columns = ["--task", "t", "--worker", "who", "--label", "l"]
    options = ["--heuristic", "subset", "--estimator", "miller-madow", "--top", "4", "--json"]
    assert main(["workers", "renamed.csv", *columns, *options]) == 0
    document = json.loads(capsys.readouterr().out)
    kept = {worker["worker"] for worker in document["workers"] if worker["selected"]}
    assert kept == {"w0", "w1", "w2", "w3"}


def test_existing_files_are_not_overwritten(folder, capsys):
    (folder / "reduced.csv").write_text("mine")
    line = refusal(capsys, "labels.csv", "--out", "reduced.csv")
    assert line == "bayescrowd: reduced.csv: the file exists; --force overwrites it"
    assert (folder / "reduced.csv").read_text() == "mine"
    assert main(["workers", "labels.csv", "--top", "3", "--out", "reduced.csv", "--force"]) == 0
    assert len(pd.read_csv("reduced.csv")) == 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["labels.csv", "--top", "13"], "--top 13: there are 12 workers"),
        (["labels.csv", "--top", "3", "--rule", "knee"], "--rule says how --auto decides"),
        (["labels.csv", "--heuristic", "subset"], "--heuristic subset compares pairs of workers"),
        (["labels.csv", "--top", "0"], "expected an integer of at least 1"),
        (["labels.csv", "--top", "3", "--auto"], "not allowed with argument --top"),
        (["labels.csv", "--plot", "scores.gif"], "scores.gif: expected a name that ends in .png"),
        (["labels.csv", "--out", "labels.csv", "--force"], "labels.csv: named twice"),
        (["labels.csv", "--out", "a.csv", "--scores", "a.csv"], "a.csv: named twice"),
        (["labels.csv", "--out", "-", "--json"], "only one of --out -, --scores - and --json"),
        (["labels.csv", "--out", "reduced.xlsx"], "unknown extension '.xlsx'"),
        (["labels.csv", "--out", "nowhere/reduced.csv"], "there is no folder"),
        (["absent.csv"], "absent.csv"),
    ],
)
def test_bad_input_in_one_line(folder, capsys, arguments, message):
    assert message in refusal(capsys, *arguments)
    assert sorted(path.name for path in folder.iterdir()) == ["labels.csv"]


def test_help(capsys):
    assert main(["workers", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: bayescrowd workers LABELS [--top N | --auto]")
