"""`bayescrowd report`: the file, the printed headline, and every bad input in one line."""

import json

import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A crowd with its truth, of which half is called gold."""
    monkeypatch.chdir(tmp_path)
    data = bc.simulate.crowd(60, 8, 2, labels_per_task=4, accuracy=0.8, seed=4)
    data.annotations.to_frame().to_csv("labels.csv", index=False)
    truth = pd.DataFrame({"task": data.truth.index, "label": data.truth})
    truth.iloc[:20].to_csv("gold.csv", index=False)
    truth.to_csv("truth.csv", index=False)
    return tmp_path


def refusal(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main(["report", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


def test_file_is_what_python_writes(folder, capsys):
    assert main(["report", "labels.csv", "--drop", "0", "--method", "wawa"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    est = bc.Wawa().fit(bc.read_annotations("labels.csv"))
    document = bc.report(est, most_dropped=0, source="labels.csv").document
    lines = captured.out.splitlines()
    assert lines[0] == "labels.csv: 240 labels of 60 tasks by 8 raters, 2 classes."
    assert f"{document.headline.n_settled} of 60 tasks settled" in lines[1]
    assert f"expected accuracy {document.headline.accuracy.value:.1%}" in lines[2]
    assert lines[-1].startswith("report.html: report written")
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "<title>Crowd report: labels.csv</title>" in html
    assert "Wawa(seed=0)" in html


def test_gold_truth_and_json(folder, capsys):
    command = ["report", "labels.csv", "--gold", "gold.csv", "--truth", "truth.csv", "--drop", "0"]
    options = ["--out", "my.html", "--title", "A <title>", "--settled", "0.8", "--json"]
    assert main([*command, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"] == "my.html"
    assert found["settled_at"] == 0.8
    assert found["measured_accuracy"]["lower"] < found["measured_accuracy"]["value"]
    html = (folder / "my.html").read_text(encoding="utf-8")
    assert "On the 40 tasks of the truth" in html  # gold tasks are not scored
    assert "A &lt;title&gt;" in html
    assert "gold.csv" in html


def test_raw_cells(folder):
    frame = pd.DataFrame({"task": ["=1", "b"] * 2, "worker": list("xxyy"), "label": list("abba")})
    frame.to_csv("cells.csv", index=False)
    options = ["--drop", "0", "--method", "majority-vote"]
    assert main(["report", "cells.csv", "--out", "quoted.html", *options]) == 0
    assert main(["report", "cells.csv", "--out", "raw.html", "--raw-cells", *options]) == 0
    assert "\\u0027=1," in (folder / "quoted.html").read_text(encoding="utf-8")
    assert "\\u0027=1," not in (folder / "raw.html").read_text(encoding="utf-8")


def test_bad_input_is_one_line(folder, capsys):
    assert "there is no such file" in refusal(capsys, "nothing.csv")
    assert "--settled" in refusal(capsys, "labels.csv", "--settled", "2")
    assert "TASK,LABEL" in refusal(capsys, "labels.csv", "--gold-columns", "a")
    assert "only one of the files" in refusal(capsys, "-", "--truth", "-")
    wrong = refusal(capsys, "labels.csv", "--posterior", "truth.csv")
    assert wrong.startswith("bayescrowd: truth.csv: this is no file of posterior draws")
    assert "no such file" in refusal(capsys, "labels.csv", "--posterior", "nothing.nc")
    (folder / "report.html").touch()
    assert refusal(capsys, "labels.csv") == (
        "bayescrowd: report.html: the file exists; --force overwrites it"
    )
