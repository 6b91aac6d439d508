"""`bayescrowd budget`: compares, plans, writes, resumes; every bad input in one line."""

import json
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.budgeted.policies import baselines
from bayescrowd.cli import main
from bayescrowd.cli.budget import _grid
from bayescrowd.cli.budget_runs import POLICIES
from bayescrowd.cli.labelled_tables import read_labelled_table
from bayescrowd.posterior.container import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """150 fruits: `colour` tells the kind, `weight` a little, `shop` nothing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    kind = rng.choice(["berry", "pea"], 150)
    is_odd = rng.random(150) < 0.1
    frame = pd.DataFrame(
        {
            "colour": np.where((kind == "berry") ^ is_odd, "red", "green"),
            "weight": (kind == "berry") + rng.normal(size=150).round(3),
            "shop": rng.choice(["a", "b", "c"], 150),
            "country": "here",
            "kind": kind,
        }
    )
    frame.to_csv(tmp_path / "fruit.csv", index=False)
    return tmp_path


SIMULATE = ["budget", "simulate", "fruit.csv", "--target", "kind", "--features", "1"]
PLAN = ["budget", "plan", "fruit.csv", "--target", "kind", "--features", "1"]
QUICK = ["--repeats", "4", "--jobs", "1"]
TWO = ["--policy", "round-robin,BudgetedSelection"]


def refused(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main([*arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


def test_files_and_document_hold_what_budget_curve_finds(folder, capsys):
    command = [*SIMULATE, "--budget", "20,10", *TWO, *QUICK]
    outputs = ["--out", "runs.csv", "--plot", "curves.png", "--resume", "journal.jsonl"]
    assert main([*command, *outputs, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    table = read_labelled_table("fruit.csv", target="kind")
    curve = bc.budget_curve(
        {"budgeted-selection": bc.BudgetedSelection, "round-robin": bc.RoundRobin},
        table,
        [10, 20],
        1,
        repeats=4,
        n_jobs=1,
        all_data=True,
    )
    runs = pd.read_csv("runs.csv")
    np.testing.assert_allclose(runs["error"], curve["error"])
    assert runs["selected"].tolist() == [names[0] for names in curve["selected"]]
    assert list(runs["policy"].unique()) == ["budgeted-selection", "round-robin", "all data"]
    errors = curve[curve["policy"] == "round-robin"].pivot(
        index="repeat", columns="budget", values="error"
    )
    ours = curve[curve["policy"] == "budgeted-selection"].pivot(
        index="repeat", columns="budget", values="error"
    )
    assert document["against"] == "budgeted-selection"
    by_place = {(row["policy"], row["budget"]): row for row in document["differences"]}
    row = by_place["round-robin", 10]
    assert row["difference"] == pytest.approx((errors[10] - ours[10]).mean())
    assert row["standard_error"] == pytest.approx((errors[10] - ours[10]).std() / 2)
    assert document["input"]["features"] == ["colour", "weight", "shop"]
    expected = np.quantile(table.features["weight"], [0.2, 0.4, 0.6, 0.8])
    np.testing.assert_allclose(document["input"]["cuts"]["weight"], expected)
    assert (folder / "curves.png").read_bytes()[:4] == b"\x89PNG"
    # from the journal alone, and readable
    before = (folder / "journal.jsonl").read_bytes()
    assert main([*command, "--resume", "journal.jsonl"]) == 0
    assert (folder / "journal.jsonl").read_bytes() == before
    said = capsys.readouterr().out
    assert "fruit.csv: 150 rows, 3 features, 2 classes of kind" in said
    assert "left out, having a single value: country" in said
    assert "read in intervals, cut at quantiles: weight" in said
    assert f"{curve.loc[curve['policy'] == 'all data', 'error'].mean():.3f} ±" in said


def test_the_posterior_is_that_of_the_last_run(folder, capsys):
    command = [*SIMULATE, "--budget", "20,10", "--policy", "b-leafs", "--repeats", "3"]
    (folder / "fit.nc").write_text("mine")
    assert "fit.nc: the file exists; --force overwrites it" in refused(
        capsys, *command, "--posterior", "fit.nc"
    )
    assert (folder / "fit.nc").read_text() == "mine"
    assert main([*command, "--jobs", "2", "--posterior", "fit.nc", "--force", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    written = document["posterior"]
    assert written.pop("verdict").startswith("Nothing speaks against these draws")
    assert written == {"file": "fit.nc", "policy": "b-leafs", "budget": 20, "repeat": 2}
    post = load("fit.nc")
    table = read_labelled_table("fruit.csv", target="kind")
    options = {"repeats": 3, "n_jobs": 1}
    curve = bc.budget_curve({"b-leafs": bc.BLeafs}, table, [20], 1, **options)
    last = curve[curve["repeat"] == 2].iloc[0]
    assert post.attrs["policy"] == "BLeafs"
    assert post.attrs["budget"] == 20
    assert post.attrs["spent"] == last["spent"]
    assert post.attrs["selected"] == repr(last["selected"][0])
    assert post.observed_data.sizes["judgement"] == last["spent"]
    # read from a journal, the run is played again, and the same
    outputs = ["--resume", "journal.jsonl", "--posterior", "again.nc"]
    for _ in range(2):
        assert main([*command, "--jobs", "1", *outputs, "--force"]) == 0
    said = capsys.readouterr().out
    assert (
        "again.nc: posterior of b-leafs with a budget of 20, repeat 2 (the last), written" in said
    )
    again = load("again.nc")
    np.testing.assert_array_equal(again.posterior["conditional"], post.posterior["conditional"])


def test_runs_can_be_printed(folder, capsys):
    command = [*SIMULATE, "--budget", "10", "--policy", "round-robin", *QUICK, "--out", "-"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("policy,n_features,budget,repeat,error,spent,selected\n")
    assert captured.out.count("\n") == 1 + 2 * 4
    assert "test error with 1 feature" in captured.err


def test_costs_reach_the_runs(folder, capsys):
    command = [*SIMULATE, "--budget", "14", "--policy", "round-robin", *QUICK]
    assert main([*command, "--costs", "colour=5", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["costs"] == {"colour": 5.0}
    assert document["errors"][0]["spent"] == 14  # two of each at 5 + 1 + 1
    table = read_labelled_table("fruit.csv", target="kind")
    plan = Namespace(features=1, labels=3, costs={"colour": 4.0})
    assert _grid(plan, table)[0] == 5 * 3 * 2  # five observations at a mean price of two a label


def test_a_published_table_needs_no_target(folder, capsys, monkeypatch):
    def load_table(name):
        fruit = read_labelled_table("fruit.csv", target="kind")
        return fruit._replace(name=name, source="a journal")

    monkeypatch.setattr("bayescrowd.datasets.registry.load_table", load_table)
    command = ["budget", "simulate", "nursery", "--features", "1", "--budget", "10"]
    assert main([*command, "--ignore", "shop", "--policy", "round-robin", *QUICK]) == 0
    assert "nursery: 150 rows, 2 features, 2 classes\n" in capsys.readouterr().out
    assert "is published with its classes" in refused(capsys, *command, "--target", "kind")
    assert "has no such column" in refused(capsys, *command, "--ignore", "price")
    command[2] = "fruit.csv"
    assert "--target is missing: which column of fruit.csv" in refused(capsys, *command)


def test_plan_answers(folder, capsys):
    command = [*PLAN, "--within", "0.1", "--budget", "4,12,30", *QUICK]
    assert main([*command, "--plot", "plan.svg", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "reached"
    assert 0 <= document["lower"] <= document["budget"] <= (document["upper"] or np.inf)
    assert [row["budget"] for row in document["gaps"]] == [4, 12, 30]
    assert (folder / "plan.svg").read_text().startswith("<?xml")


def test_plan_says_when_a_pilot_is_too_small(folder, capsys):
    # 30 test rows: gaps of a few per mille cannot be told from four splits
    assert main([*PLAN, "--within", "0.001", "--budget", "4,8", *QUICK]) == 0
    assert "The pilot is too small to answer: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--budget", "0"], "'0': expected a number above 0"),
        (["--budget", "ten"], "'ten': expected a number above 0"),
        (["--budget", "nan"], "'nan': expected a number above 0"),
        (["--budget", "5,5"], "a budget is named twice"),
        (["--budget", "4", "--labels", "5"], "--budget 4: expected at least 5"),
        (["--features", "4"], "--features 4: fruit.csv has 3 features"),
        (["--features", "0"], "expected an integer of at least 1"),
        (["--policy", "magic"], "no policy 'magic'; expected one of budgeted-selection,"),
        (["--policy", "b-leafs,BLeafs"], "a policy is named twice"),
        (["--target", "sort"], "fruit.csv: there is no column 'sort'; expected one of"),
        (["--target", "country"], "column 'country' has one class only, 'here'"),
        (["--target", "weight"], "column 'weight' has 150 distinct values; expected a class"),
        (["--ignore", "price"], "there is no column 'price'"),
        (["--costs", "colour"], "'colour': expected FEATURE=COST with a cost above 0"),
        (["--costs", "colour=0"], "'colour=0': expected FEATURE=COST with a cost above 0"),
        (["--costs", "colour=1,colour=2"], "feature 'colour' is named twice"),
        (["--costs", "price=2"], "--costs price: fruit.csv has no such feature; expected one of"),
        (["--costs", "colour=12,weight=12,shop=12"], "--budget 10: expected at least 12"),
        (["--noise", "uniform"], "--noise uniform needs --rate, the share of"),
        (["--rate", "0.2"], "--rate 0.2 needs --noise, the kind of"),
        (["--noise", "biased", "--rate", "1.2"], "'1.2': expected 0 to 1"),
        (["--model", "magic"], "no model 'magic'"),
        (["--out", "runs.doc"], "unknown extension '.doc'"),
        (["--out", "no/runs.csv"], "no/runs.csv: there is no folder"),
        (["--out", "fruit.csv"], "fruit.csv: named twice"),
        (["--plot", "curves.txt"], "curves.txt: expected a name that ends in .png"),
        (["--posterior", "fit.csv"], "fit.csv: expected a name that ends in .nc, .nc4, .netcdf"),
        (["--posterior", "no/fit.nc"], "no/fit.nc: there is no folder"),
        (["--out", "-", "--json"], "only one of --out - and --json"),
        (["--resume", "no/journal"], "no/journal: there is no folder"),
        (["--resume", "other.jsonl"], "this is not a line of the journal"),
    ],
)
def test_refused(folder, capsys, change, message):
    (folder / "other.jsonl").write_text("hello\n")
    given = {"--budget": "10"}
    assert message in refused(
        capsys,
        *SIMULATE,
        *(x for k, v in given.items() if k not in change for x in (k, v)),
        *change,
    )
    assert sorted(path.name for path in folder.iterdir()) == ["fruit.csv", "other.jsonl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "none.csv: there is no such file"),
        ("", "none.csv: the file is empty"),
        ("a,kind\n", "there are no rows below the header"),
        ("a,kind\n1,x\n2,\n", "row 3, column 'kind': the class is missing"),
        ("a,kind\n1,x\n1,y\n", "no column besides 'kind' has two or more values"),
        ("a,kind\n1,x\n-inf,y\n", "row 3, column 'a': -inf is not a finite number"),
        ("a,kind\n" + "".join(f"u{i},{i % 2}\n" for i in range(30)), "--ignore a leaves it out"),
    ],
)
def test_tables_refused(folder, capsys, content, message):
    if content is not None:
        (folder / "none.csv").write_text(content)
    arguments = ["none.csv", "--target", "kind", "--features", "1", "--budget", "5"]
    assert message in refused(capsys, "budget", "simulate", *arguments)


def test_within_must_be_a_share(folder, capsys):
    assert "'2': expected a share between 0 and 1" in refused(capsys, *PLAN, "--within", "2")
    few = [*PLAN, "--within", "0.1", "--repeats", "3"]
    assert "--repeats 3: expected at least 4" in refused(capsys, *few)


def test_numbers_written_as_such_are_numbers(folder):
    (folder / "t.csv").write_text("a,b,c,kind\n1.5,007,?,x\n2,008,3,y\n,009,4,x\n")
    table = read_labelled_table("t.csv", target="kind", missing=["?"])
    assert table.features["a"].tolist()[:2] == [1.5, 2.0]
    assert np.isnan(table.features["a"][2])
    assert table.features["c"].tolist()[1:] == [3, 4]


def test_every_policy_is_offered():
    assert {offer.policy for offer in POLICIES.values()} == {
        *baselines.__all__,
        "BLeafs",
        "BudgetedSelection",
    }
