"""What the commands share: the parser, argument types, file checks and the list of methods."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from bayescrowd.cli.exports import command_name, exported_classes, summary_of
from bayescrowd.data.text import shorten

if TYPE_CHECKING:
    from bayescrowd.aggregation.protocol import Aggregator
    from bayescrowd.data.annotations import Annotations

__all__ = [
    "CONTAINERS",
    "DEFAULT_METHOD",
    "METHODS",
    "MOST",
    "PICTURES",
    "Commands",
    "Parser",
    "add_raw_cells",
    "add_reading_options",
    "check_outputs",
    "comma_separated",
    "make_estimator",
    "method_name",
    "natural_number",
    "positive_number",
    "read_labels",
]


class Method(NamedTuple):
    """A method of aggregation, as offered on the command line."""

    estimator: str
    """Public name of the estimator in `bayescrowd`."""
    summary: str
    """Description of the method in a few words."""


_SHORT = {
    "auto": Method("AutoAggregator", "models averaged, safe if workers err together"),
    "majority-vote": Method("MajorityVote", "the class that most workers chose"),
    "wawa": Method("Wawa", "votes weighted by agreement with the majority"),
    "bwa": Method("BWA", "votes weighted by precision, per class"),
    "zero-based-skill": Method("ZeroBasedSkill", "votes weighted by skills learned iteratively"),
    "mmsr": Method("MMSR", "skills from robust rank-one matrix completion"),
    "kos": Method("KOS", "message passing; treats classes as ordered"),
    "ghosh-svd": Method("GhoshSVD", "leading singular vector; treats classes as ordered"),
    "eigen-ratio": Method("EigenRatio", "ratio of eigenvectors; treats classes as ordered"),
    "one-coin": Method("OneCoinDawidSkene", "EM with one accuracy per worker"),
    "glad": Method("GLAD", "EM with worker ability and task difficulty"),
    "mace": Method("MACE", "EM with workers who either know or spam"),
    "empirical-bayes": Method("EmpiricalBayesDawidSkene", "confusion matrices shrunk by ability"),
    "worker-types": Method("WorkerTypes", "EM with a few types of workers"),
    "dawid-skene": Method("DawidSkene", "EM with a confusion matrix per worker"),
    "ibcc": Method("IBCC", "Dawid–Skene with its parameters integrated out"),
    "ebcc": Method("EBCC", "IBCC with subtypes of tasks: workers may err together"),
    "selective": Method("SelectiveDawidSkene", "Dawid–Skene without uninformative workers"),
    "spectral": Method("SpectralDawidSkene", "Dawid–Skene started by the method of moments"),
}
"""Methods with a name and description of their own: the default, then from simple to elaborate."""

METHODS = _SHORT | {
    command_name(name): Method(name, summary_of(name))
    for name in exported_classes("aggregation")
    if name not in {method.estimator for method in _SHORT.values()}
}
"""Every exported aggregator by the name a user types."""


DEFAULT_METHOD = "auto"
"""Method that is used unless the user chooses another."""

MOST = 2**32 - 1
"""Largest integer that an option accepts; JAX uses only 32 bits of a seed."""

CONTAINERS = (".nc", ".nc4", ".netcdf")
"""Extensions of files of posterior draws, in NetCDF."""

PICTURES = (".png", ".pdf", ".svg")
"""Extensions of the pictures that commands can write."""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors on one line."""

    make_epilog: Callable[[], str] | None = None
    """Function that returns the epilog when the help is shown, if it is not a constant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_help_formatter, **options)

    def format_help(self) -> str:
        """The help text with the epilog."""
        if self.make_epilog is not None:
            self.epilog = self.make_epilog()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Print the message on one line and exit with the code for bad usage."""
        line = " ".join(message.split())
        self.exit(2, f"{self.prog}: {line} (see {self.prog} --help)\n")


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]
else:
    Commands = argparse._SubParsersAction  # argparse has no public name for this class


def make_estimator(name: str, **options: int | None) -> Aggregator:
    """The estimator of a method with these options; an option that is None keeps its default.

    Raises:
        ValueError: the method has no such option.
    """
    import bayescrowd

    estimator = getattr(bayescrowd, METHODS[name].estimator)()
    known = estimator.get_params()
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in known:
            raise ValueError(f"{name} has no option --{option.replace('_', '-')}")
    return estimator.set_params(**given)


def add_reading_options(parser: Parser) -> None:
    """Declare the options with which `read_labels` reads the file of judgements, `args.labels`."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--format",
        choices=(
            "csv",
            "tsv",
            "jsonl",
            "parquet",
            "json",
            "wide",
            "nested",
            "mturk",
            "label-studio",
            "toloka",
        ),
        help="format of the file; 'wide' has a column per judge, 'nested' is JSON of the form "
        "{judge: {task: label}}; default: by extension and content",
    )
    for role in ("task", "worker", "label"):
        reading.add_argument(f"--{role}", metavar="COLUMN", help=f"column of the {role}")
    reading.add_argument(
        "--classes",
        type=comma_separated,
        metavar="A,B,...",
        help="the classes in order; default: the labels found, in natural order",
    )
    reading.add_argument(
        "--duplicates",
        choices=("keep", "error", "first", "last"),
        default="keep",
        help="how to treat repeated judgements of a task by one worker; default: %(default)s",
    )
    add_raw_cells(reading)


def add_raw_cells(group: argparse._ActionsContainer) -> None:
    """Declare the option that reads and writes cells of CSV and TSV files as they are."""
    group.add_argument(
        "--raw-cells",
        action="store_true",
        help="read and write CSV and TSV cells as they are; without it, text that a spreadsheet "
        "would run as a formula (starting with =, +, - or @) is written with an apostrophe in "
        "front, which is removed on reading",
    )


def read_labels(args: argparse.Namespace) -> Annotations:
    """Read the file of judgements according to the reading options."""
    from bayescrowd.io.reading import read_annotations

    return read_annotations(
        args.labels,
        args.format,
        task=args.task,
        worker=args.worker,
        label=args.label,
        classes=args.classes,
        duplicates=args.duplicates,
        raw_cells=args.raw_cells,
    )


def check_outputs(
    *,
    inputs: Sequence[str | None] = (),
    tables: Sequence[str | None] = (),
    pictures: Sequence[str | None] = (),
    containers: Sequence[str | None] = (),
    others: Sequence[str | None] = (),
    journals: Sequence[str | None] = (),
    overwrite: bool,
) -> None:
    """Raise, before any work is done, if an output could not be written later.

    In every list, None stands for an option that was not given.

    Args:
        inputs: files to read.
        tables: files for `write_table`; '-' is standard output.
        pictures: files whose extension must be one of `PICTURES`.
        containers: files whose extension must be one of `CONTAINERS`.
        others: files with any name.
        journals: files with any name, to which lines are appended if they exist.
        overwrite: whether existing outputs may be replaced.

    Raises:
        FileExistsError: a file exists and may not be overwritten.
        OSError: a folder does not exist or cannot be written to.
        ValueError: a file is named twice, is not an ordinary file or has an unknown extension.
    """
    from bayescrowd.io.writing import check_table_target, check_target

    outputs = [*tables, *pictures, *containers, *others, *journals]
    # realpath also accepts circular links; reading and writing refuse them later, by name.
    files = [os.path.realpath(path) for path in (*inputs, *outputs) if path and path != "-"]
    for path in outputs:
        if path is None or (path == "-" and path in tables):
            continue
        for files_of_kind, extensions in ((pictures, PICTURES), (containers, CONTAINERS)):
            if path in files_of_kind and Path(path).suffix.lower() not in extensions:
                raise ValueError(f"{path}: expected a name that ends in {', '.join(extensions)}")
        if files.count(os.path.realpath(path)) > 1:
            raise ValueError(f"{path}: named twice; expected a separate file for each output")
        check = check_table_target if path in tables else check_target
        try:
            check(path, overwrite=overwrite or path in journals)
        except FileExistsError:
            raise FileExistsError(f"{path}: the file exists; --force overwrites it") from None


def method_name(text: str) -> str:
    """Argument type: the name of a method."""
    if text not in METHODS:
        raise argparse.ArgumentTypeError(
            f"no method {text!r}; expected one of {', '.join(METHODS)}"
        )
    return text


def natural_number(text: str) -> int:
    """Argument type: 0, 1, 2, ..."""
    return _integer(text, least=0)


def positive_number(text: str) -> int:
    """Argument type: 1, 2, 3, ..."""
    return _integer(text, least=1)


def comma_separated(text: str) -> list[str]:
    """Argument type: names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names separated by commas")
    return names


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=28)


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = MOST + 1 if text.isdecimal() else least - 1  # Python refuses very long integers
    if number < least:
        raise argparse.ArgumentTypeError(
            f"{shorten(text, 40)!r}: expected an integer of at least {least}"
        )
    if number > MOST:
        raise argparse.ArgumentTypeError(
            f"{shorten(text, 40)!r}: expected an integer of at most {MOST}"
        )
    return number
