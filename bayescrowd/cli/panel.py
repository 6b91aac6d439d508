"""`bayescrowd panel`: everything about a panel of judges, from a file of their verdicts."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING, Any

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    Commands,
    add_reading_options,
    check_outputs,
    comma_separated,
    natural_number,
    positive_number,
)
from bayescrowd.cli.inputs import read_input, read_known, say
from bayescrowd.cli.known_labels import two_names
from bayescrowd.data.text import quantity

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations
    from bayescrowd.io.verdicts import Verdicts
    from bayescrowd.panel.findings import PanelReport

__all__ = ["add_to"]

_DESCRIPTION = """\
Report on a panel of judges, such as language models: labels with cautious probabilities, the
number of independent votes that they amount to, who repeats whom, swap consistency, what dropping a
judge would cost, and with gold labels each judge's accuracy and the pass rate with an interval."""

_EPILOG = """\
input:
  A table with one row per verdict (task, judge, label), a wide table with one column per judge, or
  a JSON object {judge: {task: label}}: CSV, TSV, JSON, JSON lines or Parquet, text also gzipped.
  A judge without a row for a task was never asked. One who was asked and gave no verdict abstained:
  the label of its row is empty, or is one of those that --abstain names. Abstentions are counted
  and are no class; an empty cell of a wide table counts as never asked, unless --abstain ''.
  --gold is a table with a task and its true label per row, of tasks that were chosen at random or
  by --suggest, whose weights --gold-weights takes into account in the shares of the classes.

what needs gold:
  Accuracies and intervals of shares. Judges who err together make each other look good: labels
  alone can rank judges upside down, and the panel's own share can be far off. Without gold, the
  report says so and gives neither.

output:
  Tables are printed, or with --json one JSON document. --share prints the share of each class
  only: post-stratified, and PPI++, Rogan-Gladen and the gold alone beside it.
  --out writes one row per task: label, probability (of that label), entropy (nats), n_votes,
  n_abstained, and the probability of each class; --judges one row per judge. '-' prints CSV and
  sends the tables to standard error. --plot draws the report: .png, .pdf or .svg.
  --suggest writes the tasks that are best sent for gold next, with an empty label to fill in and
  their weights.
  Judges whose names end in --orders (by default /plain and /swap) and are otherwise the same are
  one judge asked in two orders. Verdicts name the content: a consistent judge gives the same label
  in both orders. With --positions they name the position, and a consistent judge gives the other.
  The cost of dropping a judge comes from refits without it; large panels are compared on a sample
  of their tasks. Dropping judges is not reliably free.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd panel verdicts.csv
  bayescrowd panel verdicts.csv --abstain unsure,error --suggest 20 to_label.csv
  bayescrowd panel verdicts.csv --gold to_label.csv --gold-weights weight --plot panel.png
  bayescrowd panel verdicts.csv --gold human.csv --share --positive pass"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "panel",
        help="report on a panel of judges: dependence, accuracy, pass rate",
        usage="bayescrowd panel VERDICTS [--gold FILE] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.set_defaults(run=_run)
    parser.add_argument(
        "verdicts",
        metavar="VERDICTS",
        help="file of verdicts; - reads standard input; or the name of a data set",
    )
    gold = parser.add_argument_group("gold")
    gold.add_argument("--gold", metavar="FILE", help="true labels of some tasks")
    gold.add_argument(
        "--gold-columns",
        type=two_names,
        metavar="TASK,LABEL",
        default=(None, None),
        help="columns of the gold file, if their names are not recognised",
    )
    gold.add_argument(
        "--gold-weights",
        metavar="COLUMN",
        help="column of the gold file with the weights of tasks that --suggest chose",
    )
    gold.add_argument(
        "--suggest",
        nargs=2,
        metavar=("N", "FILE"),
        help="write N tasks to send for gold to a table, with their weights",
    )
    panel = parser.add_argument_group("panel")
    panel.add_argument(
        "--abstain",
        type=_values,
        metavar="A,B,...",
        default=[],
        help="labels that are no verdicts, such as unsure,error",
    )
    panel.add_argument(
        "--positive",
        metavar="CLASS",
        help="class whose share is the pass rate; default: pass, correct, true, yes or the like",
    )
    panel.add_argument(
        "--orders",
        type=_two_endings,
        metavar="FIRST,SECOND",
        help="endings of the names of judges asked in two orders; default: /plain,/swap",
    )
    panel.add_argument(
        "--positions",
        action="store_true",
        help="verdicts of such judges name the position and not the content",
    )
    panel.add_argument(
        "--drop",
        type=natural_number,
        metavar="N",
        default=12,
        help="largest number of judges to refit without, 0 for none; default: %(default)s",
    )
    panel.add_argument(
        "--level",
        type=_level,
        metavar="P",
        default=0.9,
        help="probability of the intervals; default: %(default)s",
    )
    panel.add_argument(
        "--seed",
        type=natural_number,
        metavar="N",
        default=0,
        help="seed of the random choices; default: %(default)s",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--share", action="store_true", help="print the share of each class only; needs --gold"
    )
    output.add_argument("--out", metavar="FILE", help="write a table of tasks; - prints it")
    output.add_argument("--judges", metavar="FILE", help="write a table of judges; - prints it")
    output.add_argument("--plot", metavar="FILE", help="draw the report")
    output.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the tables"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    add_reading_options(parser)


def _run(args: argparse.Namespace) -> int:
    n_suggested = _check_arguments(args)
    from bayescrowd.cli.progress import iterations, stage

    with stage(f"reading {args.verdicts}"):
        verdicts, gold, weights = _read(args)
    _check_panel(args, verdicts.annotations, n_suggested, 0 if gold is None else len(gold))
    positive = _positive(verdicts.annotations, args.positive, gold)
    if args.share:
        with iterations("panel"):
            return _run_share(args, verdicts, gold, weights, positive)
    from bayescrowd.gold.suggestions import suggest_gold
    from bayescrowd.panel.report import panel_report

    with iterations("panel"):
        report = panel_report(
            verdicts,
            gold,
            orders=args.orders or ("/plain", "/swap"),
            naming="position" if args.positions else "content",
            weights=weights,
            most_dropped=args.drop,
            level=args.level,
            seed=args.seed,
        )
    suggested = None
    if n_suggested:
        suggested = suggest_gold(report.estimator, n_suggested, seed=args.seed, gold=gold)
    _write(args, report, suggested, positive)
    if args.json:
        from bayescrowd.cli.panel_json import json_text, report_document

        print(json_text(report_document(report, _source(args), positive)))
    else:
        from bayescrowd.cli.panel_text import report_text

        target = sys.stderr if "-" in (args.out, args.judges) else sys.stdout
        print(report_text(report, _source(args), positive), file=target)
        for line in _written(args, report, suggested):
            print(line, file=target)
    return 0


def _check_arguments(args: argparse.Namespace) -> int:
    """Raise before any work is done if options contradict each other; the number to suggest."""
    if args.share and args.gold is None:
        raise ValueError(
            "--share needs --gold: without gold, no interval of a share is honest (--suggest "
            "chooses tasks to send for gold)"
        )
    if args.gold is None and (args.gold_weights or any(args.gold_columns)):
        raise ValueError("--gold-weights and --gold-columns are about --gold, which is not given")
    if [args.verdicts, args.gold].count("-") > 1:
        raise ValueError("only one of the files can come from standard input")
    if args.gold == "-" and args.gold_weights:
        raise ValueError("--gold-weights reads the gold file twice; expected a file, not -")
    outputs = [args.out, args.judges]
    others = [args.plot, None if args.suggest is None else args.suggest[1]]
    if args.share and any(path is not None for path in (*outputs, *others)):
        raise ValueError("--share prints shares only; --out, --judges, --plot and --suggest do not")
    if outputs.count("-") + args.json > 1:
        raise ValueError("only one of --out -, --judges - and --json can print")
    n_suggested, suggest_to = 0, None
    if args.suggest is not None:
        try:
            n_suggested, suggest_to = positive_number(args.suggest[0]), args.suggest[1]
        except argparse.ArgumentTypeError as error:
            raise ValueError(f"--suggest N FILE: {error}") from None
        if suggest_to == "-":
            raise ValueError("--suggest writes to a file; expected its name, not -")
    check_outputs(
        inputs=[args.verdicts, args.gold],
        tables=[*outputs, suggest_to],
        pictures=[args.plot],
        overwrite=args.force,
    )
    return n_suggested


def _read(
    args: argparse.Namespace,
) -> tuple[Verdicts, pd.Series | None, pd.Series | None]:
    from bayescrowd.data.truth import TruthWarning
    from bayescrowd.io.reading import read_truth
    from bayescrowd.io.verdicts import verdicts_of

    source, rows = read_input(args.verdicts, args)
    verdicts = verdicts_of(
        source, rows, args.classes, args.duplicates, args.abstain, tidy=args.tidy
    )
    ann = verdicts.annotations
    say(ann.notes)
    known = read_known(args, "gold", ann)
    if known is None:
        return verdicts, None, None
    gold = known.labels
    if args.gold_weights is None:
        return verdicts, gold, None
    task, _ = args.gold_columns
    with warnings.catch_warnings():  # what there is to warn of was said with the labels
        warnings.simplefilter("ignore", TruthWarning)
        weights = read_truth(args.gold, ann, task=task, label=args.gold_weights, name="gold")
    return verdicts, gold, _numbers(weights, args)


def _numbers(weights: pd.Series, args: argparse.Namespace) -> pd.Series:
    import pandas as pd

    from bayescrowd.data.vocabulary import plain

    found = pd.to_numeric(weights.astype(str), errors="coerce")
    bad = ~(found > 0) | (found == float("inf"))
    if bad.any():
        task, value = plain(weights.index[bad][0]), plain(weights[bad].iloc[0])
        raise ValueError(
            f"{args.gold}: column {args.gold_weights!r}: the weight {value!r} of task {task!r} is "
            "no finite number above 0"
        )
    return found


def _check_panel(args: argparse.Namespace, ann: Annotations, n_suggested: int, n_gold: int) -> None:
    """Raise before any fit if the panel has not what the options ask for."""
    from bayescrowd.panel.swaps import paired_orders

    if n_suggested > ann.n_tasks - n_gold:
        raise ValueError(
            f"--suggest {n_suggested:,}: {quantity(ann.n_tasks - n_gold, 'task')} without gold; "
            "expected at most that many"
        )
    pairs = paired_orders(ann.workers, args.orders or ("/plain", "/swap"))
    if args.orders and not pairs:
        raise ValueError(
            f"--orders: no two judges have the same name but for the endings {args.orders[0]!r} "
            f"and {args.orders[1]!r} (judges are such as {str(ann.workers[0])!r})"
        )
    if args.positions and not pairs:
        raise ValueError("--positions: no judge was asked in two orders; --orders names them")


USUAL_POSITIVES = ("pass", "passed", "correct", "right", "true", "yes", "y", "good", "positive")
"""Names of classes whose share is a pass rate."""


def _positive(ann: Annotations, named: str | None, gold: pd.Series | None) -> Any:
    """The class whose share is the pass rate, None if there is none."""
    classes = list(ann.classes) if gold is None else list(ann.with_classes(gold.unique()).classes)
    spelled = {str(name): name for name in classes}
    if named is not None:
        if named not in spelled:
            raise ValueError(
                f"--positive: no class {named!r}; expected one of {', '.join(spelled)}"
            )
        return spelled[named]
    if set(spelled) == {"0", "1"}:
        return spelled["1"]
    usual = [name for text, name in spelled.items() if text.strip().lower() in USUAL_POSITIVES]
    return usual[0] if len(usual) == 1 else None


def _run_share(
    args: argparse.Namespace,
    verdicts: Verdicts,
    gold: pd.Series | None,
    weights: pd.Series | None,
    positive: Any,
) -> int:
    from bayescrowd.cli.panel_text import share_lines
    from bayescrowd.gold.prevalence import prevalence

    assert gold is not None  # checked with the arguments
    found = prevalence(
        verdicts.annotations, gold, level=args.level, seed=args.seed, weights=weights
    )
    if args.json:
        from bayescrowd.cli.panel_json import json_text, shares_document

        document = {"bayescrowd": __version__, "source": _source(args), "positive": positive}
        print(json_text(document | {"shares": shares_document(found)}))
    else:
        n_tasks = quantity(verdicts.annotations.n_tasks, "task")
        print(f"{_source(args)}: {n_tasks}, {quantity(found.n_gold, 'gold label')}\n")
        print(share_lines(found, positive))
    return 0


def _write(
    args: argparse.Namespace, report: PanelReport, suggested: pd.DataFrame | None, positive: Any
) -> None:
    from bayescrowd.cli.panel_json import judge_table
    from bayescrowd.cli.progress import stage
    from bayescrowd.io.writing import csv_text, write_picture, write_table

    tables = [(args.out, report.tasks.reset_index()), (args.judges, judge_table(report))]
    if suggested is not None:
        # The label is there to be filled in, so that the same file can come back as gold.
        to_fill = suggested.rename_axis("task").reset_index()
        to_fill.insert(1, "label", "")
        tables.append((args.suggest[1], to_fill))
    for path, table in tables:
        if path == "-":
            print(csv_text(table, raw_cells=args.raw_cells), end="")
        elif path is not None:
            with stage(f"writing {path}"):
                write_table(table, path, overwrite=args.force, raw_cells=args.raw_cells)
    if args.plot is not None:
        from matplotlib.figure import Figure

        from bayescrowd.plots.panel import panel_overview

        with stage(f"drawing {args.plot}"):
            figure = Figure(figsize=(14, 10), dpi=110, layout="constrained")
            panel_overview(report, positive=positive, fig=figure)
            write_picture(figure, args.plot, overwrite=args.force)


def _written(
    args: argparse.Namespace, report: PanelReport, suggested: pd.DataFrame | None
) -> list[str]:
    files = [
        (args.out, quantity(len(report.probas), "task")),
        (args.judges, quantity(len(report.judges), "judge")),
        (args.plot, "picture"),
    ]
    if suggested is not None:
        files.append((args.suggest[1], f"{quantity(len(suggested), 'task')} to send for gold"))
    lines = [f"{path}: {what} written" for path, what in files if path not in (None, "-")]
    return ["", *lines] if lines else []


def _source(args: argparse.Namespace) -> str:
    return "standard input" if args.verdicts == "-" else str(args.verdicts)


def _two_endings(text: str) -> tuple[str, str]:
    names = comma_separated(text)
    if len(names) != 2 or names[0] == names[1]:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected two different endings, such as /plain,/swap"
        )
    return names[0], names[1]


def _values(text: str) -> list[str]:
    """Argument type: labels separated by commas, of which one may be empty."""
    return list(dict.fromkeys(value.strip() for value in text.split(",")))


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number between 0 and 1")
    return level
