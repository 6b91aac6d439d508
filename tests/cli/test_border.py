"""Odd files and odd places: the command line says in one line which file, which row, and why."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import bayescrowd as bc
from bayescrowd.cli import main

ROOT = Path(__file__).parents[2]
SMALL = "task,worker,label\n1,ann,cat\n1,bob,cat\n2,ann,dog\n2,bob,cat\n3,ann,dog\n3,bob,dog\n"
QUICK = ("--method", "majority-vote")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(SMALL)
    for one, other in (("loop.csv", "pool.csv"), ("pool.csv", "loop.csv"), ("loop.nc", "loop.nc")):
        (tmp_path / one).symlink_to(other)
    return tmp_path


def refused(capsys, *arguments):
    """Run, and return the one line that says why it did not work."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


def process(*arguments, most_bytes=None, **options):
    """Run a command of its own, with files of at most so many bytes."""
    limited = (
        "import resource, sys; from bayescrowd.cli import main; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, {most_bytes})); "
        "sys.exit(main(sys.argv[1:]))"
    )
    command = ["-m", "bayescrowd"] if most_bytes is None else ["-c", limited]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        **options,
    )


# Exit code 2 and one line


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("x.jsonl", "[" * 100_000, "x.jsonl: row 1: arrays or objects are nested too deeply"),
        ("x.json", "[" * 100_000, "x.json: arrays or objects are nested too deeply"),
        (
            "x.jsonl",
            '{"task": 1, "worker": 1, "label": 1}\n\n{"task": ' + "9" * 5_000 + "}",
            "x.jsonl: row 3: an integer has more than 4,300 digits",
        ),
        (
            "x.json",
            '[{"id": 1, "annotations": [{"result": [{"value": {"choices": 5}}]}]}]',
            "x.json: row 1 of the array: 'choices' is not an array; expected a Label Studio export",
        ),
        (
            "x.csv",
            "task,worker,label\n1,a,x\n2,b\0,y\n",
            "x.csv: row 3, column 'worker': 'b\\x00' holds a NUL character",
        ),
        (
            "x.jsonl",
            '{"task": "\\ud800", "worker": 1, "label": "x"}\n',
            "x.jsonl: row 1, column 'task': '\\ud800' holds half of a surrogate pair",
        ),
    ],
)
@pytest.mark.parametrize("command", ["aggregate", "workers", "posterior"])
def test_odd_files(folder, capsys, command, name, contents, message):
    (folder / name).write_text(contents)
    assert refused(capsys, command, name).startswith(f"bayescrowd: {message}")


def test_labels_of_very_many_digits_are_ordinary_text(folder, capsys):
    short, long = "8" * 4_400, "8" * 4_401
    (folder / "x.csv").write_text(f"task,worker,label\n1,a,{long}\n2,b,{short}\n")
    assert main(["aggregate", "x.csv", *QUICK, "--json"]) == 0
    classes = json.loads(capsys.readouterr().out)["classes"]
    assert [row["class"] for row in classes] == [short, long]


def test_long_values_are_cut_short_in_messages(folder, capsys):
    (folder / "x.csv").write_text("task,truth\n" + "9" * 5_000 + ",cat\n")
    (folder / "y.csv").write_text("z" * 5_000 + "\n1\n")
    for arguments in (["y.csv"], ["labels.csv", "--classes", "a,b", "--label", "y" * 50]):
        assert len(refused(capsys, "aggregate", *arguments, *QUICK)) < 500


@pytest.mark.parametrize(
    "arguments",
    [
        ["aggregate", "loop.csv"],
        ["aggregate", "labels.csv", "--truth", "loop.csv"],
        ["aggregate", "labels.csv", "--out", "loop.csv"],
        ["aggregate", "labels.csv", "--out", "loop.csv", "--force"],
        ["workers", "labels.csv", "--scores", "loop.csv"],
        ["posterior", "labels.csv", "--labels", "loop.csv"],
        ["compare", "labels.csv", "--out", "loop.csv"],
        ["budget", "plan", "loop.csv", "--target", "x", "--features", "1", "--within", "0.1"],
        ["multiselect", "loop.csv", "labels.csv", "--budget", "3"],
        ["multiselect", "labels.csv", "labels.csv", "--budget", "3", "--out", "loop.csv"],
    ],
)
def test_loops_of_links(folder, capsys, arguments):
    assert refused(capsys, *arguments) == "bayescrowd: loop.csv: too many levels of symbolic links"


def test_loop_of_links_for_draws(folder, capsys):
    line = refused(capsys, "posterior", "labels.csv", "--out", "loop.nc")
    assert line == "bayescrowd: loop.nc: too many levels of symbolic links"


@pytest.mark.parametrize("number", ["99999999999999999999", "4294967296", "9" * 5_000])
@pytest.mark.parametrize(
    "command",
    [
        ["posterior", "x.csv", "--seed"],
        ["posterior", "x.csv", "--draws"],
        ["compare", "x.csv", "--seed"],
        ["aggregate", "x.csv", "--seed"],
        ["demo", "--seed"],
        ["budget", "plan", "x.csv", "--features", "1", "--within", ".1", "--seed"],
    ],
)
def test_numbers_beyond_32_bits(capsys, command, number):
    line = refused(capsys, *command, number)
    assert "expected an integer of at most 4294967295" in line
    assert len(line) < 200


# Places that cannot be written to


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("labels.csv/x.csv", "labels.csv/x.csv: not a directory"),
        ("absent/x.csv", "absent/x.csv: there is no folder"),
        ("x" * 300 + ".csv", "x" * 300 + ".csv: file name too long"),
    ],
)
def test_impossible_places_are_named_as_the_user_did(folder, capsys, out, message):
    line = refused(capsys, "aggregate", "labels.csv", *QUICK, "--out", out)
    assert line.startswith(f"bayescrowd: {message}")


def test_names_as_long_as_the_system_allows(folder, capsys):
    name = "é" * 125 + ".csv"  # 254 bytes
    assert main(["aggregate", "labels.csv", *QUICK, "--out", name]) == 0
    assert len(pd.read_csv(folder / name)) == 3


def crowd_file(folder, n_tasks=2_000):
    rows = "".join(f"{t},w{w},{'ab'[(t + w) % 2]}\n" for t in range(n_tasks) for w in range(2))
    (folder / "many.csv").write_text(f"task,worker,label\n{rows}")


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out.csv.gz"])
def test_a_full_disk_names_the_file_and_leaves_nothing(folder, name):
    crowd_file(folder)
    before = set(os.listdir(folder))
    done = process("aggregate", "many.csv", *QUICK, "--out", name, most_bytes=1_000)
    assert (done.returncode, done.stderr) == (2, f"bayescrowd: {name}: file too large\n")
    assert set(os.listdir(folder)) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_standard_output(folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bayescrowd", "aggregate", "labels.csv", *QUICK],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
    assert done.stderr == "bayescrowd: standard output: no space left on device\n"
    assert done.returncode == 2


TERMINATED = """
import signal, sys, time
from bayescrowd.io.writing import new_file
# Under nohup, processes inherit that a hang-up is ignored. The parent cannot undo that: code that
# it runs in the child needs a fork, which JAX's threads do not bear.
signal.signal(int(sys.argv[1]), signal.SIG_DFL)
with new_file("out.bin") as file:
    file.write(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_while_writing_leaves_nothing(tmp_path, number):
    with subprocess.Popen(
        [sys.executable, "-c", TERMINATED, str(int(number))],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        assert len(os.listdir(tmp_path)) == 1
        time.sleep(0.1)
        writer.send_signal(number)
        assert writer.wait() == -number  # ended by the signal, as without us
    assert os.listdir(tmp_path) == []


# Options in messages


@pytest.mark.parametrize(
    ("contents", "arguments", "message"),
    [
        ("item,question,worker,label\n1,2,3,4\n", [], "choose one with --task"),
        ("a,worker,label\n1,2,3\n", [], "or --task to name it"),
        ("task,worker,label\n1,2,x\n", [], "(--classes also declares classes that nobody chose)"),
        (SMALL + "1,ann,dog\n", ["--duplicates", "error"], "(--duplicates keep takes them as data"),
        (SMALL, ["--truth", "truth.csv"], "or --truth-columns to name it"),
        (SMALL, ["--gold", "truth.csv"], "or --gold-columns to name it"),
        (
            SMALL,
            ["--task", "worker", "--worker", "worker"],
            "x.csv: column 'worker' is named for the task and for the worker; expected a column",
        ),
        (
            SMALL,
            ["--truth", "x.csv", "--truth-columns", "task,task"],
            "x.csv: column 'task' is named for the task and for the truth",
        ),
    ],
)
def test_messages_speak_of_options(folder, capsys, contents, arguments, message):
    (folder / "x.csv").write_text(contents)
    (folder / "truth.csv").write_text("task,x\n1,cat\n")
    assert message in refused(capsys, "aggregate", "x.csv", *QUICK, *arguments)


def test_messages_speak_of_arguments_in_python(folder):
    (folder / "x.csv").write_text("a,worker,label\n1,2,3\n")
    with pytest.raises(ValueError, match="or task= to name it"):
        bc.read_annotations("x.csv")


# Values that print alike, and cells that spreadsheets would run


def test_labels_that_print_alike_are_one_class(folder, capsys):
    values = [1, "1", 2, "a", 1]
    lines = [{"task": i % 3, "worker": i, "label": value} for i, value in enumerate(values)]
    (folder / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["aggregate", "x.jsonl", *QUICK, "--probabilities", "--out", "out.csv"]) == 0
    assert (
        "bayescrowd: warning: x.jsonl: row 2, column 'label': '1' looks like 1, which has another "
        "type; the whole column is read as text\n"
    ) in capsys.readouterr().err
    table = pd.read_csv("out.csv")
    shares = table[["probability:1", "probability:2", "probability:a"]]
    assert shares.sum(axis=1).tolist() == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("flags", [[], ["--raw-cells"]])
def test_cells_that_spreadsheets_would_run(folder, capsys, flags):
    (folder / "x.csv").write_text("task,worker,label\n=1+1,@a,-x\n=1+1,b,-x\nt,b,+y\n-3,b,+y\n")
    assert main(["aggregate", "x.csv", *QUICK, "--out", "out.csv", *flags]) == 0
    assert main(["workers", "x.csv", "--top", "2", "--out", "kept.csv", *flags]) == 0
    capsys.readouterr()
    assert main(["aggregate", "x.csv", *QUICK, "--workers", "-", *flags]) == 0
    mark = "" if flags else "'"
    assert f"\n{mark}@a," in capsys.readouterr().out
    tasks = pd.read_csv("out.csv", dtype=str)
    assert set(tasks["task"]) == {f"{mark}=1+1", "t", "-3"}
    assert set(tasks["label"]) == {f"{mark}-x", f"{mark}+y"}
    assert list(bc.read_annotations("kept.csv").tasks) == list(bc.read_annotations("x.csv").tasks)
    assert main(["aggregate", "x.csv", *QUICK, "--truth", "out.csv", "--json", *flags]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["accuracy"] == 1.0


# The process ends as it should


FORKS = """
import gc, os, sys
import bayescrowd.aggregation.auto.aggregator, bayescrowd.io.reading, pyarrow.csv
from bayescrowd.cli import main

gc.freeze()  # what is imported is not looked through again at the end of every child
statuses = []
for _ in range(300):
    child = os.fork()
    if child == 0:
        sys.exit(main(sys.argv[1:]))  # and then everything that an interpreter does at its end
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(sorted(set(statuses)), len(statuses))
"""
"""Run a command 300 times without importing the libraries as often, which would take minutes."""


@pytest.mark.slow
def test_bad_truth_never_crashes_at_exit(folder):
    rows = "".join(f"t{t},w{w},{'ab'[t % 2]}\n" for t in range(200) for w in range(5))
    (folder / "t.csv").write_text(f"task,worker,label\n{rows}")
    (folder / "truth.csv").write_text("task,truth\nt1,a\nt1,b\n")
    command = ("aggregate", "t.csv", "--truth", "truth.csv")
    assert {process(*command).returncode for _ in range(30)} == {2}
    forks = subprocess.run(
        [sys.executable, "-c", FORKS, *command],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert forks.stdout == "[2] 300\n"
    assert len(set(forks.stderr.splitlines())) == 1
