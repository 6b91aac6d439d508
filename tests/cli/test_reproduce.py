import json

import pytest

from bayescrowd import cli
from bayescrowd.experiments.engine import command


@pytest.fixture
def asked(monkeypatch):
    """What the command would be run with."""
    options = {}
    monkeypatch.setattr(
        command, "reproduce", lambda name, **given: options.update(given, name=name)
    )
    return options


def test_list(capsys):
    assert cli.main(["reproduce", "list"]) == 0
    assert "spectral-table1 " in capsys.readouterr().out


def test_list_as_json(capsys):
    assert cli.main(["reproduce", "list", "--json"]) == 0
    assert {"name", "paper", "place", "subject", "status"} == set(
        json.loads(capsys.readouterr().out)[0]
    )


def test_options_reach_the_experiment(asked, tmp_path):
    arguments = ["--seeds", "3", "--out", str(tmp_path), "--jobs", "2", "--json", "--force"]
    assert cli.main(["reproduce", "mi-table1", *arguments]) == 0
    assert asked == {
        "name": "mi-table1",
        "n_seeds": 3,
        "folder": tmp_path,
        "n_jobs": 2,
        "as_json": True,
        "force": True,
    }


def test_defaults(asked):
    assert cli.main(["reproduce", "mi-table1"]) == 0
    assert asked["folder"] == command.DEFAULT_FOLDER
    assert asked["n_seeds"] is None
    assert asked["n_jobs"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["xyz"], "unknown experiment 'xyz'; expected one of "),
        (["bleafs-figure1"], "bleafs-figure1 is not reproducible: an illustration"),
        (["mi-table1", "--seeds", "0"], "argument --seeds: '0': expected an integer of at least 1"),
        ([], "the following arguments are required: NAME|list"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message):
    assert cli.main(["reproduce", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
