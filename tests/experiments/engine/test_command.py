import json
import os
import signal
import subprocess
import sys

import pandas as pd
import pytest

from bayescrowd.experiments.engine.command import Files, list_published, reproduce


def files(toy):
    return Files.of("toy", toy.out)


def test_table_is_printed_beside_the_published_one(toy, capsys):
    reproduce("toy", folder=toy.out, n_jobs=1)
    said = capsys.readouterr()
    # seeds 0 to 3 draw 28, 24, 28, 28 of 200 halves
    assert said.out.splitlines() == [
        "A toy",
        "",
        (
            "          measured  published  items  over seeds          verdict              "
            "about the difference"
        ),
        "fixed  a     10.00      10.00      0                      matches",
        "fixed  b     20.00      19.00     +2                      differs by +2 items  a misprint",
        (
            "drawn  a     14.00      13.00     +2  12.00 to 14.00 (4)  differs by +2 items  "
            "within the 4 runs"
        ),
        "",
        "Does not hold: a is below 5 % (10.00 %)",
        "Toys are not real.",
        "1 of 3 published cells match; 2 differ, 1 of them with a recorded reason.",
    ]
    assert said.err.splitlines() == [f"written: {files(toy).table}, {files(toy).picture}"]


def test_files_are_written(toy):
    reproduce("toy", folder=toy.out, n_jobs=1)
    assert sorted(path.name for path in toy.out.iterdir()) == sorted(
        path.name for path in files(toy)
    )
    table = pd.read_csv(files(toy).table)
    assert table["row"].tolist() == ["fixed", "fixed", "drawn"]
    assert table["measured"].tolist() == [10, 20, 14]
    assert table["minimum"].tolist() == [10, 20, 12]
    assert table["n_seeds"].tolist() == [1, 1, 4]
    assert table["difference_items"].tolist() == [0, 2, 2]
    assert table["settings"].tolist() == ["as is", "as is", "one draw"]
    assert files(toy).picture.read_bytes().startswith(b"\x89PNG")


def test_json_has_everything(toy, capsys):
    reproduce("toy", folder=toy.out, n_jobs=1, as_json=True, n_seeds=2)
    content = json.loads(capsys.readouterr().out)
    assert content["experiment"] == "toy"
    assert [cell["verdict"] for cell in content["cells"]][:2] == [
        *("matches", "differs by +2 items")
    ]
    assert [cell["reason"] for cell in content["cells"]] == [None, "a misprint", None]
    assert [cell["is_within_runs"] for cell in content["cells"]] == [None, None, True]
    assert content["cells"][2]["values"] == [14.0, 12.0]
    assert content["claims"] == [{"text": "a is below 5 %", "holds": False, "evidence": "10.00 %"}]
    assert content["files"]["table"] == str(files(toy).table)


def test_interrupted_run_resumes_and_says_so(toy, capsys):
    toy.obstruct("stop", "drawn-2")
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", folder=toy.out, n_jobs=1)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "stopped after 3 of 5 units; run the same command again to resume\n"
    assert not files(toy).table.exists()
    toy.clear()
    toy.calls()
    reproduce("toy", folder=toy.out, n_jobs=1)
    assert toy.calls() == ["drawn 2", "drawn 3"]
    assert capsys.readouterr().err.startswith(f"3 of 5 units come from {files(toy).journal}")


def test_interruptions_and_processes_do_not_change_the_table(toy):
    reproduce("toy", folder=toy.out / "straight", n_jobs=1)
    toy.obstruct("stop", "drawn-1")
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", folder=toy.out / "bumpy", n_jobs=1)
    toy.clear()
    reproduce("toy", folder=toy.out / "bumpy", n_jobs=2)
    tables = [Files.of("toy", toy.out / way).table for way in ("straight", "bumpy")]
    assert tables[0].read_bytes() == tables[1].read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_killed_run_resumes(toy, n_jobs):
    """A killed process cleans up nothing, but what it had recorded is kept."""
    toy.obstruct("kill", "drawn-3")
    code = (
        f"import pathlib, {toy.module} as toy\n"
        "from bayescrowd.experiments.engine.command import run_in_folder\n"
        "if __name__ == '__main__':\n"
        f"    folder = pathlib.Path({str(toy.out)!r})\n"
        f"    run_in_folder(toy.EXPERIMENT, folder, n_seeds=4, n_jobs={n_jobs})\n"
    )
    script = toy.folder / "script.py"
    script.write_text(code, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, check=False
    )
    assert done.returncode in (-signal.SIGKILL, 1)
    toy.clear()
    measured = toy.calls()
    assert "drawn 3" in measured
    reproduce("toy", folder=toy.out, n_jobs=1)
    again = toy.calls()
    assert "drawn 3" in again
    if n_jobs == 1:
        assert again == ["drawn 3"]


def test_more_seeds_run_only_the_new_ones(toy):
    reproduce("toy", folder=toy.out, n_jobs=1, n_seeds=2)
    toy.calls()
    reproduce("toy", folder=toy.out, n_jobs=1, n_seeds=3)
    assert toy.calls() == ["drawn 2"]
    assert pd.read_csv(files(toy).table)["n_seeds"].tolist() == [1, 1, 3]


def test_force_starts_from_scratch(toy):
    reproduce("toy", folder=toy.out, n_jobs=1, n_seeds=2)
    toy.calls()
    reproduce("toy", folder=toy.out, n_jobs=1, n_seeds=2, force=True)
    assert toy.calls() == ["drawn 0", "drawn 1", "fixed 0"]


@pytest.mark.parametrize("kind", ["table", "picture"])
def test_files_of_another_origin_are_not_overwritten(toy, kind):
    toy.out.mkdir()
    path = getattr(files(toy), kind)
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="no journal to resume; --force"):
        reproduce("toy", folder=toy.out, n_jobs=1)
    assert path.read_text() == "precious"
    assert toy.calls() == []
    reproduce("toy", folder=toy.out, n_jobs=1, force=True)
    assert path.read_bytes() != b"precious"


def test_another_version_needs_force(toy, monkeypatch):
    reproduce("toy", folder=toy.out, n_jobs=1)
    before = files(toy).table.read_bytes()
    toy.calls()
    monkeypatch.setattr("bayescrowd.experiments.engine.journal.__version__", "9.9")
    with pytest.raises(
        ValueError, match=r"this run has '9\.9'; --force .* --out names another folder"
    ):
        reproduce("toy", folder=toy.out, n_jobs=1)
    assert files(toy).table.read_bytes() == before
    reproduce("toy", folder=toy.out, n_jobs=1, force=True)
    assert "fixed 0" in toy.calls()


def test_force_spares_other_experiments(toy):
    toy.out.mkdir()
    other = Files.of("other", toy.out)
    for path in other:
        path.write_text("precious")
    reproduce("toy", folder=toy.out, n_jobs=1, force=True)
    assert all(path.read_text() == "precious" for path in other)


@pytest.mark.parametrize("options", [{"n_seeds": 0}, {"n_jobs": 0}])
def test_numbers_below_one_are_refused(toy, options):
    with pytest.raises(ValueError, match="expected at least 1 of each"):
        reproduce("toy", folder=toy.out, **options)
    assert not toy.out.exists()


def test_unknown_name_lists_the_names(toy):
    with pytest.raises(
        ValueError, match=r"unknown experiment 'tab'; expected one of .*mi-table1, .*toy"
    ):
        reproduce("tab", folder=toy.out)


def test_list_as_text_and_json(capsys):
    list_published()
    text = capsys.readouterr().out
    list_published(as_json=True)
    rows = json.loads(capsys.readouterr().out)
    assert all(row["name"] in text for row in rows)
    status = {row["name"]: row["status"] for row in rows}
    assert status["mi-table1"] == "available"
    assert status["stagewise-figure2"] == "not reproducible: an illustration; nothing is measured"
