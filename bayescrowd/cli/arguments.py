"""What the commands' arguments share: one-line errors, types, files, the methods' names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from bayescrowd.cli.exports import command_name, exported_classes, summary_of

if TYPE_CHECKING:
    from bayescrowd.aggregation.protocol import Aggregator
    from bayescrowd.data.annotations import Annotations

__all__ = [
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
    """A method of aggregation as the command line offers it."""

    estimator: str
    """Its public name in `bayescrowd`."""
    summary: str
    """What it does, in a few words."""


_SHORT = {
    "auto": Method("AutoAggregator", "an average of models that needs no choice"),
    "majority-vote": Method("MajorityVote", "the class most workers chose"),
    "wawa": Method("Wawa", "votes weighted by agreement with the majority"),
    "zero-based-skill": Method("ZeroBasedSkill", "votes weighted by skills learned from nothing"),
    "mmsr": Method("MMSR", "skills by robust rank-one completion of agreement"),
    "kos": Method("KOS", "messages between tasks and workers; classes as ordered"),
    "ghosh-svd": Method("GhoshSVD", "leading singular vector; classes as ordered"),
    "eigen-ratio": Method("EigenRatio", "ratio of eigenvectors; classes as ordered"),
    "one-coin": Method("OneCoinDawidSkene", "EM with one accuracy per worker"),
    "glad": Method("GLAD", "EM with worker ability and task difficulty"),
    "mace": Method("MACE", "EM with workers who know or spam"),
    "empirical-bayes": Method("EmpiricalBayesDawidSkene", "matrices regularised by ability"),
    "worker-types": Method("WorkerTypes", "a few types of workers"),
    "dawid-skene": Method("DawidSkene", "EM with a confusion matrix per worker"),
    "selective": Method("SelectiveDawidSkene", "Dawid–Skene without workers who know nothing"),
    "spectral": Method("SpectralDawidSkene", "Dawid–Skene from a start by moments"),
}
"""The default, then simple methods first, described in fewer words than by their docstrings."""

METHODS = _SHORT | {
    command_name(name): Method(name, summary_of(name))
    for name in exported_classes("aggregation")
    if name not in {method.estimator for method in _SHORT.values()}
}
"""Every exported aggregator by the name a user types."""


DEFAULT_METHOD = "auto"
"""What is used unless the user says otherwise."""


MOST = 2**32 - 1
"""The largest integer an option takes; of a longer seed JAX would use 32 bits only."""

PICTURES = (".png", ".pdf", ".svg")
"""Extensions of the pictures that commands draw."""


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    make_epilog: Callable[[], str] | None = None
    """Makes the epilog when the help is shown, if that takes more than a constant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_help_formatter, **options)

    def format_help(self) -> str:
        """The help, its epilog included."""
        if self.make_epilog is not None:
            self.epilog = self.make_epilog()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Print the line and leave with the exit code of bad usage."""
        line = " ".join(message.split())
        self.exit(2, f"{self.prog}: {line} (see {self.prog} --help)\n")


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]
else:
    Commands = argparse._SubParsersAction  # a private class, and the only name it has


def make_estimator(name: str, **options: int | None) -> Aggregator:
    """The method's estimator with these options; those that are None keep their defaults.

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
    """Declare how the file of judgements, `args.labels`, is read; see `read_labels`."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--format",
        choices=("csv", "tsv", "jsonl", "parquet", "mturk", "label-studio", "toloka"),
        help="default: by extension and content",
    )
    for role in ("task", "worker", "label"):
        reading.add_argument(f"--{role}", metavar="COLUMN", help=f"column of the {role}")
    reading.add_argument(
        "--classes",
        type=comma_separated,
        metavar="A,B,...",
        help="the classes in order; default: those found, in natural order",
    )
    reading.add_argument(
        "--duplicates",
        choices=("keep", "error", "first", "last"),
        default="keep",
        help="repeated judgements of one task by one worker; default: %(default)s",
    )
    add_raw_cells(reading)


def add_raw_cells(group: argparse._ActionsContainer) -> None:
    """Declare that cells of CSV and TSV files are read and written as they are."""
    group.add_argument(
        "--raw-cells",
        action="store_true",
        help="neither put an apostrophe before text in CSV and TSV that a spreadsheet would run "
        "as a formula (=, +, -, @ in front), nor take it off on reading",
    )


def read_labels(args: argparse.Namespace) -> Annotations:
    """Read the file of judgements as the reading options say."""
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
    others: Sequence[str | None] = (),
    journals: Sequence[str | None] = (),
    overwrite: bool,
) -> None:
    """Raise, before any work is done, if an output could not be written in the end.

    Args:
        inputs: files that are read; None stands for an option that was not given, here and below.
        tables: files for `write_table`; '-' is standard output.
        pictures: files whose extension must be one of `PICTURES`.
        others: files of any name.
        journals: likewise, but an existing one is continued instead of refused.
        overwrite: whether existing outputs may be replaced.

    Raises:
        FileExistsError: a file exists and may not be overwritten.
        OSError: a folder does not exist or cannot be written to.
        ValueError: a file is named twice, is not an ordinary file or has an unknown extension.
    """
    from bayescrowd.io.writing import check_table_target, check_target

    outputs = [*tables, *pictures, *others, *journals]
    # realpath resolves loops of links, too; reading and writing then refuse them by name.
    files = [os.path.realpath(path) for path in (*inputs, *outputs) if path and path != "-"]
    for path in outputs:
        if path is None or (path == "-" and path in tables):
            continue
        if path in pictures and Path(path).suffix.lower() not in PICTURES:
            raise ValueError(f"{path}: expected a name that ends in {', '.join(PICTURES)}")
        if files.count(os.path.realpath(path)) > 1:
            raise ValueError(f"{path}: named twice; expected a file of its own for the output")
        check = check_table_target if path in tables else check_target
        try:
            check(path, overwrite=overwrite or path in journals)
        except FileExistsError:
            raise FileExistsError(f"{path}: the file exists; --force overwrites it") from None


def method_name(text: str) -> str:
    """Argument type: the name of a method."""
    if text not in METHODS:
        raise argparse.ArgumentTypeError(f"no method {text!r}; there are {', '.join(METHODS)}")
    return text


def natural_number(text: str) -> int:
    """Argument type: 0, 1, 2, ..."""
    return _integer(text, least=0)


def positive_number(text: str) -> int:
    """Argument type: 1, 2, 3, ..."""
    return _integer(text, least=1)


def comma_separated(text: str) -> list[str]:
    """Argument type: names with commas between them."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names with commas between them")
    return names


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=28)


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = MOST + 1 if text.isdecimal() else least - 1  # more digits than Python reads
    if number < least:
        raise argparse.ArgumentTypeError(f"{_shown(text)}: expected an integer of at least {least}")
    if number > MOST:
        raise argparse.ArgumentTypeError(f"{_shown(text)}: expected an integer of at most {MOST}")
    return number


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
