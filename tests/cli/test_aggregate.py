"""`bayescrowd aggregate`: files in, tables out, and every bad input in one line."""

import gzip
import io
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.aggregation import protocol
from bayescrowd.cli import main
from bayescrowd.cli.arguments import METHODS

TASK_COLUMNS = ["task", "label", "probability", "entropy", "n_votes"]
WORKER_COLUMNS = ["worker", "accuracy", "information", "n_labels", "flag"]
WITH_INTERVAL = ["worker", "accuracy", "lower", "upper", "information", "n_labels", "flag"]

SMALL = """\
task,worker,label
1,ann,cat
1,bob,cat
2,ann,dog
2,bob,cat
2,eve,dog
3,ann,cat
3,eve,
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(SMALL)
    return tmp_path


@pytest.fixture
def bluebird(tmp_path, monkeypatch):
    """The real labels and their truth as a user's files."""
    monkeypatch.chdir(tmp_path)
    if not bc.datasets.is_local("bluebird"):
        pytest.skip("bluebird is not on this machine: set BAYESCROWD_DATA to a folder that has it")
    data = bc.load_dataset("bluebird")
    data.annotations.to_frame().to_csv(tmp_path / "labels.csv", index=False)
    data.truth.reset_index().to_csv(tmp_path / "truth.csv", index=False)
    return data


def refusal(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main(["aggregate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


def by_hand(votes):
    """Label, probability, entropy (nats) and number of votes of vote counts."""
    shares = np.array(votes) / sum(votes)
    entropy = -sum(s * np.log(s) for s in shares if s > 0)
    return shares.max(), entropy, sum(votes)


def test_majority_vote_by_hand(folder):
    assert main(["aggregate", "labels.csv", "--method", "majority-vote", "--out", "out.csv"]) == 0
    table = pd.read_csv(folder / "out.csv")
    assert list(table.columns) == TASK_COLUMNS
    assert table["task"].tolist() == [1, 2, 3]
    assert table["label"].tolist() == ["cat", "dog", "cat"]
    expected = [by_hand([2, 0]), by_hand([1, 2]), by_hand([1, 0])]
    np.testing.assert_allclose(table[["probability", "entropy", "n_votes"]], expected, atol=1e-12)


def test_files_hold_what_the_estimator_finds(bluebird):
    assert main(["aggregate", "labels.csv", "--out", "tasks.csv", "--workers", "workers.csv"]) == 0
    est = bc.AutoAggregator().fit(bluebird.annotations)
    tasks = pd.read_csv("tasks.csv").set_index("task")
    workers = pd.read_csv("workers.csv", keep_default_na=False)
    assert tasks["label"].tolist() == est.labels_.tolist()
    np.testing.assert_allclose(tasks["probability"], est.probas_.max(axis=1))
    assert list(workers.columns) == WITH_INTERVAL
    pd.testing.assert_frame_equal(workers.set_index("worker"), est.worker_quality_)


def test_summary_and_scores(bluebird, capsys):
    assert main(["aggregate", "labels.csv", "--truth", "truth.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = [" ".join(line.split()) for line in captured.out.splitlines()]
    assert lines[0] == "labels.csv: 4,212 labels of 108 tasks by 39 workers, 2 classes"
    scores = bc.metrics.score_table(
        bc.AutoAggregator().fit(bluebird.annotations).probas_, bluebird.truth
    )
    assert "scored on 108 tasks of truth.csv" in lines
    assert f"accuracy {scores.accuracy:.4f}" in lines
    assert f"macro-F1 {scores.macro_f1:.4f}" in lines
    assert f"Brier score {scores.brier:.4f}" in lines
    assert f"expected calibration error {scores.ece:.4f}" in lines
    assert any(line.startswith("auto: log-likelihood") for line in lines)
    assert any(line.startswith("Enough labels per worker (median 108)") for line in lines)
    assert any(line.startswith("flagged:") and "39 workers" in line for line in lines)


def test_summary_counts_what_was_left_out(folder, capsys):
    assert main(["aggregate", "labels.csv", "--method", "wawa"]) == 0
    out = capsys.readouterr().out
    assert "6 labels of 3 tasks by 3 workers, 2 classes" in out
    assert "1 row without a label left out" in out
    assert "--out FILE writes all 3" in out


def test_json_document(bluebird, capsys):
    assert main(["aggregate", "labels.csv", "--truth", "truth.csv", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    document = json.loads(captured.out)
    assert list(document) == [
        *("bayescrowd", "method", "input", "fit", "agreement", "effective_votes", "scores"),
        *("classes", "tasks", "workers"),
    ]
    assert document["bayescrowd"] == bc.__version__
    assert document["method"] == "auto"
    assert document["fit"]["why"].startswith("Enough labels per worker")
    assert document["input"]["n_labels"] == 4212
    assert document["fit"]["converged"] is True
    assert set(document["scores"]) >= {"n", "accuracy", "macro_f1", "brier", "ece"}
    assert [list(row) for row in document["tasks"][:1]] == [TASK_COLUMNS]
    assert [list(row) for row in document["workers"][:1]] == [WITH_INTERVAL]
    assert len(document["tasks"]) == 108
    assert sum(row["prior"] for row in document["classes"]) == pytest.approx(1)


def test_scores_beside_the_majority_vote(bluebird, capsys):
    assert main(["aggregate", "labels.csv", "--truth", "truth.csv"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert main(["aggregate", "labels.csv", "--truth", "truth.csv", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    est = bc.AutoAggregator().fit(bluebird.annotations)
    expected = bc.metrics.score_table(est.probas_, bluebird.truth)._asdict()
    assert {name: scores[name] for name in expected} == pytest.approx(expected)
    assert f"log loss (nats) {expected['log_loss']:.4f}" in lines
    # the vote by hand: at least 20 of 39 labels are right
    votes = bluebird.annotations.to_frame().groupby("task")["label"].agg(lambda c: c.mode()[0])
    vote = (votes == bluebird.truth.reindex(votes.index)).mean()
    assert scores["majority_vote_accuracy"] == pytest.approx(vote)
    assert f"of the majority vote {vote:.4f}" in lines
    # Wilson's ends solve (p - share)^2 = z^2 p (1 - p) / n
    low, high = scores["accuracy_lower"], scores["accuracy_upper"]
    for end in (low, high):
        gap = (end - expected["accuracy"]) ** 2
        assert gap == pytest.approx(1.959964**2 * end * (1 - end) / 108, rel=1e-6)
    assert low < expected["accuracy"] < high
    assert f"its 95% interval {low:.4f} to {high:.4f}" in lines


def test_agreement_and_effective_votes_take_a_line_each(bluebird, capsys):
    assert main(["aggregate", "labels.csv"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert main(["aggregate", "labels.csv", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    table = bc.agreement.agreement_table(bluebird.annotations)
    assert document["agreement"] == table.to_dict("index")
    share, alpha = table.loc["percent_agreement"], table.loc["krippendorff_alpha"]
    assert (
        f"agreement: {share['value']:.1%} ({share['lower']:.1%} to {share['upper']:.1%}) of all "
        f"pairs, Krippendorff's alpha {alpha['value']:.3f} ({alpha['lower']:.3f} to "
        f"{alpha['upper']:.3f})"
    ) in lines
    dependence = bc.AutoAggregator().fit(bluebird.annotations).dependence_
    low, high = dependence.effective_votes
    assert document["effective_votes"] == {"n_votes": 39.0, "lower": low, "upper": high}
    bracket = f"{low:.1f} to {high:.1f}"
    assert f"effective votes: {bracket} independent ones among 39 per task" in lines


def test_methods_that_do_not_know_the_effective_votes_do_not_say_it(folder, capsys):
    assert main(["aggregate", "labels.csv", "--method", "wawa"]) == 0
    assert "effective votes" not in capsys.readouterr().out
    assert main(["aggregate", "labels.csv", "--method", "wawa", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["effective_votes"] is None


def test_one_label_per_task_leaves_agreement_undefined(folder, capsys):
    (folder / "once.csv").write_text("task,worker,label\n1,ann,cat\n2,bob,dog\n3,ann,dog\n")
    assert main(["aggregate", "once.csv"]) == 0
    out = capsys.readouterr().out
    assert "agreement: - (no task has two labels)" in out
    assert "effective votes: - (tasks have one label each)" in out
    assert main(["aggregate", "once.csv", "--json"]) == 0
    agreement = json.loads(capsys.readouterr().out)["agreement"]
    assert agreement["gwet_ac1"] == {"value": None, "lower": None, "upper": None}


@pytest.mark.parametrize(
    "arguments", [[], ["--truth", "truth.csv"], ["--method", "wawa", "--out", "-"]]
)
def test_picture(folder, capsys, arguments):
    (folder / "truth.csv").write_text("task,truth\n1,cat\n2,cow\n")
    assert main(["aggregate", "labels.csv", *arguments, "--plot", "fit.png"]) == 0
    captured = capsys.readouterr()
    assert "fit.png: picture written" in (captured.err if "--out" in arguments else captured.out)
    assert captured.err.count("nobody chose the class 'cow'") == ("--truth" in arguments)
    assert (folder / "fit.png").read_bytes()[:4] == b"\x89PNG"


def test_json_without_truth_has_no_scores(folder, capsys):
    assert main(["aggregate", "labels.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"] is None


def test_printing_the_table_leaves_the_summary_to_standard_error(folder, capsys):
    assert main(["aggregate", "labels.csv", "--out", "-"]) == 0
    captured = capsys.readouterr()
    assert pd.read_csv(io.StringIO(captured.out)).columns.tolist() == TASK_COLUMNS
    assert captured.err.startswith("labels.csv: 6 labels")


@pytest.mark.parametrize(("method", "columns"), [("auto", WITH_INTERVAL), ("wawa", WORKER_COLUMNS)])
def test_printing_workers(folder, capsys, method, columns):
    assert main(["aggregate", "labels.csv", "--method", method, "--workers", "-"]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert table.columns.tolist() == columns


def test_the_summary_shows_intervals_where_there_are_any(folder, capsys):
    assert main(["aggregate", "labels.csv"]) == 0
    quality = bc.aggregate(pd.read_csv("labels.csv").dropna()).worker_quality_
    out = capsys.readouterr().out
    assert "worker  accuracy    90% interval  information" in out
    for row in quality.itertuples():
        assert f"{row.accuracy:.3f}  {row.lower:.3f} to {row.upper:.3f}" in out
    assert main(["aggregate", "labels.csv", "--method", "wawa"]) == 0
    assert "interval" not in capsys.readouterr().out


def test_standard_input(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(SMALL.encode())))
    assert main(["aggregate", "-"]) == 0
    assert capsys.readouterr().out.startswith("standard input: 6 labels")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs(bluebird, capsys, method):
    assert main(["aggregate", "labels.csv", "--method", method, "--truth", "truth.csv"]) == 0
    assert f"\n{method}: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet"]
)
def test_formats_of_the_output(folder, name):
    assert main(["aggregate", "labels.csv", "--out", name]) == 0
    if name.endswith(".parquet"):
        table = pd.read_parquet(name)
    elif ".jsonl" in name:
        table = pd.read_json(name, lines=True)
    else:
        table = pd.read_csv(name, sep="\t" if ".tsv" in name else ",")
    assert table.columns.tolist() == TASK_COLUMNS
    assert table["label"].tolist() == ["cat", "dog", "cat"]


def test_probability_of_every_class(folder):
    assert main(["aggregate", "labels.csv", "--out", "out.csv", "--probabilities"]) == 0
    table = pd.read_csv("out.csv")
    columns = ["probability:cat", "probability:dog"]
    assert table.columns.tolist() == [*TASK_COLUMNS, *columns]
    np.testing.assert_allclose(table[columns].sum(axis=1), 1)
    np.testing.assert_allclose(table[columns].max(axis=1), table["probability"])


def test_gold_is_held(folder, capsys):
    (folder / "gold.csv").write_text("task,gold\n2,cat\n")
    assert main(["aggregate", "labels.csv", "--gold", "gold.csv", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["input"]["n_gold"] == 1
    assert document["tasks"][1]["label"] == "cat"
    assert document["tasks"][1]["probability"] == 1


def test_gold_tasks_are_not_scored(folder, capsys):
    (folder / "gold.csv").write_text("task,gold\n2,cat\n")
    (folder / "truth.csv").write_text("task,truth\n1,cat\n2,cat\n")
    arguments = ["labels.csv", "--gold", "gold.csv", "--truth", "truth.csv"]
    assert main(["aggregate", *arguments]) == 0
    assert "scored on 1 task of truth.csv; 1 more are gold" in capsys.readouterr().out
    (folder / "truth.csv").write_text("task,truth\n2,cat\n")
    assert "nothing is left to score" in refusal(capsys, *arguments)


def test_columns_can_be_named(folder, capsys):
    (folder / "odd.csv").write_text("a,b,c\n1,x,yes\n2,x,no\n1,y,yes\n")
    (folder / "key.csv").write_text("p,q\n1,yes\n")
    columns = ["--task", "a", "--worker", "b", "--label", "c"]
    known = ["--truth", "key.csv", "--truth-columns", "p,q", "--classes", "yes,no,maybe"]
    assert main(["aggregate", "odd.csv", *columns, *known, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["class"] for row in document["classes"]] == ["yes", "no", "maybe"]
    assert document["scores"]["n"] == 1


def test_duplicates(folder, capsys):
    (folder / "twice.csv").write_text(SMALL + "1,ann,dog\n")
    assert main(["aggregate", "twice.csv", "--duplicates", "last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["input"]["n_labels"] == 6
    assert "row 9: worker 'ann' judges task 1 again" in refusal(
        capsys, "twice.csv", "--duplicates", "error"
    )


def test_stopping_early_is_said(bluebird, capsys):
    assert main(["aggregate", "labels.csv", "--method", "dawid-skene", "--n-iter", "2"]) == 0
    captured = capsys.readouterr()
    assert "NOT converged after 2 iterations" in captured.out
    assert captured.err.startswith("bayescrowd: warning: DawidSkene stopped after n_iter=2")
    assert captured.err.count("\n") == 1


def test_seed_and_restarts_reach_the_estimator(folder, monkeypatch):
    seen = {}
    monkeypatch.setattr(protocol, "check_parameters", lambda est: seen.update(est.get_params()))
    options = ["--method", "dawid-skene", "--seed", "5", "--n-init", "3", "--n-iter", "40"]
    assert main(["aggregate", "labels.csv", *options]) == 0
    assert (seen["seed"], seen["n_init"], seen["n_iter"]) == (5, 3, 40)


def test_progress_only_on_a_terminal(bluebird, capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["aggregate", "labels.csv"]) == 0
    assert "reading labels.csv" in terminal.getvalue()
    assert "auto: " in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", quiet := io.StringIO())
    assert main(["aggregate", "labels.csv"]) == 0
    assert quiet.getvalue() == ""


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "bad.csv: the file is empty"),
        (b"task,worker,label\n", "bad.csv: "),
        (b"task,worker\n1,a\n", "bad.csv: no column for the label"),
        (b"task,worker,label\n1,a,x\n2,a,x\n", "one class only ('x')"),
        (b"task,worker,label\n1,a,x\n,a,y\n", "bad.csv: row 3, column 'task': missing task id"),
        (b"task,worker,label\n1,a,x\n2,a,\xff\n", "bad.csv: row 3, column 'label': byte 0xff"),
        (b"task,worker,label\n1,a,x\n2,a\n", "bad.csv: row 3"),
        (b"PAR1garbage", "truncated or damaged Parquet"),
        (gzip.compress(SMALL.encode(), mtime=0)[:-9], "truncated or damaged gzip"),
    ],
    ids=[
        *("empty", "header", "no-label-column", "one-class", "no-task"),
        *("not-utf-8", "ragged", "parquet", "gzip"),
    ],
)
def test_bad_file(folder, capsys, content, message):
    (folder / "bad.csv").write_bytes(content)
    line = refusal(capsys, "bad.csv")
    assert line.startswith("bayescrowd: bad.csv")
    assert message in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv"], "absent.csv: there is no such file"),
        (["."], "this is a folder"),
        (["labels.csv", "--task", "picture"], "no column 'picture' for the task"),
        (["labels.csv", "--gold", "absent.csv"], "absent.csv: there is no such file"),
        (["labels.csv", "--classes", "cat,cow"], "label 'dog' is not one of the classes"),
        (["labels.csv", "--method", "wawa", "--n-init", "3"], "wawa has no option --n-init"),
        (["-", "--gold", "-"], "only one of the files can come from standard input"),
        (["labels.csv", "--out", "-", "--json"], "only one of --out -, --workers - and --json"),
        (["labels.csv", "--out", "labels.csv", "--force"], "labels.csv: named twice"),
        (["labels.csv", "--out", "x.csv", "--workers", "./x.csv"], "x.csv: named twice"),
        (["labels.csv", "--out", "out.xlsx"], "out.xlsx: unknown extension '.xlsx'"),
        (["labels.csv", "--out", "absent/out.csv"], "absent/out.csv: there is no folder"),
        (["labels.csv", "--plot", "fit.gif"], "fit.gif: expected a name that ends in .png, .pdf"),
        (["labels.csv", "--plot", "absent/fit.png"], "absent/fit.png: there is no folder"),
    ],
)
def test_bad_arguments(folder, capsys, arguments, message):
    assert message in refusal(capsys, *arguments)
    assert sorted(os.listdir()) == ["labels.csv"]


@pytest.mark.parametrize("name", ["gold", "truth"])
def test_known_labels_of_other_tasks_only(folder, capsys, name):
    (folder / "known.csv").write_text("task,label\n9,cat\n")
    line = refusal(capsys, "labels.csv", f"--{name}", "known.csv")
    assert line.startswith("bayescrowd: known.csv: none of its 1 tasks (such as '9') is one of the")


@pytest.mark.parametrize("name", ["gold", "truth"])
def test_known_labels_that_do_not_fit_are_counted(folder, capsys, name):
    (folder / "known.csv").write_text("task,label\n9,cat\n1,cow\n2,dog\n8,cow\n")
    arguments = ["labels.csv", "--method", "wawa", f"--{name}", "known.csv", "--json"]
    assert main(["aggregate", *arguments]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["input"][name] == {
        "n_tasks": 4,
        "n_without_labels": 2,
        "n_unchosen_class": 1,
    }
    first, second = err.splitlines()
    message = f"known.csv: 2 of 4 {name} tasks have no labels and are left out (such as '9')"
    assert first == f"bayescrowd: warning: {message}"
    fate = {"gold": "is left out", "truth": "counts as wrong"}[name]
    assert second.startswith(
        f"bayescrowd: warning: nobody chose the class 'cow' of the {name}: 1 of 2 {name} tasks "
        f"{fate}"
    )
    assert document["input"]["n_gold"] == (name == "gold")
    if name == "truth":
        label = next(row["label"] for row in document["tasks"] if row["task"] == 2)
        assert document["scores"]["n"] == 2
        assert document["scores"]["accuracy"] == (label == "dog") / 2


@pytest.mark.parametrize(
    ("option", "name"), [("--out", "out.csv"), ("--workers", "out.csv"), ("--plot", "out.svg")]
)
def test_existing_file_is_kept_without_force(folder, capsys, monkeypatch, option, name):
    (folder / name).write_text("precious")
    with monkeypatch.context() as patch:
        # Refused before any work is done: reading would fail.
        patch.setattr("bayescrowd.io.reading.read_annotations", None)
        line = refusal(capsys, "labels.csv", option, name)
    assert line == f"bayescrowd: {name}: the file exists; --force overwrites it"
    assert (folder / name).read_text() == "precious"
    assert main(["aggregate", "labels.csv", option, name, "--force"]) == 0
    assert (folder / name).read_text() != "precious"


def test_folder_that_cannot_be_written_to(folder, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    assert "no permission to write into the folder" in refusal(
        capsys, "labels.csv", "--out", "out.csv"
    )


def test_failure_while_writing_leaves_the_old_file(folder, capsys, monkeypatch):
    (folder / "out.csv").write_text("precious")

    def fail(self, file, **options):
        file.write("half a ta")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    line = refusal(capsys, "labels.csv", "--out", "out.csv", "--force")
    assert line == "bayescrowd: out.csv: no space left on device"
    assert (folder / "out.csv").read_text() == "precious"
    assert sorted(os.listdir()) == ["labels.csv", "out.csv"]


def test_predictions_of_a_classifier_take_part(folder, capsys):
    (folder / "model.csv").write_text("task,cat,dog\n1,.9,.1\n2,.2,.8\n3,.7,.3\n4,.1,.9\n")
    assert main(["aggregate", "labels.csv", "--predictions", "model.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [task["n_votes"] for task in found["tasks"]] == [2, 3, 1, 0]
    assert [task["task"] for task in found["tasks"]] == [1, 2, 3, 4]
    assert "predictions" in [worker["worker"] for worker in found["workers"]]
    assert found["fit"]["prediction_strength"] >= 0
    est = bc.aggregate(
        bc.read_annotations("labels.csv"),
        predictions=pd.read_csv("model.csv", index_col="task"),
    )
    np.testing.assert_allclose(
        [task["probability"] for task in found["tasks"]], est.probas_.max(axis=1)
    )


def test_predictions_that_cannot_be_used(folder, capsys):
    (folder / "model.csv").write_text("task,cat,dog\n1,.9,.9\n")
    line = refusal(capsys, "labels.csv", "--predictions", "model.csv")
    assert "expected probabilities that sum to 1" in line
    line = refusal(capsys, "labels.csv", "--predictions", "model.csv", "--method", "wawa")
    assert "--predictions: not used by wawa; expected auto" in line
    assert "nowhere.csv" in refusal(capsys, "labels.csv", "--predictions", "nowhere.csv")
