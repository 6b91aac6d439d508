"""`bayescrowd datasets`: the list, and the way to files."""

import json

import pytest

from bayescrowd.cli import main
from bayescrowd.datasets import registry


def test_list_names_every_data_set(capsys):
    assert main(["datasets", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "kind", "here"]
    assert [line.split()[0] for line in lines[1:] if line[0] != " "] == list(
        registry.dataset_names()
    )


def test_list_as_json(capsys):
    assert main(["datasets", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(registry.dataset_names())
    assert set(rows[0]) == {"name", "kind", "local", "description"}


def test_fetch_prints_paths(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "fetch", lambda name: [tmp_path / f"{name}.txt"])
    assert main(["datasets", "fetch", "rte", "dog"]) == 0
    expected = [str(tmp_path / "rte.txt"), str(tmp_path / "dog.txt")]
    assert capsys.readouterr().out.splitlines() == expected
    assert main(["datasets", "fetch", "--all", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == list(registry.dataset_names())


def test_fetch_goes_on_after_a_failure(capsys, monkeypatch, tmp_path):
    def fetch(name):
        if name in ("rte", "dog"):
            raise ConnectionError(f"{name} could not be downloaded")
        return [tmp_path / name]

    monkeypatch.setattr(registry, "fetch", fetch)
    assert main(["datasets", "fetch", "rte", "dog", "web"]) == 2
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [str(tmp_path / "web")]
    assert captured.err.splitlines() == [
        "bayescrowd: rte could not be downloaded",
        "bayescrowd: dog could not be downloaded",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either names of data sets or --all"),
        (["rte", "--all"], "expected either names of data sets or --all"),
        (["rte", "bird"], "no data set 'bird'; did you mean bluebird?"),
    ],
)
def test_bad_names(capsys, arguments, message):
    assert main(["datasets", "fetch", *arguments]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert message in captured.err
