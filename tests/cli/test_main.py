"""The boundary of the command line: help, versions, one-line errors, exit codes."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import get_args

import pytest

from bayescrowd import __version__, cli
from bayescrowd.cli import main
from bayescrowd.io.formats import Format

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "pandas", "pyarrow", "scipy", "sklearn", "matplotlib", "jax", "tqdm", "pooch"}
NOT_FOR_AGGREGATING = {
    "arviz",
    "jax",
    "joblib",
    "matplotlib",
    "numpyro",
    "pooch",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "scipy.stats",
    "sklearn",
    "xarray",
}


def run_process(*arguments, **options):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "bayescrowd", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment | options.pop("env", {}),
        **options,
    )


def with_command(monkeypatch, run):
    """Make `bayescrowd fail` run a function."""

    class Module:
        @staticmethod
        def add_to(commands):
            commands.add_parser("fail").set_defaults(run=run)

    monkeypatch.setattr(cli, "_COMMANDS", (Module,))


def raising(error):
    def run(args):
        raise error

    return run


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bayescrowd {__version__}\n"


@pytest.mark.parametrize("command", [[], ["demo"], ["aggregate"], ["datasets"]])
def test_help(capsys, command):
    assert main([*command, "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("usage: bayescrowd")
    assert captured.err == ""


def modules_loaded_by(*arguments, **options):
    """Run a command that must end well, and name the modules that it has loaded."""
    return modules_after(
        f"from bayescrowd.cli import main; code = main({list(arguments)!r})", **options
    )


def modules_after(statements, **options):
    """Run statements that set `code` to 0 in a new process, and name the modules that it has."""
    code = f"import sys; {statements}; print(code, *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        **options,
    )
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "0"
    return set(last[1:])


@pytest.mark.parametrize("argument", ["--help", "--version", "aggregate --help"])
def test_help_and_version_load_nothing_heavy(argument):
    modules = modules_loaded_by(*argument.split())
    assert "bayescrowd.cli.aggregate" in modules
    assert HEAVY.isdisjoint(modules)


def test_aggregating_loads_only_what_it_needs(tmp_path):
    """Loading the others took twice as long as the rest of the command."""
    # No two workers repeat each other: what finds clusters is loaded only if there may be any.
    cells = [(task, worker) for task in range(20) for worker in range(3)]
    labels = [f"{t},{w},{(t >> w) % 2}" for t, w in cells]
    (tmp_path / "labels.csv").write_text("\n".join(["task,worker,label", *labels]))
    modules = modules_loaded_by("aggregate", "labels.csv", cwd=tmp_path)
    assert {"numpy", "pandas", "scipy.special", "bayescrowd.aggregation.auto"} <= modules
    # SciPy 1.18 loads scipy.linalg for its special functions.
    unavoidable = modules_after("import scipy.special; code = 0")
    assert not NOT_FOR_AGGREGATING & modules - unavoidable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "bayescrowd: the following arguments are required: COMMAND"),
        (["agregate"], "bayescrowd: no command 'agregate'; did you mean aggregate?"),
        (["aggregate"], "bayescrowd aggregate: the following arguments are required: LABELS"),
        (
            ["aggregate", "x.csv", "--methd", "wawa"],
            "bayescrowd aggregate: no option --methd; did you mean --method?",
        ),
        (
            ["aggregate", "x.csv", "--method", "xyz"],
            "bayescrowd aggregate: argument --method: no method 'xyz'; expected one of auto, ",
        ),
        (["aggregate", "x.csv", "--seed", "-1"], "expected an integer of at least 0"),
        (["aggregate", "x.csv", "--n-init", "two"], "'two': expected an integer of at least 1"),
        (["aggregate", "x.csv", "--classes", "a,,b"], "expected names separated by commas"),
        (["aggregate", "x.csv", "--truth-columns", "a"], "expected the two names TASK,LABEL"),
        (["demo", "now"], "unrecognized arguments: now"),
        (["datasets"], "bayescrowd datasets: the following arguments are required: ACTION"),
    ],
)
def test_bad_usage_is_one_line(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.err.rstrip().endswith("--help)")


def test_process_reports_bad_input_in_one_line(tmp_path):
    done = run_process("aggregate", "absent.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "bayescrowd: absent.csv: there is no such file\n"


def test_traceback_on_demand(monkeypatch, capsys):
    with_command(monkeypatch, raising(ValueError("row 3 is wrong")))
    monkeypatch.setenv("BAYESCROWD_TRACEBACK", "1")
    assert main(["fail"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "bayescrowd: row 3 is wrong"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("row 3\nis wrong"), "bayescrowd: row 3; is wrong"),
        (ValueError(), "bayescrowd: ValueError"),
        (PermissionError(13, "Permission denied", "out.csv"), "bayescrowd: out.csv: permission"),
        (OSError(28, "No space left on device"), "bayescrowd: standard output: no space left on"),
        (OSError(5, "Input/output error"), "bayescrowd: input/output error"),
        (FileExistsError("out.csv: it exists"), "bayescrowd: out.csv: it exists"),
    ],
)
def test_bad_input_is_exit_code_2(monkeypatch, capsys, error, line):
    with_command(monkeypatch, raising(error))
    assert main(["fail"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(line)
    assert captured.err.count("\n") == 1


def test_own_fault_is_exit_code_1_with_a_hint(monkeypatch, capsys):
    with_command(monkeypatch, raising(RuntimeError("lost\ncount")))
    assert main(["fail"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("bayescrowd: RuntimeError: lost; count (a fault of bayescrowd;")
    assert "BAYESCROWD_TRACEBACK=1" in captured.err
    assert captured.err.count("\n") == 1


def test_interruption_is_quiet(monkeypatch, capsys):
    with_command(monkeypatch, raising(KeyboardInterrupt()))
    assert main(["fail"]) == 130
    assert capsys.readouterr() == ("", "")


def test_warnings_are_one_line_each(monkeypatch, capsys):
    def run(args):
        for _ in range(2):
            warnings.warn("not\nsettled", UserWarning, stacklevel=1)
        return 0

    with_command(monkeypatch, run)
    before = warnings.showwarning
    assert main(["fail"]) == 0
    assert capsys.readouterr().err == "bayescrowd: warning: not; settled\n" * 2
    assert warnings.showwarning is before


def test_closed_pipe_is_quiet():
    code = (
        "import sys; from bayescrowd.cli import main, aggregate; import bayescrowd.cli as cli\n"
        "def run(args):\n"
        "    print('x' * 10_000_000)\n"
        "    return 0\n"
        "class Module:\n"
        "    def add_to(commands): commands.add_parser('flood').set_defaults(run=run)\n"
        "cli._COMMANDS = (Module,)\n"
        "sys.exit(main(['flood']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_text_that_the_terminal_cannot_show_is_escaped(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\n1,Zoë,ja\n2,Zoë,nein\n", encoding="utf-8")
    done = run_process("aggregate", str(path), env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert r"Zo\xeb" in done.stdout


@pytest.mark.parametrize("name", get_args(Format))
def test_every_format_that_can_be_read_is_offered(tmp_path, monkeypatch, capsys, name):
    """The command line lists the formats itself, since their module imports Arrow."""
    monkeypatch.chdir(tmp_path)
    assert main(["aggregate", "absent.csv", "--format", name]) == 2
    assert "there is no such file" in capsys.readouterr().err
