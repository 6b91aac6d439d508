"""`bayescrowd bench`: tables, JSON, pictures; bad input in one line."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main
from bayescrowd.cli.bench import _fit_width

ROOT = Path(__file__).parents[2]
FAST = ("--methods", "majority-vote,DAWIDSKENE")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("ants", "bees")):
        data = bc.simulate.crowd(40, 6, 2, accuracy=0.7, seed=seed)
        home = tmp_path / "crowds" / name
        home.mkdir(parents=True)
        data.annotations.to_frame().to_csv(home / "labels.csv", index=False)
        data.truth.rename_axis("task").rename("label").to_csv(home / "truth.csv")
    (tmp_path / "crowds" / "SOURCES.md").write_text("ignored")
    return tmp_path / "crowds"


def refusal(capsys, *arguments):
    assert main(["bench", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


def document(capsys, *arguments):
    assert main(["bench", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_tables_table_file_and_picture(folder, capsys):
    assert main(["bench", "crowds", *FAST, "--out", "bench.csv", "--plot", "bench.png"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[0] == "crowds: 2 crowds, 3 methods; differences are to AutoAggregator"
    table = pd.read_csv("bench.csv").set_index(["crowd", "method"])
    assert table.shape == (6, 11)
    start = lines.index("error (%)")
    head, *rows = (line.split() for line in lines[start + 1 : start + 5])
    assert head == ["crowd", "MajorityVote", "DawidSkene", "AutoAggregator"]
    for crowd, *cells in rows[:2]:
        assert cells == [f"{100 * table.loc[(crowd, m), 'error']:.1f}" for m in head[1:]]
    means = [table.xs(m, level="method")["error"].mean() for m in head[1:]]
    assert rows[2] == ["mean", *(f"{100 * mean:.1f}" for mean in means)]
    for title in ("log loss (nats)", "expected calibration error (%)", "seconds"):
        assert title in lines
    assert "bench.csv: 6 rows written" in lines
    assert Path("bench.png").read_bytes()[:4] == b"\x89PNG"


def test_json(folder, capsys):
    found = document(capsys, "crowds", *FAST)
    assert set(found) == {
        "bayescrowd",
        "folder",
        "reference",
        "least_probability",
        "crowds",
        "methods",
        "results",
    }
    assert (found["reference"], found["least_probability"]) == ("AutoAggregator", 1e-6)
    crowd = found["crowds"][0]
    assert (crowd["crowd"], crowd["n_tasks"], crowd["n_scored"]) == ("ants", 40, 40)
    assert len(crowd["effective_votes"]) == 2
    names = [method["method"] for method in found["methods"]]
    assert names == ["MajorityVote", "DawidSkene", "AutoAggregator"]
    by_place = {(row["crowd"], row["method"]): row for row in found["results"]}
    for method in found["methods"]:
        name = method["method"]
        errors = [by_place[c, name]["error"] for c in ("ants", "bees")]
        gaps = [by_place[c, name]["error_difference"] for c in ("ants", "bees")]
        assert method["error"] == pytest.approx(sum(errors) / 2)
        assert method["error_difference"] == pytest.approx(sum(gaps) / 2)
        # the standard error of the mean of two numbers is half their distance
        assert method["error_difference_se"] == pytest.approx(abs(gaps[0] - gaps[1]) / 2)
        assert (method["n_failed"], type(method["n_worse_than_vote"])) == (0, int)
    assert by_place["ants", "AutoAggregator"]["error_difference"] == 0
    assert by_place["ants", "DawidSkene"]["failure"] is None


def test_one_crowd_has_no_error_over_crowds(folder, capsys):
    for path in (folder / "bees").iterdir():
        path.unlink()
    found = document(capsys, "crowds", *FAST)
    assert [crowd["crowd"] for crowd in found["crowds"]] == ["ants"]
    assert found["methods"][0]["error_difference_se"] is None


def test_gzipped_labels_are_the_same_crowd(folder, capsys):
    first = document(capsys, "crowds", *FAST)
    path = folder / "ants" / "labels.csv"
    Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert "labels.csv.gz is there too" in refusal(capsys, "crowds")
    path.unlink()
    again = document(capsys, "crowds", *FAST)
    assert [row["error"] for row in first["results"]] == [row["error"] for row in again["results"]]


def test_a_journal_is_continued(folder, capsys):
    first = document(capsys, "crowds", *FAST, "--journal", "j.jsonl")
    size = os.path.getsize("j.jsonl")
    assert document(capsys, "crowds", *FAST, "--journal", "j.jsonl") == first  # seconds, too
    assert os.path.getsize("j.jsonl") == size


def test_every_exported_aggregator_is_measured_by_default(folder, capsys):
    from bayescrowd.experiments.methods import exported_methods

    found = document(capsys, "crowds")
    assert sorted(method["method"] for method in found["methods"]) == exported_methods()


def test_reference_is_measured_and_may_be_chosen(folder, capsys):
    found = document(capsys, "crowds", "--methods", "DawidSkene", "--reference", "wawa")
    names = [method["method"] for method in found["methods"]]
    assert names == ["MajorityVote", "DawidSkene", "Wawa"]
    assert found["methods"][2]["error_difference"] == 0


def test_own_method_of_the_current_directory(folder, tmp_path):
    """In a process of its own, as a user runs it."""
    (tmp_path / "mine.py").write_text(
        "import bayescrowd as bc\n"
        "class Mine(bc.MajorityVote):\n"
        "    pass\n"
        "class Fails:\n"
        "    def fit(self, table):\n"
        "        raise KeyError('w7')\n"
    )
    arguments = ["crowds", *FAST, "--method", "mine:Mine", "--method", "mine:Fails"]
    done = subprocess.run(
        [sys.executable, "-m", "bayescrowd", "bench", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "  ants, Fails: KeyError: 'w7'" in done.stdout.splitlines()
    assert "failed" in done.stdout.splitlines()


def test_help_names_every_method(capsys):
    assert main(["bench", "--help"]) == 0
    text = capsys.readouterr().out
    for name in ("MajorityVote", "AutoAggregator", "SelectiveDawidSkene"):
        assert name in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "bayescrowd: nowhere: there is no such folder"),
        (["crowds/ants"], "bayescrowd: crowds/ants: there is no crowd in it; expected NAME/labels"),
        (["crowds/SOURCES.md"], "this is a file; expected a folder with one folder per crowd"),
        (["crowds", "--methods", "DawidSkeen"], "no method 'DawidSkeen'; did you mean DawidSkene?"),
        (["crowds", "--methods", "qqqq"], "no method 'qqqq'; expected one of AutoAggregator, "),
        (["crowds", "--methods", "wawa,Wawa"], "a method is named twice"),
        (["crowds", "--reference", "vote"], "no method 'vote'; "),
        (["crowds", "--method", "absent_module:Class"], "importing absent_module failed"),
        (["crowds", "--method", "json"], "'json': expected package.module:Class"),
        (["crowds", "--method", "json:JSONDecoder"], "neither fit nor fit_predict_proba"),
        (["crowds", "--plot", "bench.gif"], "expected a name that ends in .png"),
        (["crowds", "--out", "-", "--json"], "only one of --out - and --json can print"),
        (["crowds", "--journal", "crowds/SOURCES.md"], "crowds/SOURCES.md: this is not a journal"),
    ],
)
def test_bad_usage_is_one_line(folder, capsys, arguments, message):
    assert message in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("truth.csv", None, "crowds/bees/truth.csv: there is no such file"),
        ("truth.csv", "task,label\nz1,0\nz2,1\n", "none of its 2 tasks (such as 'z1') is one of"),
        ("truth.csv", "task,remark\n1,0\n", "crowds/bees/truth.csv"),
        ("labels.csv", "task,label\n1,0\n", "crowds/bees/labels.csv"),
        ("labels.csv", "task,worker,label\n1,x,0\n", "column 'label' holds one class only (0)"),
    ],
)
def test_bad_files_are_one_line(folder, capsys, file, content, message):
    path = folder / "bees" / file
    path.unlink() if content is None else path.write_text(content)
    assert message in refusal(capsys, "crowds", *FAST)


def test_truth_of_unlabelled_tasks_is_left_out_with_a_warning(folder, capsys):
    with open(folder / "bees" / "truth.csv", "a") as file:
        file.write("9999,0\n")
    assert main(["bench", "crowds", *FAST, "--json"]) == 0
    captured = capsys.readouterr()
    assert "crowds/bees/truth.csv: 1 of 41 truth tasks has no labels" in captured.err
    assert json.loads(captured.out)["crowds"][1]["n_scored"] == 40


def test_wide_tables_come_in_blocks():
    rows = [["crowd", "aaaa", "bbbb", "cccc"], ["x", "1", "2", "3"]]
    blocks = _fit_width(rows, width=20).splitlines()
    assert [line.split() for line in blocks] == [
        ["crowd", "aaaa", "bbbb"],
        ["x", "1", "2"],
        ["crowd", "cccc"],
        ["x", "3"],
    ]
