"""`bayescrowd compare`: ranks models by leave-one-out prediction; bad input in one line."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import compare, main
from bayescrowd.posterior import sample
from bayescrowd.posterior.container import assemble, dataset_of

LEVELS = {
    "dawid_skene": -2.0,
    "hierarchical_dawid_skene": -1.99,
    "one_coin": -2.5,
    "mace": -3.0,
    "task_subtypes": -2.2,
}
"""Log density of each task's labels, about, under each model."""


def posterior_of(name, data, **options):
    """Draws that predict as well as LEVELS says; leaving tasks out hardly changes anything."""
    rng = np.random.default_rng(list(LEVELS).index(name))
    draws = ("chain", "draw")
    values = LEVELS[name] + rng.normal(0, 0.05, size=(2, 200, data.n_tasks))
    values += rng.normal(0, 0.1, size=data.n_tasks)
    if name == "mace":
        values[0, :5, 7] -= 40.0  # a few draws that decide about one task
    constant = {"task_code": data.task_codes, "worker_code": data.worker_codes}
    groups = {
        "posterior": {"rate": (draws, rng.normal(size=(2, 200)))},
        "log_likelihood": {"labels": ((*draws, "task"), values)},
        "constant_data": {key: (("judgement",), codes) for key, codes in constant.items()},
        "observed_data": {"label": (("judgement",), data.label_codes)},
    }
    datasets = {key: dataset_of(group) for key, group in groups.items()}
    return assemble(datasets, attrs={"method": "gibbs"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sample, "sample_posterior", posterior_of)
    data = bc.simulate.crowd(60, 8, 2, labels_per_task=5, accuracy=0.75, seed=5)
    data.annotations.to_frame().to_csv("labels.csv", index=False)
    return tmp_path


def refusal(capsys, *arguments):
    assert main(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


def test_models_are_ranked(folder, capsys):
    assert main(["compare", "labels.csv", "--out", "models.csv", "--plot", "models.png"]) == 0
    captured = capsys.readouterr()
    assert "unreliable (Pareto k above 0.7; mace: 1 of 60)" in captured.err
    lines = [" ".join(line.split()) for line in captured.out.splitlines()]
    assert lines[0] == "labels.csv: 300 labels of 60 tasks by 8 workers, 2 classes"
    places = [i for i, line in enumerate(lines) if line.split(" ")[0] in LEVELS]
    table = pd.read_csv("models.csv")
    assert [lines[i].split(" ")[0] for i in places[:5]] == table["model"].tolist()
    best, second = table["model"][:2]
    assert {best, second} == {"dawid_skene", "hierarchical_dawid_skene"}
    assert f"{best} predicts best, but not clearly better than {second}." in lines
    # sixty tasks, half a nat each
    assert table.set_index("model").loc["one_coin", "elpd"] == pytest.approx(-150, abs=3)
    assert (folder / "models.png").read_bytes()[:4] == b"\x89PNG"


def test_json(folder, capsys):
    assert main(["compare", "labels.csv", "--models", "one-coin,dawid_skene", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first, second = document["models"]
    assert (first["model"], second["model"]) == ("dawid_skene", "one_coin")
    assert first["elpd_diff"] == 0
    assert second["elpd_diff"] == pytest.approx(-30, abs=3)
    assert second["n_bad"] == 0
    assert first["weight"] + second["weight"] == pytest.approx(1)
    assert first["method"] == "gibbs"
    expected = "dawid_skene predicts best, by more than two standard errors."
    assert document["conclusion"] == expected


def test_one_model_has_no_rival(folder, capsys):
    assert main(["compare", "labels.csv", "--models", "one_coin", "--out", "-"]) == 0
    captured = capsys.readouterr()
    assert pd.read_csv(io.StringIO(captured.out))["model"].tolist() == ["one_coin"]
    assert "one_coin is the only model" in captured.err


def test_small_differences_are_not_clear():
    table = pd.DataFrame(
        {"elpd_diff": [0.0, -3.0, -9.0, -9.0], "dse": [0.0, 0.1, 5.0, 4.0]}, index=list("abcd")
    )
    assert compare._conclusion(table) == "a predicts best, but not clearly better than b, c."


@pytest.mark.slow
def test_real_models_are_ranked(tmp_path, monkeypatch, capsys):
    """Labels drawn with confusion matrices that one number per worker cannot describe."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    says_one = np.where(truth[:, None] == 1, 0.95, np.linspace(0.1, 0.6, 10))
    labels = (rng.random((200, 10)) < says_one).astype(int)
    bc.Annotations.from_matrix(labels).to_frame().to_csv("labels.csv", index=False)
    models = ["--models", "dawid_skene,one_coin", "--chains", "2", "--draws", "300"]
    assert main(["compare", "labels.csv", *models, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["models"]
    assert first["model"] == "dawid_skene"
    assert second["elpd_diff"] < -4 * second["dse"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["labels.csv", "--models", "probit"],
            "no model 'probit'; expected one of ability_dawid_skene",
        ),
        (["labels.csv", "--models", "mace,mace"], "a model is named twice"),
        (["labels.csv", "--draws", "0"], "argument --draws: '0': expected an integer of at least"),
        (["labels.csv", "--label", "answer"], "answer"),
        (["labels.csv", "--out", "nowhere/models.csv"], "there is no folder"),
        (["labels.csv", "--out", "-", "--json"], "only one of --out - and --json can print"),
        (["labels.csv", "--plot", "models.gif"], "models.gif: expected a name that ends in .png"),
        (["absent.csv"], "absent.csv"),
        (["empty.csv"], "empty.csv"),
    ],
)
def test_bad_input_in_one_line(folder, capsys, arguments, message):
    (folder / "empty.csv").touch()
    assert message in refusal(capsys, *arguments)
    assert {path.name for path in folder.iterdir()} == {"labels.csv", "empty.csv"}
