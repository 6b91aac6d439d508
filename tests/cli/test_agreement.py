"""`bayescrowd agreement`: measures, pairs and every bad input in one line."""

import io
import json
import os

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main

MEASURES = ["percent_agreement", "fleiss_kappa", "gwet_ac1", "krippendorff_alpha"]

GRADES = "task,worker,label\n1,a,1\n1,b,1\n2,a,2\n2,b,3\n3,a,3\n3,b,3\n4,a,1\n4,b,2\n5,a,3\n"
"""Five tasks, of which four have two labels; two of these agree."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grades.csv").write_text(GRADES)
    data = bc.simulate.crowd(80, 9, 3, labels_per_task=4, seed=2).annotations.to_frame()
    data.to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path


def refusal(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main(["agreement", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


def printed_rows(out):
    """The table that is printed, by the name of the measure."""
    lines = [line.strip() for line in out.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("measure "))
    rows = [line.rsplit(maxsplit=3) for line in lines[start : start + 5]]
    return {name: cells for name, *cells in rows}


def test_measures_are_printed(folder, capsys):
    assert main(["agreement", "labels.csv"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "labels.csv: 320 labels of 80 tasks by 9 workers, 3 classes"
    assert lines[1] == "  80 of 80 tasks with two labels or more"
    assert "agreement with 95% intervals (tasks resampled)" in lines
    rows = printed_rows(out)
    table = bc.agreement.agreement_table(bc.read_annotations("labels.csv"))
    names = ["percent agreement", "Fleiss' kappa", "Gwet's AC1", "Krippendorff's alpha (nominal)"]
    assert [*rows] == ["measure", *names]
    for name, measure in zip(names, MEASURES, strict=True):
        assert rows[name] == [f"{value:.3f}" for value in table.loc[measure]]


def test_by_hand(folder, capsys):
    assert main(["agreement", "grades.csv", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["input"]["n_compared"] == 4
    assert document["agreement"]["percent_agreement"]["value"] == 0.5
    # Labels of the four tasks: three 1, two 2 and three 3.
    kappa = (0.5 - (9 + 4 + 9) / 64) / (1 - (9 + 4 + 9) / 64)
    assert document["agreement"]["fleiss_kappa"]["value"] == pytest.approx(kappa)


@pytest.mark.parametrize(
    ("options", "published"),
    [([], 0.743), (["--metric", "ordinal"], 0.815), (["--metric", "interval"], 0.849)],
)
def test_metrics_published(folder, capsys, options, published):
    """Labels of twelve units by four observers, from Krippendorff (2011), section C."""
    columns = ["1,2,3,3,2,1,4,1,2,,,", "1,2,3,3,2,2,4,1,2,5,,3", ",3,3,3,2,3,4,2,2,5,1,"]
    columns.append("1,2,3,3,2,4,4,1,2,5,1,")
    wide = pd.DataFrame({f"observer{i}": column.split(",") for i, column in enumerate(columns)})
    wide.rename_axis("unit_id").reset_index().rename(columns={"unit_id": "task"}).to_csv(
        folder / "wide.csv", index=False
    )
    assert main(["agreement", "wide.csv", *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["metric"] == (options[1] if options else "nominal")
    value = document["agreement"]["krippendorff_alpha"]["value"]
    assert value == pytest.approx(published, abs=5e-4)


def test_classes_give_the_order(folder, capsys):
    frame = pd.read_csv(folder / "grades.csv")
    frame["label"] = frame["label"].map({1: "poor", 2: "fair", 3: "good"})
    frame.to_csv(folder / "words.csv", index=False)
    line = refusal(capsys, "words.csv", "--metric", "ordinal")
    assert line.startswith("bayescrowd: --metric ordinal: the classes 'fair', 'good', 'poor' are")
    assert line.endswith("in --classes")
    found = []
    for name, classes in (("grades.csv", "1,2,3"), ("words.csv", "poor,fair,good")):
        options = ["--metric", "ordinal", "--classes", classes, "--json"]
        assert main(["agreement", name, *options]) == 0
        found.append(json.loads(capsys.readouterr().out)["agreement"])
    assert found[0] == found[1]


def test_a_dash_stands_where_nothing_is_defined(folder, capsys):
    (folder / "once.csv").write_text("task,worker,label\n1,a,x\n2,b,y\n")
    assert main(["agreement", "once.csv"]) == 0
    rows = printed_rows(capsys.readouterr().out)
    assert [rows[name] for name in rows if name != "measure"] == [["-", "-", "-"]] * 4
    assert main(["agreement", "once.csv", "--json"]) == 0
    agreement = json.loads(capsys.readouterr().out)["agreement"]
    assert [*agreement] == MEASURES
    assert all(
        numbers == dict.fromkeys(("value", "lower", "upper")) for numbers in agreement.values()
    )


def test_one_class_used(folder, capsys):
    (folder / "same.csv").write_text("task,worker,label\n1,a,x\n1,b,x\n2,a,x\n2,b,x\n")
    assert main(["agreement", "same.csv", "--classes", "x,y"]) == 0
    rows = printed_rows(capsys.readouterr().out)
    assert rows["percent agreement"][0] == rows["Gwet's AC1"][0] == "1.000"
    assert rows["Fleiss' kappa"] == rows["Krippendorff's alpha (nominal)"] == ["-", "-", "-"]


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv", "pairs.jsonl.gz", "pairs.parquet"])
def test_pairs_are_written(folder, capsys, name):
    assert main(["agreement", "labels.csv", "--pairwise", name]) == 0
    assert f"{name}: 36 pairs of workers written\n" in capsys.readouterr().out
    expected = bc.agreement.pair_table(bc.read_annotations("labels.csv"))
    readers = {"pairs.csv": pd.read_csv, "pairs.tsv": lambda path: pd.read_csv(path, sep="\t")}
    readers["pairs.jsonl.gz"] = lambda path: pd.read_json(path, lines=True)
    found = readers.get(name, pd.read_parquet)(name)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_pairs_on_standard_output(folder, capsys):
    assert main(["agreement", "labels.csv", "--pairwise", "-"]) == 0
    captured = capsys.readouterr()
    assert len(pd.read_csv(io.StringIO(captured.out))) == 36
    assert "Fleiss' kappa" in captured.err


def test_few_workers_are_compared_if_there_are_many(folder, capsys):
    assert main(["agreement", "labels.csv", "--pairwise", "pairs.csv", "--most", "4"]) == 0
    assert "6 pairs of workers written, of the 4 workers with the" in capsys.readouterr().out
    table = pd.read_csv("pairs.csv")
    counts = pd.read_csv("labels.csv")["worker"].value_counts()
    kept = {*table["worker"], *table["other"]}
    assert len(kept) == 4
    assert counts[list(kept)].min() >= counts.drop(list(kept)).max()


def test_ids_that_a_spreadsheet_would_run_are_quoted(folder, capsys):
    (folder / "odd.csv").write_text("task,worker,label\n1,=x(),a\n1,b,b\n2,=x(),b\n2,b,b\n")
    assert main(["agreement", "odd.csv", "--pairwise", "pairs.csv"]) == 0
    assert pd.read_csv("pairs.csv").loc[0, ["worker", "other"]].tolist() == ["'=x()", "b"]
    arguments = ["--pairwise", "pairs.csv", "--force", "--raw-cells"]
    assert main(["agreement", "odd.csv", *arguments]) == 0
    assert pd.read_csv("pairs.csv").loc[0, "worker"] == "=x()"


def test_the_seed_decides_on_the_resamples(folder, capsys):
    found = []
    for seed in ("0", "0", "1"):
        assert main(["agreement", "labels.csv", "--seed", seed, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["agreement"])
    assert found[0] == found[1] != found[2]
    values = [[found[i][name]["value"] for name in MEASURES] for i in (0, 2)]
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv"], "absent.csv: there is no such file"),
        (["labels.csv", "--metric", "ratio"], "invalid choice"),
        (["words.csv", "--metric", "interval"], "--metric interval: the class 'x' is not a number"),
        (["labels.csv", "--pairwise", "-", "--json"], "only one of --pairwise - and --json"),
        (["labels.csv", "--pairwise", "labels.csv", "--force"], "labels.csv: named twice"),
        (["labels.csv", "--pairwise", "a.xlsx"], "unknown extension '.xlsx'"),
        (["labels.csv", "--pairwise", "words.csv"], "words.csv: the file exists; --force overwri"),
        (["labels.csv", "--pairwise", "absent/p.csv"], "there is no folder"),
        (["labels.csv", "--most", "0"], "expected an integer of at least 1"),
        (["labels.csv", "--seed", "x"], "expected an integer of at least 0"),
        (["labels.csv", "--task", "item"], "no column 'item' for the task"),
    ],
)
def test_bad_input_in_one_line(folder, capsys, arguments, message):
    (folder / "words.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n")
    assert message in refusal(capsys, *arguments)
    assert sorted(os.listdir()) == ["grades.csv", "labels.csv", "words.csv"]
