"""`bayescrowd posterior`: samples, writes, draws and judges; every bad input in one line."""

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main
from bayescrowd.posterior import sample
from bayescrowd.posterior.container import group_names, group_of, load

OPTIONS = ["--chains", "2", "--draws", "150", "--warmup", "50", "--seed", "3"]


class Run(NamedTuple):
    """A run with real draws."""

    folder: Path
    printed: str
    post: Any


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run that samples; to keep the draws of each task and to predict would compile more."""
    folder = tmp_path_factory.mktemp("posterior")
    data = bc.simulate.crowd(40, 15, 2, labels_per_task=5, accuracy=0.75, seed=5)
    frame = data.annotations.to_frame()
    frame["worker"] = [f"w{worker:02d}" for worker in frame["worker"]]
    frame["label"] = np.array(["cat", "dog"])[frame["label"]]
    frame.to_csv(folder / "labels.csv", index=False)
    truth = data.truth.map({0: "cat", 1: "dog"}).rename_axis("task").rename("truth")
    truth.reset_index().to_csv(folder / "truth.csv", index=False)
    outputs = {"labels": "tasks.csv", "workers": "workers.csv", "plot": "fit.png"}
    named = [part for name, file in outputs.items() for part in (f"--{name}", str(folder / file))]
    printed, kept = io.StringIO(), []
    with pytest.MonkeyPatch.context() as patch:
        draw = sample.sample_posterior

        def keep(*arguments, **options):
            kept.append(draw(*arguments, **options))
            return kept[0]

        patch.setattr(sample, "sample_posterior", keep)
        patch.setattr("sys.stdout", printed)
        arguments = ["posterior", str(folder / "labels.csv"), *OPTIONS, *named]
        assert main([*arguments, "--truth", str(folder / "truth.csv")]) == 0
    return Run(folder, printed.getvalue(), kept[0])


@pytest.fixture
def again(run, tmp_path, monkeypatch):
    """Further runs, in a folder with labels and truth, get the draws of the first one."""
    asked = []

    def recorded(model, data, method, **options):
        asked.append((model, method, options))
        return run.post

    monkeypatch.setattr(sample, "sample_posterior", recorded)
    monkeypatch.chdir(tmp_path)
    for name in ("labels.csv", "truth.csv"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    return asked


def test_the_draws_are_those_of_the_seed(run):
    direct = bc.sample_posterior(
        bc.models.dawid_skene,
        bc.read_annotations(run.folder / "labels.csv"),
        chains=2,
        draws=150,
        warmup=50,
        seed=3,
        log_likelihood=False,
        predictive=False,
    )
    pd.testing.assert_frame_equal(bc.label_posterior(run.post), bc.label_posterior(direct))


def test_all_draws_are_written(again, run, tmp_path):
    assert main(["posterior", "labels.csv", "--out", "fit.nc"]) == 0
    loaded = load("fit.nc")
    pd.testing.assert_frame_equal(bc.label_posterior(loaded), bc.label_posterior(run.post))
    assert group_of(loaded, "posterior").equals(group_of(run.post, "posterior"))
    # a file is the place for what `compare` and the predictive checks need
    assert again[0][2]["log_likelihood"]
    assert again[0][2]["predictive"]
    assert {path.name for path in tmp_path.iterdir()} == {"labels.csv", "truth.csv", "fit.nc"}


def test_tables_hold_what_the_posterior_says(run):
    folder, _, post = run
    tasks, workers = (pd.read_csv(folder / name) for name in ("tasks.csv", "workers.csv"))
    probas = bc.label_posterior(post)
    assert list(tasks.columns) == ["task", "label", "probability", "entropy", "n_votes"]
    np.testing.assert_allclose(tasks["probability"], probas.max(axis=1))
    assert tasks["label"].tolist() == probas.idxmax(axis=1).tolist()
    assert (tasks["n_votes"] == 5).all()
    assert list(workers.columns) == ["worker", "accuracy", "lower", "upper", "n_labels"]
    np.testing.assert_allclose(workers["lower"], bc.worker_posterior(post)["lower"])
    assert workers["n_labels"].sum() == 200
    assert (folder / "fit.png").read_bytes()[:4] == b"\x89PNG"


def test_summary_says_whether_to_trust_it(run):
    folder, printed, post = run
    diagnosis = bc.diagnose(post)
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[0].endswith("labels.csv: 200 labels of 40 tasks by 15 workers, 2 classes")
    assert any(line.startswith("dawid_skene by gibbs, ") for line in lines)
    assert f"worst R-hat {diagnosis.rhat:.3f}" in lines
    assert f"smallest ESS, bulk {diagnosis.ess_bulk:,.0f}" in lines
    assert "divergences 0" in lines
    assert diagnosis.verdict in lines
    assert any(line.startswith("scored on 40 tasks of ") for line in lines)
    ranked = bc.worker_posterior(post).sort_values("accuracy")
    best = ranked.iloc[-1]
    interval = f"{best['lower']:.3f} to {best['upper']:.3f}"
    assert f"{ranked.index[-1]} {best['accuracy']:.3f} {interval} {best['n_labels']:.0f}" in lines
    assert "... and 3 more" in lines
    doubtful = (pd.read_csv(folder / "tasks.csv")["probability"] < 0.95).sum()
    assert f"{doubtful} of 40 labels less than 95% sure, the least sure first" in lines
    assert sum(line.endswith(" written") for line in lines) == 3


def test_json_has_everything(again, capsys):
    assert main(["posterior", "labels.csv", "--truth", "truth.csv", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["model"] == "dawid_skene"
    assert document["input"]["n_labels"] == 200
    assert document["sampling"]["is_complete"] is True
    assert document["diagnosis"]["rhat"] < 1.1
    assert isinstance(document["diagnosis"]["is_trustworthy"], bool)
    assert len(document["tasks"]) == 40
    assert document["scores"]["n"] == 40
    assert document["scores"]["accuracy"] > 0.7
    assert {"worker", "accuracy", "lower", "upper", "n_labels"} == set(document["workers"][0])


@pytest.mark.parametrize(
    ("arguments", "model", "method", "most_draws"),
    [
        ([], "dawid_skene", None, None),
        (["--most-draws", "900"], "dawid_skene", None, 900),
        (["--model", "item_difficulty"], "item_difficulty", None, None),
        (["--model", "hierarchical-dawid-skene", "--method", "svi"], None, "svi", None),
    ],
)
def test_the_sampler_is_asked_for_what_was_typed(
    again, capsys, arguments, model, method, most_draws
):
    assert main(["posterior", "labels.csv", *arguments, *OPTIONS]) == 0
    ((asked, by, options),) = again
    assert (asked, by) == (model or "hierarchical_dawid_skene", method)
    sizes = {"chains": 2, "draws": 150, "warmup": 50, "seed": 3, "most_draws": most_draws}
    assert options == sizes | {"log_likelihood": False, "predictive": False, "gold": None}


def test_gold_is_held_and_not_scored(again, run, tmp_path, capsys):
    truth = pd.read_csv(tmp_path / "truth.csv")
    truth.iloc[:3].rename(columns={"truth": "gold"}).to_csv(tmp_path / "gold.csv", index=False)
    arguments = ["posterior", "labels.csv", "--gold", "gold.csv"]
    assert main([*arguments, "--truth", "truth.csv"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "3 tasks held to the known label (gold)" in lines
    assert "scored on 37 tasks of truth.csv; 3 more are gold" in lines
    gold = again[0][2]["gold"]
    assert gold.to_dict() == dict(truth.iloc[:3].to_numpy().tolist())
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["input"]["n_gold"] == 3
    assert document["input"]["gold"]["n_tasks"] == 3
    assert document["scores"] is None


def test_gold_changes_the_draws(run, tmp_path, monkeypatch, capsys):
    """Without a recorded run: the tasks in the gold file get their label for certain."""
    monkeypatch.chdir(tmp_path)
    probas = bc.label_posterior(run.post)
    doubtful = probas.max(axis=1).nsmallest(4).index
    other = probas.loc[doubtful].idxmin(axis=1)
    other.rename_axis("task").rename("gold").reset_index().to_csv("gold.csv", index=False)
    labels = str(run.folder / "labels.csv")
    assert main(["posterior", labels, *OPTIONS, "--gold", "gold.csv", "--json"]) == 0
    tasks = pd.DataFrame(json.loads(capsys.readouterr().out)["tasks"]).set_index("task")
    assert tasks.loc[doubtful, "label"].tolist() == other.tolist()
    assert (tasks.loc[doubtful, "probability"] == 1).all()


def test_tables_on_standard_output(again, capsys):
    assert main(["posterior", "labels.csv", "--workers", "-"]) == 0
    captured = capsys.readouterr()
    assert len(pd.read_csv(io.StringIO(captured.out))) == 15
    assert "worst R-hat" in captured.err


def test_existing_files_are_not_overwritten(again, capsys, tmp_path):
    (tmp_path / "fit.nc").write_text("mine")
    line = refusal(capsys, "labels.csv", "--out", "fit.nc")
    assert line == "bayescrowd: fit.nc: the file exists; --force overwrites it"
    assert (tmp_path / "fit.nc").read_text() == "mine"
    assert main(["posterior", "labels.csv", "--out", "fit.nc", "--force"]) == 0
    assert "posterior" in group_names(load("fit.nc"))


def refusal(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main(["posterior", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["labels.csv", "--model", "probit"],
            "no model 'probit'; expected one of ability_dawid_skene, ",
        ),
        (
            ["labels.csv", "--method", "hmc"],
            "invalid choice 'hmc'; expected one of gibbs, nuts, svi",
        ),
        (["labels.csv", "--draws", "0"], "argument --draws: '0': expected an integer of at least"),
        (["labels.csv", "--chains", "0"], "argument --chains: '0': expected an integer of at"),
        (["labels.csv", "--task", "item"], "item"),
        (["labels.csv", "--out", "fit.csv"], "fit.csv: expected a name that ends in .nc"),
        (["labels.csv", "--out", "nowhere/fit.nc"], "there is no folder"),
        (["labels.csv", "--out", "."], "expected a name that ends in .nc"),
        (["labels.csv", "--plot", "fit.gif"], "fit.gif: expected a name that ends in .png"),
        (["labels.csv", "--labels", "a.csv", "--workers", "a.csv"], "a.csv: named twice"),
        (["labels.csv", "--labels", "labels.csv", "--force"], "labels.csv: named twice"),
        (["labels.csv", "--labels", "-", "--json"], "only one of --labels -, --workers - and"),
        (["labels.csv", "--labels", "a.xlsx"], "unknown extension '.xlsx'"),
        (["labels.csv", "--truth", "absent.csv"], "absent.csv"),
        (["labels.csv", "--gold", "absent.csv"], "absent.csv"),
        (["-", "--gold", "-"], "only one of the files can come from standard input"),
        (["labels.csv", "--gold", "truth.csv", "--truth", "truth.csv"], "nothing is left to score"),
        (["labels.csv", "--truth-columns", "a"], "expected the two names TASK,LABEL"),
        (["absent.csv"], "absent.csv"),
        (["empty.csv"], "empty.csv"),
    ],
)
def test_bad_input_in_one_line(again, tmp_path, capsys, arguments, message):
    (tmp_path / "empty.csv").touch()
    assert message in refusal(capsys, *arguments)
    assert again == []
    assert {path.name for path in tmp_path.iterdir()} == {"labels.csv", "truth.csv", "empty.csv"}


def test_help_lists_every_model_of_crowd_labels(capsys):
    assert main(["posterior", "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: bayescrowd posterior LABELS [options]")
    modules = {name: getattr(bc.models, name) for name in bc.models.__all__}
    listed = text.partition("models:\n")[2].partition("\n\n")[0]
    assert [tuple(line.split(maxsplit=1)) for line in listed.splitlines()] == [
        (name, module.FACTS.summary)
        for name, module in modules.items()
        if hasattr(module, "Labels")
    ]
