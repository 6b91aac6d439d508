"""`bayescrowd workers`: rank workers without knowing the truth, and keep the best."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import (
    LABELS_HELP,
    Commands,
    add_reading_options,
    check_outputs,
    natural_number,
    positive_number,
    read_labels,
)
from bayescrowd.cli.text import align
from bayescrowd.data.text import quantity, shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.data.annotations import Annotations
    from bayescrowd.selection.workers.mutual_information import MutualInformationSelector

__all__ = ["add_to"]

N_SHOWN = 10
"""Number of workers shown in the summary."""

_DESCRIPTION = """\
Rank workers by how much one of their labels says about the true class, which takes no true labels
to estimate, and keep those who add something: a worker who answers at random says nothing."""

_EPILOG = """\
how many are kept:
  --top N keeps the N best. --auto, the default, lets --rule decide: 'held-out' keeps the fewest
  workers whose labels predict those of held-out tasks as well as any number of workers does; 'knee'
  stops where the scores level off; '95%' stops at 95 % of their sum.

estimators:
  'class', the default, is the information of one label about the class. It does not grow with the
  number of labels, and workers with few labels are judged by the crowd. The others measure the
  information that a worker shares with each other worker, and add it up: 'paper' is Zhao and
  Zucker's, which ranks workers with many labels first. --heuristic subset needs one of these.

flags:
  An 'adversary' is a worker whose labels are beyond doubt worse than guessing: they mislead a vote,
  but say much to an aggregator that learns to reverse them. The labels of a 'spammer' say next to
  nothing.

input:
  As for 'bayescrowd aggregate': CSV, TSV, JSON, Parquet or a platform's export, with one row per
  judgement or, for panels of judges, one column per judge; or a data set by its name (bluebird).

output:
  A summary is printed. --out writes the judgements of the kept workers (task, worker, label) and
  --scores one row per worker, best first (rank, worker, score, n_labels, selected, accuracy,
  flag), in the format of the extension: .csv, .tsv, .jsonl (each also with .gz) or .parquet; '-'
  prints CSV. --plot draws the scores: .png, .pdf or .svg. --json prints one JSON document and no
  summary. Scores are in nats; accuracy and flag are those of 'bayescrowd aggregate'.

exit codes:
  0 done, 2 bad input or usage, 1 a fault of ours

examples:
  bayescrowd workers labels.csv
  bayescrowd workers labels.csv --top 20 --out reduced.csv --plot scores.png
  bayescrowd workers labels.csv --scores - | head"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "workers",
        help="rank workers without knowing the truth, and keep the best",
        usage="bayescrowd workers LABELS [--top N | --auto] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.set_defaults(run=_run)
    parser.add_argument("labels", metavar="LABELS", help=LABELS_HELP)
    number = parser.add_mutually_exclusive_group()
    number.add_argument("--top", type=positive_number, metavar="N", help="keep the N best workers")
    number.add_argument(
        "--auto", action="store_true", help="let --rule decide how many to keep (default)"
    )
    choice = parser.add_argument_group("selection")
    choice.add_argument(
        "--rule",
        choices=("held-out", "knee", "95%"),
        help="how --auto decides how many to keep; default: held-out",
    )
    choice.add_argument(
        "--heuristic",
        choices=("score", "subset"),
        default="score",
        help="rank by each worker's score, or search the subset whose workers share the most "
        "information; default: %(default)s",
    )
    choice.add_argument(
        "--estimator",
        choices=("class", "paper", "co-labelled", "miller-madow", "chi-square"),
        default="class",
        help="estimator of the information; default: %(default)s",
    )
    choice.add_argument(
        "--seed", type=natural_number, metavar="N", default=0, help="seed; default: 0"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", metavar="FILE", help="write the judgements of the kept workers; - prints them"
    )
    output.add_argument(
        "--scores", metavar="FILE", help="write a table with one row per worker; - prints it"
    )
    output.add_argument("--plot", metavar="FILE", help="draw the scores")
    output.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the summary"
    )
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    add_reading_options(parser)


def _run(args: argparse.Namespace) -> int:
    _check_arguments(args)
    annotations = _read(args)
    selector = _select_workers(args, annotations)
    scores = _score_table(selector, annotations)
    reduced = selector.transform(annotations)
    _write(args, selector, scores, reduced)
    if args.json:
        document = _document(args, annotations, reduced, selector, scores)
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    else:
        summary = sys.stderr if "-" in (args.out, args.scores) else sys.stdout
        print(_summary(args, annotations, reduced, scores), file=summary)
    return 0


def _check_arguments(args: argparse.Namespace) -> None:
    """Raise before any work is done if the arguments contradict each other."""
    if args.top is not None and args.rule is not None:
        raise ValueError("--rule says how --auto decides; it cannot be given with --top")
    if args.heuristic == "subset" and args.estimator == "class":
        raise ValueError(
            "--heuristic subset compares pairs of workers; expected --estimator paper, "
            "co-labelled, miller-madow or chi-square"
        )
    if [args.out, args.scores].count("-") + args.json > 1:
        raise ValueError("only one of --out -, --scores - and --json can print")
    check_outputs(
        inputs=[args.labels],
        tables=[args.out, args.scores],
        pictures=[args.plot],
        overwrite=args.force,
    )


def _read(args: argparse.Namespace) -> Annotations:
    from bayescrowd.cli.progress import stage

    with stage(f"reading {args.labels}"):
        return read_labels(args)


def _select_workers(
    args: argparse.Namespace, annotations: Annotations
) -> MutualInformationSelector:
    from bayescrowd.cli.progress import iterations
    from bayescrowd.selection.workers.mutual_information import MutualInformationSelector

    if args.top is not None and args.top > annotations.n_workers:
        raise ValueError(f"--top {args.top}: there are {annotations.n_workers:,} workers")
    selector = MutualInformationSelector(
        "auto" if args.top is None else args.top,
        heuristic=args.heuristic,
        estimator=args.estimator,
        rule=args.rule or "held-out",
        seed=args.seed,
    )
    with iterations("ranking workers"):
        return selector.fit(annotations)


def _score_table(selector: MutualInformationSelector, annotations: Annotations) -> pd.DataFrame:
    """One row per worker, best first."""
    import pandas as pd

    from bayescrowd.aggregation.auto.aggregator import aggregate

    ranking = selector.ranking_
    quality = aggregate(annotations).worker_quality_.loc[ranking]
    return pd.DataFrame(
        {
            "rank": range(1, len(ranking) + 1),
            "worker": ranking,
            "score": selector.scores_[ranking].to_numpy(),
            "n_labels": quality["n_labels"].to_numpy(),
            "selected": ranking.isin(selector.selected_),
            "accuracy": quality["accuracy"].to_numpy(),
            "flag": quality["flag"].to_numpy(),
        }
    )


def _write(
    args: argparse.Namespace,
    selector: MutualInformationSelector,
    scores: pd.DataFrame,
    reduced: Annotations,
) -> None:
    from bayescrowd.io.writing import csv_text, write_picture, write_table

    for path, table in ((args.out, reduced.to_frame()), (args.scores, scores)):
        if path == "-":
            print(csv_text(table, raw_cells=args.raw_cells), end="")
        elif path is not None:
            write_table(table, path, overwrite=args.force, raw_cells=args.raw_cells)
    if args.plot is not None:
        from matplotlib.figure import Figure

        from bayescrowd.plots.selection import score_curve

        figure = Figure(figsize=(6.4, 4.2), dpi=150, layout="constrained")
        score_curve(selector, figure.subplots())
        write_picture(figure, args.plot, overwrite=args.force)


def _document(
    args: argparse.Namespace,
    annotations: Annotations,
    reduced: Annotations,
    selector: MutualInformationSelector,
    scores: pd.DataFrame,
) -> dict[str, Any]:
    """Everything that was found, for machines."""
    held_out = selector.curve_["held_out"].dropna()
    return {
        "bayescrowd": __version__,
        "input": {
            "source": _source(args),
            "n_labels": annotations.n_labels,
            "n_tasks": annotations.n_tasks,
            "n_workers": annotations.n_workers,
            "n_classes": annotations.n_classes,
            "n_dropped": annotations.n_dropped,
        },
        "selection": {
            "rule": _rule(args),
            "heuristic": args.heuristic,
            "estimator": args.estimator,
            "n_workers": reduced.n_workers,
            "n_labels": reduced.n_labels,
            "n_tasks_without_labels": _n_uncovered(reduced),
            "held_out": [
                {"n_workers": int(n), "log_likelihood": float(value)}
                for n, value in zip(held_out.index, held_out, strict=True)
            ],
        },
        "workers": scores.to_dict("records"),
    }


def _summary(
    args: argparse.Namespace, annotations: Annotations, reduced: Annotations, scores: pd.DataFrame
) -> str:
    read = (
        f"{_source(args)}: {quantity(annotations.n_labels, 'label')} of "
        f"{quantity(annotations.n_tasks, 'task')} by {quantity(annotations.n_workers, 'worker')}, "
        f"{quantity(annotations.n_classes, 'class', 'classes')}"
    )
    kept = (
        f"kept ({_rule(args)}): {reduced.n_workers:,} of "
        f"{quantity(annotations.n_workers, 'worker')}, {reduced.n_labels:,} of "
        f"{quantity(annotations.n_labels, 'label')}"
    )
    if uncovered := _n_uncovered(reduced):
        kept += f"\n  {quantity(uncovered, 'task')} without any label left"
    rows = [["rank", "worker", "score", "labels", "kept", "flag"]]
    for row in scores.head(N_SHOWN).itertuples(index=False):
        kept_mark = "yes" if row.selected else "no"
        name = shorten(row.worker, 32)
        rows.append(
            [f"{row.rank}", name, f"{row.score:.4f}", f"{row.n_labels:,}", kept_mark, f"{row.flag}"]
        )
    kind = "of one label about the class" if args.estimator == "class" else "shared with all others"
    title = f"workers by score (information {kind}, nats)"
    if len(scores) > N_SHOWN:
        title += f"; --scores FILE writes all {len(scores):,}"
    paragraphs = [read, kept, f"{title}\n{align(rows, left=(1, 4, 5))}"]
    written = [
        f"{path}: {what} written"
        for path, what in (
            (args.out, quantity(reduced.n_labels, "label")),
            (args.scores, quantity(len(scores), "worker")),
            (args.plot, "picture"),
        )
        if path not in (None, "-")
    ]
    if written:
        paragraphs.append("\n".join(written))
    return "\n\n".join(paragraphs)


def _rule(args: argparse.Namespace) -> str:
    return f"top {args.top}" if args.top is not None else args.rule or "held-out"


def _source(args: argparse.Namespace) -> str:
    return "standard input" if args.labels == "-" else args.labels


def _n_uncovered(reduced: Annotations) -> int:
    return int((reduced.labels_per_task == 0).sum())
