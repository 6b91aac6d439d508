"""`bayescrowd aggregate --save` and `--fit`: known raters label new tasks."""

import json

import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """Labels, a saved fit to them, and labels of new tasks, of which a stranger gives some."""
    monkeypatch.chdir(tmp_path)
    data = bc.simulate.crowd(60, 6, 2, labels_per_task=4, accuracy=0.85, seed=1)
    frame = data.annotations.to_frame()
    frame["label"] = frame["label"].map({0: "cat", 1: "dog"})
    frame["task"] += 100
    frame[frame["task"] < 140].to_csv("labels.csv", index=False)
    new = frame[frame["task"] >= 140].copy()
    new["worker"] = new["worker"].astype(str).replace("0", "a stranger")
    new.to_csv("new.csv", index=False)
    truth = data.truth.map({0: "cat", 1: "dog"})
    truth.index += 100
    truth.rename("label").rename_axis("task").reset_index().to_csv("truth.csv", index=False)
    assert main(["aggregate", "labels.csv", "--method", "dawid-skene", "--save", "fit.npz"]) == 0
    assert "fit.npz: fit written; --fit fit.npz labels new tasks with it" in capsys.readouterr().out
    return tmp_path


def refusal(capsys, *arguments):
    """The one line with which the command refuses."""
    assert main(["aggregate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False)
    return err


def test_new_tasks_have_the_labels_that_the_fit_predicts(folder):
    assert main(["aggregate", "new.csv", "--fit", "fit.npz", "--out", "out.csv"]) == 0
    found = pd.read_csv("out.csv").set_index("task")
    est = bc.DawidSkene().fit(pd.read_csv("labels.csv"))
    # In new.csv a stranger makes text of all workers' ids; the fit knows them as numbers.
    new = bc.read_annotations("new.csv")
    assert list(new.workers) == ["1", "2", "3", "4", "5", "a stranger"]
    frame = new.to_frame()
    frame["worker"] = frame["worker"].replace({str(n): n for n in range(6)})
    probas = est.predict_proba(frame)
    assert found["label"].to_dict() == est.predict(frame).to_dict()
    assert found["probability"].to_numpy() == pytest.approx(probas.max(axis=1).to_numpy())
    assert (found["n_votes"] == 4).all()


def test_the_summary_says_how_many_raters_are_unknown(folder, capsys):
    n_labels, n_strange = len(pd.read_csv("new.csv")), (folder / "new.csv").read_text().count("str")
    assert main(["aggregate", "new.csv", "--fit", "fit.npz", "--truth", "truth.csv"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"new.csv: {n_labels} labels of 20 tasks by 6 workers\n")
    assert "fit.npz: DawidSkene fitted to 40 tasks by 6 workers\n" in out
    assert "  5 of 6 workers known to the fit\n" in out
    share = n_strange / n_labels
    assert f"  1 unknown, with {share:.1%} of the labels, as the crowd's average\n" in out
    assert " on 20 tasks of truth.csv\n" in out
    assert "first tasks" in out


def test_the_document_and_the_printed_table(folder, capsys):
    assert main(["aggregate", "new.csv", "--fit", "fit.npz", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["fit"]["classes"] == ["cat", "dog"]
    assert document["input"]["n_unknown_workers"] == 1
    assert len(document["tasks"]) == 20
    assert main(["aggregate", "new.csv", "--fit", "fit.npz", "--out", "-", "--probabilities"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("task,label,probability,entropy,n_votes,probability:cat")
    assert "known to the fit" in captured.err


def test_new_tasks_may_show_one_class_only(folder, capsys):
    (folder / "one.csv").write_text("task,worker,label\n1,1,cat\n1,2,cat\n")
    assert main(["aggregate", "one.csv", "--fit", "fit.npz"]) == 0
    assert "2 labels of 1 task by 2 workers" in capsys.readouterr().out


def test_classes_may_be_numbers(folder, capsys):
    frame = pd.read_csv("labels.csv").replace({"label": {"cat": "0", "dog": "1"}})
    bc.MajorityVote().fit(frame).save("text.npz")
    frame.astype({"label": int}).to_csv("numbers.csv", index=False)
    assert main(["aggregate", "numbers.csv", "--fit", "text.npz", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tasks"]
    assert [task["label"] for task in found] == bc.MajorityVote().fit_predict(frame).to_list()


def test_unknown_classes_are_named(folder, capsys):
    (folder / "new.csv").write_text("task,worker,label\n1,1,cat\n1,2,fox\n2,2,hare\n")
    line = refusal(capsys, "new.csv", "--fit", "fit.npz")
    assert "new.csv: row 3" in line or "new.csv: row 2" in line or "new.csv: line 3" in line
    assert "label 'fox' is not one of the classes 'cat', 'dog'; nor are the labels 'hare'" in line


@pytest.mark.parametrize(
    "option", ["--method=wawa", "--gold=truth.csv", "--workers=w.csv", "--seed=1", "--save=x.npz"]
)
def test_a_saved_fit_takes_no_options_of_a_new_one(folder, capsys, option):
    line = refusal(capsys, "new.csv", "--fit", "fit.npz", option)
    assert f"{option.partition('=')[0]} belongs to a new fit" in line


def test_files_that_are_no_fits_are_refused(folder, capsys):
    assert (
        "expected a fit saved by bayescrowd" in refusal(capsys, "new.csv", "--fit", "new.csv")[:90]
    )
    assert "nothing.npz" in refusal(capsys, "new.csv", "--fit", "nothing.npz")
    assert "only one of the files" in refusal(capsys, "-", "--fit", "-")
    assert "only one of --out -" in refusal(
        capsys, "new.csv", "--fit", "fit.npz", "--out=-", "--json"
    )


def test_a_fit_is_replaced_only_with_force(folder, capsys):
    before = (folder / "fit.npz").read_bytes()
    line = refusal(capsys, "labels.csv", "--method=wawa", "--save=fit.npz")
    assert "fit.npz: the file exists; --force overwrites it" in line
    assert (folder / "fit.npz").read_bytes() == before
    assert main(["aggregate", "labels.csv", "--method=wawa", "--save=fit.npz", "--force"]) == 0
    assert isinstance(bc.load("fit.npz"), bc.Wawa)
