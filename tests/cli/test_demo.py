"""`bayescrowd demo`: its story, its numbers and its picture."""

import json

import pytest
from matplotlib.figure import Figure

from bayescrowd.cli import demo, main
from bayescrowd.cli.arguments import METHODS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def outcome():
    return demo._outcome(0)


@pytest.fixture
def quick(monkeypatch, outcome):
    """Spare the simulation and the drawing."""
    monkeypatch.setattr(demo, "_outcome", lambda seed: outcome)
    monkeypatch.setattr(demo, "_draw_picture", lambda outcome: Figure(figsize=(1, 1)))
    monkeypatch.setattr(demo, "_write_report", write_mark)


def write_mark(outcome, page, *, overwrite):
    page.write_text(demo._MARK)


def test_story(folder, capsys):
    assert main(["demo"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for words in (*METHODS, "spammers", "adversaries", "log-likelihood", "true kind"):
        assert words in captured.out
    assert "Picture: bayescrowd-demo.png" in captured.out
    assert "bayescrowd aggregate labels.csv" in captured.out
    assert max(map(len, captured.out.splitlines())) <= 110
    assert (folder / "bayescrowd-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "Report, to be opened in a browser: bayescrowd-demo.html" in captured.out
    assert "<title>bayescrowd demo" in (folder / "bayescrowd-demo.html").read_text("utf-8")


def test_json(folder, capsys, monkeypatch):
    monkeypatch.setattr(demo, "_draw_picture", lambda outcome: Figure(figsize=(1, 1)))
    assert main(["demo", "--json", "--seed", "3"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["seed"] == 3
    assert [row["method"] for row in document["methods"]] == list(METHODS)
    assert set(document["methods"][0]) == {"method", "accuracy", "log_likelihood", "seconds"}
    assert len(document["workers"]) == document["n_workers"]
    assert {"kind", "accuracy", "true_accuracy", "flag"} <= set(document["workers"][0])
    assert document["picture"] == "bayescrowd-demo.png"
    assert document["report"] == "bayescrowd-demo.html"


def test_crowd_is_as_described(outcome):
    kinds = outcome.data.parameters.kinds.tolist()
    assert sum("spammer" in kind for kind in kinds) == 15
    assert kinds.count("adversary") == 6
    assert (outcome.data.annotations.labels_per_task == demo.LABELS_PER_TASK).all()
    assert list(outcome.data.annotations.classes) == list(demo.CLASSES)


def test_no_method_beats_the_true_model(outcome):
    """Labels under the true parameters are the best there are, up to chance."""
    n = len(outcome.data.truth)
    # Two sets of labels on the same tasks: the difference has at most this standard error.
    standard_error = (2 * outcome.reference * (1 - outcome.reference) / n) ** 0.5
    assert outcome.table["accuracy"].max() <= outcome.reference + 3 * standard_error
    # What needs no choice is as good as what the truth would choose.
    accuracy = outcome.table["accuracy"]
    assert outcome.best == "auto"
    assert accuracy[outcome.best] >= accuracy.max() - standard_error


def test_workers_are_ranked_beside_what_they_are(outcome):
    assert outcome.workers["accuracy"].is_monotonic_decreasing
    assert set(outcome.workers["kind"].head(5)) == {"honest"}
    assert set(outcome.workers["kind"].tail(5)) == {"adversary"}


def test_same_seed_same_numbers(outcome):
    again = demo._outcome(0)
    columns = ["accuracy", "log_likelihood"]
    assert again.table[columns].equals(outcome.table[columns])


def test_picture_goes_where_it_is_asked_to(folder, quick, capsys):
    (folder / "pictures").mkdir()
    assert main(["demo", "--out", "pictures"]) == 0
    assert (folder / "pictures" / "bayescrowd-demo.png").exists()
    for name in ("demo.svg", "demo.pdf"):
        assert main(["demo", "--out", name]) == 0
        assert demo._is_ours(folder / name)
    assert f"Picture: {name}" in capsys.readouterr().out


def test_only_its_own_picture_is_overwritten(folder, quick, capsys):
    assert main(["demo"]) == main(["demo"]) == 0
    capsys.readouterr()
    picture = folder / "bayescrowd-demo.png"
    picture.write_bytes(b"precious")
    assert main(["demo"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "bayescrowd: bayescrowd-demo.png: the file exists; --force overwrites it\n"
    )
    assert picture.read_bytes() == b"precious"
    assert main(["demo", "--force"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_only_its_own_report_is_overwritten(folder, quick, capsys):
    page = folder / "bayescrowd-demo.html"
    page.write_text("precious")
    assert main(["demo"]) == 2
    line = "bayescrowd: bayescrowd-demo.html: the file exists; --force overwrites it\n"
    assert capsys.readouterr().err == line
    assert [path.name for path in folder.iterdir()] == ["bayescrowd-demo.html"]
    assert main(["demo", "--force"]) == main(["demo"]) == 0
    assert page.read_text() == demo._MARK


@pytest.mark.parametrize("name", ["picture.jpg", "absent", "absent/demo.png"])
def test_bad_place_for_the_picture(folder, monkeypatch, capsys, name):
    monkeypatch.setattr(demo, "_outcome", None)  # refused before any work
    assert main(["demo", "--out", name]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"bayescrowd: {name}")
    assert captured.err.count("\n") == 1
    assert list(folder.iterdir()) == []
