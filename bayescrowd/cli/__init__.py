"""The command line: arguments, files, exit codes; no statistics.

* `demo`, `aggregate`, `report`, `panel`, `posterior`, `compare`, `workers`, `agreement`, `bench`,
  `multiselect`, `budget`, `reproduce` and `datasets`: the commands, one module each.
* `arguments`: argument types, options and file checks that commands share.
* `inputs`: what commands read, files or data sets by name, and what is said about it.
* `names`: names in any spelling, and the one that may have been meant by an unknown one.
* `exports`: the aggregators and policies that the package exports, by the names users type.
* `new_tasks`: `aggregate --fit`, which labels new tasks by the raters of a saved fit.
* `task_tables`: the table with a row per task that `aggregate` writes.
* `labelled_tables`: tables of instances with features and a class, read from files.
* `known_labels`: files of true labels, for the fit or for scoring.
* `aggregate_text`: scores and workers in the summary of `aggregate`.
* `agreement_text`: measures of agreement as text and for JSON.
* `panel_text`, `panel_json`: the report of `panel` as text and as a document.
* `budget_runs`: policies, options and runs of `budget`.
* `sampling`: models, options and files of the commands that sample posteriors.
* `progress`: progress on standard error.
* `text`: tables with aligned columns.

The module of a command has one public function, `add_to(commands)`, which declares the arguments
and names the function that does the work: `run(args) -> int` returns the exit code. A new command
needs its module and a place in `_COMMANDS`. Modules import heavy libraries inside `run`, so that
`--help` and `--version` answer at once.

Exit codes: 0 for success; 2 for bad input or usage and 1 for a fault of ours, each with one line on
standard error; 130 if interrupted; 141 if the reader of our output stopped reading. With
BAYESCROWD_TRACEBACK=1 in the environment, the traceback precedes the line.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from bayescrowd._version import __version__
from bayescrowd.cli import (
    aggregate,
    agreement,
    bench,
    budget,
    compare,
    datasets,
    demo,
    multiselect,
    panel,
    posterior,
    report,
    reproduce,
    workers,
)
from bayescrowd.cli.arguments import Parser

__all__ = ["main"]

_COMMANDS = (
    demo,
    aggregate,
    report,
    panel,
    posterior,
    compare,
    workers,
    agreement,
    bench,
    multiselect,
    budget,
    reproduce,
    datasets,
)

DONE, FAULT, BAD_INPUT, INTERRUPTED, NOBODY_READS = 0, 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: arguments of the command; by default those of the process.
    """
    _write_any_text()
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help or the error
        return stop.code if isinstance(stop.code, int) else DONE
    with warnings.catch_warnings():
        # Each warning is printed on one line, even if the same code has warned before.
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = _show_warning
        return _run_safely(args)


def _parser() -> Parser:
    parser = Parser(
        prog="bayescrowd",
        description="True labels and worker quality from noisy crowd labels.",
        epilog="First steps: 'bayescrowd demo', then 'bayescrowd aggregate labels.csv'.",
    )
    parser.add_argument("--version", action="version", version=f"bayescrowd {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add_to(commands)
    return parser


def _run_safely(args: object) -> int:
    """Run the chosen command; turn any error into one line of text and an exit code."""
    from bayescrowd.data.vocabulary import options_in_messages

    try:
        with options_in_messages():
            code: int = args.run(args)  # type: ignore[attr-defined]
        if sys.stdout is not None:  # None if it was closed before we started
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return NOBODY_READS
    except (ValueError, OSError) as error:
        return _report(_output_fault() or _describe(error), BAD_INPUT)
    except Exception as error:
        kind = f"{type(error).__name__}: {error}".rstrip(": ")
        hint = "a fault of bayescrowd; BAYESCROWD_TRACEBACK=1 shows where"
        return _report(f"{kind} ({hint})", FAULT)
    return code


def _report(message: str, code: int) -> int:
    if os.environ.get("BAYESCROWD_TRACEBACK"):
        traceback.print_exc()
    print(f"bayescrowd: {_one_line(message)}", file=sys.stderr)
    return code


def _describe(error: ValueError | OSError) -> str:
    """An error of the operating system as 'file: reason', an error of ours as it is."""
    if isinstance(error, OSError) and error.strerror:
        what = error.strerror[:1].lower() + error.strerror[1:]
        # `writing.new_file` puts the file name into its errors; only standard output has no name.
        is_full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        name = error.filename or ("standard output" if is_full else None)
        return f"{name}: {what}" if name else what
    return str(error) or type(error).__name__


def _output_fault() -> str | None:
    """Why standard output cannot be written to, if that is what went wrong."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _discard_output()
        return _describe(error)
    return None


def _one_line(message: str) -> str:
    return "; ".join(line.strip() for line in message.splitlines() if line.strip())


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"bayescrowd: warning: {_one_line(str(message))}", file=sys.stderr)


def _write_any_text() -> None:
    """Escape characters that the terminal cannot show instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Keep Python from reporting the closed pipe a second time when it exits."""
    with suppress(OSError, ValueError):  # the stream has no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
