"""`bayescrowd panel`: tables, files, JSON and pictures; bad input in one line."""

import json

import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main
from bayescrowd.cli.panel import _positive

QUICK = ("--drop", "0")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A panel of two judges in two orders and one in a single order, who is sometimes unsure."""
    monkeypatch.chdir(tmp_path)
    data = bc.simulate.panel(60, 2, position_bias=0.2, swapped=True, accuracy=[0.85, 0.8], seed=3)
    frame = data.annotations.to_frame()
    frame["label"] = frame["label"].map({0: "fail", 1: "pass"})
    truth = data.truth.map({0: "fail", 1: "pass"}).rename_axis("task").rename("label")
    solo = pd.DataFrame({"task": truth.index, "worker": "solo", "label": truth.to_numpy()})
    solo.loc[:4, "label"] = "unsure"
    solo.loc[5:6, "label"] = ""
    pd.concat([frame, solo.iloc[:50]]).to_csv("verdicts.csv", index=False)
    truth.iloc[10:30].to_csv("gold.csv")
    return tmp_path


def run(capsys, *arguments):
    assert main(["panel", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def document(capsys, *arguments):
    return json.loads(run(capsys, *arguments, "--json"))


def refusal(capsys, *arguments):
    assert main(["panel", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


BASE = ("verdicts.csv", "--abstain", "unsure")


def test_with_gold_tables_files_and_picture(folder, capsys):
    files = ("--out", "tasks.csv", "--judges", "judges.csv", "--plot", "panel.png")
    suggest = ("--suggest", "5", "next.csv")
    text = run(capsys, *BASE, "--gold", "gold.csv", "--drop", "1", *files, *suggest)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == (
        "verdicts.csv: 283 verdicts by 5 judges on 60 tasks, 2 classes; 20 gold tasks"
    )
    assert "  asked and no verdict: 7 (unsure: 5, empty: 2)" in lines
    assert "  never asked: 10 pairs of a judge and a task" in lines
    tasks = pd.read_csv("tasks.csv").set_index("task")
    gold = pd.read_csv("gold.csv").set_index("task")["label"]
    assert (tasks.loc[gold.index, "label"] == gold).all()
    assert tasks["n_abstained"].sum() == 7
    judges = pd.read_csv("judges.csv").set_index("judge")
    assert judges.loc["solo", ["n_verdicts", "n_abstained", "n_never_asked"]].to_list() == [
        *(43, 7, 10)
    ]
    row = next(line.split() for line in lines if line.strip().startswith("solo "))
    accuracy = judges.loc["solo"]
    assert f"{100 * accuracy['accuracy']:.1f}" in row
    assert "what dropping a judge would cost" in lines
    assert "  judge0 " in text[text.index("swap consistency") :]
    assert (folder / "panel.png").read_bytes()[:4] == b"\x89PNG"
    suggested = pd.read_csv("next.csv")
    assert suggested.columns.to_list() == ["task", "label", "weight", "reason"]
    assert suggested["label"].isna().all()
    assert not suggested["task"].isin(gold.index).any()
    assert lines[-1] == "next.csv: 5 tasks to send for gold written"


def test_without_gold_it_says_why_not(folder, capsys):
    text = run(capsys, *BASE, *QUICK)
    flat = " ".join(text.split())
    assert "Judges' accuracies need gold" in flat
    assert "There is no honest interval of a share without gold" in flat
    assert "accuracy %" not in text
    assert "90% interval" not in text.split("swap consistency")[0]


def test_json_without_gold_and_suggested_tasks_that_come_back_with_their_weights(folder, capsys):
    found = document(capsys, *BASE, *QUICK, "--suggest", "14", "next.csv")
    assert found["accuracy"] is None
    assert found["shares"] is None
    assert found["dropping"] is None
    assert set(found["why_not"]) == {"accuracy", "shares"}
    assert all("accuracy" not in judge for judge in found["judges"])
    chosen = pd.read_csv("next.csv")
    chosen["label"] = ["pass", "fail"] * 7
    chosen.to_csv("next.csv", index=False)
    shares = document(capsys, *BASE, "--gold", "next.csv", "--gold-weights", "weight", "--share")
    assert set(shares) == {"bayescrowd", "source", "positive", "shares"}
    weight = chosen["weight"]
    by_hand = weight[chosen["label"] == "pass"].sum() / weight.sum()
    assert shares["shares"]["methods"]["gold-only"][1]["share"] == pytest.approx(by_hand)


def test_json_and_shares_are_those_of_the_report(folder, capsys):
    found = document(capsys, *BASE, "--gold", "gold.csv", *QUICK, "--level", "0.8")
    verdicts = bc.read_verdicts("verdicts.csv", abstentions=["unsure"])
    gold = bc.read_truth("gold.csv", verdicts.annotations, name="gold")
    report = bc.panel_report(verdicts, gold, most_dropped=0, level=0.8)
    assert found["positive"] == "pass"
    assert found["level"] == 0.8
    assert found["summary"] == report.summary
    assert [task["label"] for task in found["tasks"]] == report.labels.to_list()
    share = found["shares"]["methods"]["post-stratified"][1]
    assert share["class"] == "pass"
    assert share["lower"] == pytest.approx(report.shares.shares.loc["pass", "lower"])
    assert set(found["shares"]["methods"]) == {
        *("post-stratified", "ppi", "rogan-gladen", "gold-only")
    }
    assert found["agreement"]["judges"] == report.agreement.index.to_list()
    assert [row["judge"] for row in found["swaps"]] == report.swaps.index.to_list()
    accuracy = {row["judge"]: row["accuracy"] for row in found["judges"]}
    assert accuracy == pytest.approx(report.accuracies["accuracy"].to_dict())
    text = run(capsys, *BASE, "--gold", "gold.csv", "--share")
    row = bc.prevalence(report.estimator, gold).shares.loc["pass"]
    assert text.splitlines()[2] == (
        f"pass rate (pass): {row['share']:.1%}, 90% interval {row['lower']:.1%} to "
        f"{row['upper']:.1%}"
    )
    assert "judges by" not in text


def test_nested_object_and_wide_table_from_standard_output(folder, capsys):
    nested = {"a/1": {"x": "yes", "y": "no", "z": None}, "a/2": {"x": "yes", "y": "yes"}}
    (folder / "nested.json").write_text(json.dumps(nested))
    text = run(capsys, "nested.json", *QUICK, "--orders", "/1,/2")
    assert text.startswith("nested.json: 4 verdicts by 2 judges on 3 tasks, 2 classes; no gold")
    assert "  asked and no verdict: 1 (empty: 1)" in text
    (folder / "wide.csv").write_text("item,gpt,llama,phi\n1,yes,no,\n2,no,no,skip\n3,yes,yes,no\n")
    assert main(["panel", "wide.csv", "--abstain", "skip", *QUICK, "--out", "-"]) == 0
    captured = capsys.readouterr()
    header = captured.out.splitlines()[0]
    assert header.startswith("task,label,probability,entropy,n_votes,n_abstained")
    assert "wide.csv: 7 verdicts by 3 judges" in captured.err
    assert "never asked: 1 pair" in captured.err


def test_class_of_the_pass_rate():
    def guess(*classes, named=None):
        matrix = [[classes[0], name] for name in classes]
        return _positive(bc.Annotations.from_matrix(matrix), named, None)

    assert guess("fail", "pass") == "pass"
    assert guess("Correct", "Wrong", "Partly") == "Correct"
    assert guess(0, 1) == 1
    assert guess(1, 2) is None
    assert guess("yes", "true") is None
    assert guess(1, 2, named="2") == 2
    with pytest.raises(ValueError, match="no class 'z'; expected one of a, b"):
        guess("a", "b", named="z")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--share"], "--share needs --gold: without gold, no interval of a share is honest"),
        (["--orders", "x,y"], "no two judges have the same name but for the endings 'x' and 'y'"),
        (["--orders", "x"], "expected two different endings"),
        (["--positive", "maybe"], "no class 'maybe'; expected one of fail, pass"),
        (["--gold", "none.csv"], "none.csv: there is no such file"),
        (["--level", "1"], "expected a number between 0 and 1"),
        (["--suggest", "0", "x.csv"], "--suggest N FILE: '0': expected an integer of at least 1"),
        (["--suggest", "61", "x.csv"], "--suggest 61: 60 tasks without gold"),
        (["--suggest", "2", "-"], "--suggest writes to a file"),
        (["--plot", "x.txt"], "x.txt: expected a name that ends in .png, .pdf, .svg"),
        (["--gold-weights", "w"], "are about --gold, which is not given"),
        (["--out", "-", "--json"], "only one of --out -, --judges - and --json can print"),
        (["--gold", "gold.csv", "--share", "--out", "x.csv"], "--share prints shares only"),
        (["--gold", "gold.csv", "--gold-weights", "label"], "the weight 'fail' of task 10 is"),
        (["--gold", "gold.csv", "--out", "gold.csv"], "gold.csv: named twice"),
        (["--gold-columns", "a"], "expected the two names TASK,LABEL"),
    ],
)
def test_bad_input_in_one_line(folder, capsys, arguments, message):
    assert message in refusal(capsys, *BASE, *arguments)


def test_positions_need_two_orders_and_two_classes(folder, capsys):
    (folder / "other.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,y\n2,b,y\n")
    assert "no judge was asked in two orders" in refusal(capsys, "other.csv", "--positions")
    assert "3 classes; expected 2" in refusal(capsys, "verdicts.csv", "--positions", *QUICK)
