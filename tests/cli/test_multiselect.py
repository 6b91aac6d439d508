"""`bayescrowd multiselect`: the shopping list, its files, and every bad input in one line."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 3))
    spread = np.array([0.3, 1.0, 1.0])
    values = truth[:, :, None] + spread[:, None] * rng.normal(size=(60, 3, 2))
    place = np.array(list(np.ndindex(values.shape)))
    names = np.array(["round", "bright", "old"])
    judgements = pd.DataFrame(
        {"object": place[:, 0], "attribute": names[place[:, 1]], "value": values.ravel()}
    )
    judgements.to_csv("judgements.csv", index=False)
    target = pd.DataFrame({"object": range(60), "target": truth @ [2.0, 1.0, 0.0]})
    target.to_csv("targets.csv", index=False)
    pd.DataFrame({"attribute": names, "cost": [4, 1, 1]}).to_csv("costs.csv", index=False)
    return tmp_path


def refused(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main(["multiselect", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


BOTH = ("judgements.csv", "targets.csv")


def test_shopping_list_is_that_of_the_estimator(folder, capsys):
    options = ["--budget", "8", "--costs", "costs.csv", "--draws", "20"]
    files = ["--out", "list.csv", "--plot", "loss.png"]
    assert main(["multiselect", *BOTH, *options, *files]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    judgements = pd.read_csv("judgements.csv").astype({"object": str})
    target = pd.read_csv("targets.csv").astype({"object": str}).set_index("object")["target"]
    costs = pd.read_csv("costs.csv").set_index("attribute")["cost"]
    est = bc.MultiSelection(8, costs=costs).fit(judgements, target)
    expected = est.shopping_list().reset_index()
    pd.testing.assert_frame_equal(pd.read_csv("list.csv"), expected, check_dtype=False)
    lines = [" ".join(line.split()) for line in captured.out.splitlines()]
    assert lines[0] == "judgements.csv: 360 judgements of 3 attributes of 60 objects"
    for row in expected.itertuples():
        assert any(line.startswith(f"{row.attribute} {row.times} {row.cost:g} ") for line in lines)
    assert any(line.startswith("expected mean squared error: ") for line in lines)
    assert f"projected from moments: {est.projected_loss_.iloc[-1]:.4g};" in captured.out
    assert (folder / "loss.png").read_bytes()[:4] == b"\x89PNG"


def test_json(folder, capsys):
    assert main(["multiselect", *BOTH, "--budget", "5", "--draws", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(row["times"] for row in found["shopping_list"]) == found["spent"] == 5
    interval = found["posterior_loss"]
    assert interval["lower"] < interval["mean"] < interval["upper"]
    assert [row["budget"] for row in found["losses"]] == list(range(6))
    assert found["losses"][-1]["projected"] == found["projected_loss"]
    assert found["losses"][-1]["upper"] == interval["upper"]
    assert {row["attribute"] for row in found["attributes"]} == {"round", "bright", "old"}


def test_without_an_interval(folder, capsys):
    for options in (["--draws", "0"], ["--average", "median"]):
        assert main(["multiselect", *BOTH, "--budget", "5", *options, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["posterior_loss"] is None


def test_nothing_to_buy(folder, capsys):
    pd.DataFrame({"object": range(60), "target": 1.0}).to_csv("flat.csv", index=False)
    assert main(["multiselect", BOTH[0], "flat.csv", "--budget", "5", "--draws", "0"]) == 0
    assert "nothing to buy" in capsys.readouterr().out


def test_an_infeasible_projection_is_never_shown_as_0(folder, capsys):
    table = pd.read_csv("judgements.csv")
    again = table.assign(attribute=table["attribute"] + ", again")
    pd.concat([table, again]).to_csv("twice.csv", index=False)
    options = ["--budget", "12", "--method", "scoring", "--draws", "10"]
    assert main(["multiselect", "twice.csv", BOTH[1], *options, "--out", "list.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "treats attributes as uncorrelated" in captured.err
    assert captured.err.endswith("--method full accounts for correlations\n")
    assert "projected from moments: infeasible; without any judgement" in captured.out
    assert "expected mean squared error: " in captured.out
    assert pd.read_csv("list.csv")[["adds", "share"]].isna().all(axis=None)
    assert main(["multiselect", "twice.csv", BOTH[1], *options, "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert found["projected_loss"] is None
    assert "treats attributes as uncorrelated" in found["projection_problem"]
    assert found["losses"][-1]["projected"] is None
    assert found["losses"][0]["projected"] > 0
    assert {row["share"] for row in found["shopping_list"]} == {None}
    assert main(["multiselect", *BOTH, "--budget", "3", "--draws", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["projection_problem"] is None


def test_a_large_budget_is_announced_and_reported_in_short(folder, capsys):
    options = ["--budget", "25000", "--draws", "3", "--json"]
    assert main(["multiselect", *BOTH, *options]) == 0
    captured = capsys.readouterr()
    announced = r"bayescrowd: choosing up to 25,000 judgements one by one among 3 attributes: "
    first, *warned = captured.err.splitlines()
    assert re.fullmatch(announced + r"about [\d,]+ s and 0\.0 GB", first)
    # The target is the attributes' own sum, and from many judgements 60 objects know no better.
    assert ["projected loss is negative" in line for line in warned] == [True]
    found = json.loads(captured.out)
    assert found["spent"] == 25_000
    budgets = [row["budget"] for row in found["losses"]]
    assert len(budgets) == 1_000
    assert (budgets[0], budgets[-1]) == (0, 25_000)
    assert found["losses"][-1]["upper"] == found["posterior_loss"]["upper"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*BOTH, "--budget", "0"], "'0': expected a number above 0"),
        ([*BOTH, "--budget", "many"], "'many': expected a number above 0"),
        ([*BOTH, "--budget", "1000000000"], "buys more than 1,000,000 judgements"),
        ([*BOTH], "the following arguments are required: --budget"),
        ([*BOTH, "--budget", "0.5", "--costs", "costs.csv"], "the cheapest attribute, 'bright', c"),
        (["absent.csv", BOTH[1], "--budget", "5"], "absent.csv: there is no such file"),
        ([BOTH[0], BOTH[0], "--budget", "5"], "judgements.csv: row 3: object '0' is listed twice"),
        ([*BOTH, "--budget", "5", "--value", "score"], "no column 'score' for the value"),
        ([*BOTH, "--budget", "5", "--plot", "loss.gif"], "expected a name that ends in .png"),
        ([*BOTH, "--budget", "5", "--out", "targets.csv"], "targets.csv: named twice"),
        ([*BOTH, "--budget", "5", "--out", "list.xlsx"], "unknown extension '.xlsx'"),
        (["-", "-", "--budget", "5"], "only one file can be read from standard input"),
    ],
)
def test_bad_input_in_one_line(folder, capsys, arguments, message):
    assert message in refused(capsys, *arguments)


def test_bad_rows_in_one_line(folder, capsys):
    (folder / "bad.csv").write_text("object,attribute,value\n0,round,1\n0,round,high\n")
    line = refused(capsys, "bad.csv", BOTH[1], "--budget", "5")
    assert line == "bayescrowd: bad.csv: row 3, column 'value': 'high' is not a finite number"
    (folder / "some.csv").write_text("object,target\n0,1\n")
    line = refused(capsys, BOTH[0], "some.csv", "--budget", "5")
    assert line.startswith("bayescrowd: some.csv: ")
    assert "the target of object '1' is missing (59 in all)" in line
    rows = (folder / "targets.csv").read_text().splitlines()
    (folder / "bad.csv").write_text("\n".join([*rows[:9], "8,tall", *rows[10:]]))
    line = refused(capsys, BOTH[0], "bad.csv", "--budget", "5")
    expected = "bad.csv: row 10, column 'target': expected a finite number, not 'tall'"
    assert line == f"bayescrowd: {expected}"
    (folder / "bad.csv").write_text("attribute,cost\nround,1\nbright,0\nold,2\n")
    line = refused(capsys, *BOTH, "--budget", "5", "--costs", "bad.csv")
    assert line == "bayescrowd: bad.csv: row 3, column 'cost': expected a number above 0, not 0"


def test_existing_files_are_not_overwritten(folder, capsys):
    (folder / "list.csv").write_text("mine")
    line = refused(capsys, *BOTH, "--budget", "5", "--out", "list.csv")
    assert line == "bayescrowd: list.csv: the file exists; --force overwrites it"


def test_help(capsys):
    assert main(["multiselect", "--help"]) == 0
    assert "shopping list" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [[], ["--raw-cells"]])
def test_cells_that_spreadsheets_would_run(folder, capsys, flags):
    mark = "'" if flags else ""
    for name in ("judgements", "costs"):
        table = pd.read_csv(f"{name}.csv")
        table["attribute"] = table["attribute"].replace({"round": "'=round", "bright": "+bright"})
        table.to_csv(f"{name}.csv", index=False)
    for name in ("judgements", "targets"):
        table = pd.read_csv(f"{name}.csv", dtype={"object": str})
        table["object"] = table["object"].replace({"7": "'=7"})
        table.to_csv(f"{name}.csv", index=False)
    options = ["--budget", "8", "--costs", "costs.csv", "--draws", "0", "--out", "list.csv"]
    assert main(["multiselect", *BOTH, *options, "--json", *flags]) == 0
    bought = {row["attribute"] for row in json.loads(capsys.readouterr().out)["shopping_list"]}
    assert {f"{mark}=round", "+bright"} <= bought
    written = set(pd.read_csv("list.csv")["attribute"])
    assert written == {"'=round", "+bright" if flags else "'+bright"} | (written & {"old"})
