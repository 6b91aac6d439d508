"""`bayescrowd aggregate --fit`: labels of new tasks by the raters of a saved fit."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd._version import __version__
from bayescrowd.cli.arguments import DEFAULT_METHOD, check_outputs, read_labels
from bayescrowd.cli.inputs import read_known, use_own_truth
from bayescrowd.cli.task_tables import first_tasks, task_table
from bayescrowd.data.text import quantity

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.aggregation.protocol import Aggregator
    from bayescrowd.data.annotations import Annotations
    from bayescrowd.metrics import Scores

__all__ = ["label_new_tasks"]


class _Outcome(NamedTuple):
    """What the command reports."""

    estimator: Aggregator
    annotations: Annotations
    """The new labels, with the classes of the fit."""
    n_known: int
    """Number of raters whom the fit knows."""
    n_labels_of_unknown: int
    """Number of labels by raters whom it does not know."""
    n_ties: int
    tasks: pd.DataFrame
    scores: Scores | None

    @property
    def n_unknown(self) -> int:
        """Number of raters whom the fit does not know."""
        return self.annotations.n_workers - self.n_known


def label_new_tasks(args: argparse.Namespace) -> int:
    """Run the command: predict the tasks of `args.labels` under the fit in `args.fit`."""
    use_own_truth(args)
    _check(args)
    outcome = _predict(args)
    _write(outcome, args)
    if args.json:
        print(json.dumps(_document(outcome, args), indent=2, ensure_ascii=False, default=str))
    else:
        print(_summary(outcome, args), file=sys.stderr if args.out == "-" else sys.stdout)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise if options ask for a fit, or if the files contradict each other."""
    given = {
        "method": None if args.method == DEFAULT_METHOD else args.method,
        **{name: getattr(args, name) for name in ("gold", "predictions")},
        **{name: getattr(args, name) for name in ("workers", "save", "plot")},
        **{name.replace("_", "-"): getattr(args, name) for name in ("seed", "n_init", "n_iter")},
    }
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"--{name} belongs to a new fit; expected --fit without it, since a saved fit "
                "labels new tasks as it is"
            )
    inputs = [args.labels, args.truth, args.fit]
    if inputs.count("-") > 1:
        raise ValueError("only one of the files can come from standard input")
    if args.out == "-" and args.json:
        raise ValueError("only one of --out - and --json can print")
    check_outputs(inputs=inputs, tables=[args.out], overwrite=args.force)


def _predict(args: argparse.Namespace) -> _Outcome:
    from bayescrowd.aggregation.votes import decide
    from bayescrowd.cli.progress import stage
    from bayescrowd.data.matching import match_ids, take_classes
    from bayescrowd.data.vocabulary import text_of
    from bayescrowd.metrics import score_table
    from bayescrowd.saved_fits.loading import load

    with stage(f"reading {args.fit}"):
        est = load(args.fit)
    with stage(f"reading {args.labels}"):
        # New tasks need not show every class, and files may write them in another type.
        args.classes = args.classes or [text_of(name) for name in est.classes_]
        ann = take_classes(read_labels(args), est.classes_)
        known = read_known(args, "truth", ann)
        truth = None if known is None else known.labels
    with stage(f"labelling with {args.fit}"):
        probas = est.predict_proba(ann)
    labels, n_ties = decide(probas, est.seed)
    is_known = match_ids(ann.workers, est.workers_) >= 0
    return _Outcome(
        estimator=est,
        annotations=ann,
        n_known=int(is_known.sum()),
        n_labels_of_unknown=int(ann.labels_per_worker[~is_known].sum()),
        n_ties=n_ties,
        tasks=task_table(labels, probas, ann, every_class=args.probabilities),
        scores=None if truth is None else score_table(probas, truth),
    )


def _write(outcome: _Outcome, args: argparse.Namespace) -> None:
    from bayescrowd.io.writing import csv_text, write_table

    if args.out == "-":
        print(csv_text(outcome.tasks, raw_cells=args.raw_cells), end="")
    elif args.out is not None:
        write_table(outcome.tasks, args.out, overwrite=args.force, raw_cells=args.raw_cells)


def _document(outcome: _Outcome, args: argparse.Namespace) -> dict[str, Any]:
    """Everything that was found, for machines."""
    ann, est = outcome.annotations, outcome.estimator
    return {
        "bayescrowd": __version__,
        "fit": {
            "source": args.fit,
            "estimator": type(est).__name__,
            "n_tasks": len(est.labels_),
            "n_workers": len(est.workers_),
            "classes": [str(name) for name in est.classes_],
        },
        "input": {
            "source": "standard input" if args.labels == "-" else args.labels,
            "n_labels": ann.n_labels,
            "n_tasks": ann.n_tasks,
            "n_workers": ann.n_workers,
            "n_known_workers": outcome.n_known,
            "n_unknown_workers": outcome.n_unknown,
            "n_labels_of_unknown_workers": outcome.n_labels_of_unknown,
        },
        "n_ties": outcome.n_ties,
        "scores": None if outcome.scores is None else outcome.scores._asdict(),
        "tasks": outcome.tasks.to_dict("records"),
    }


def _summary(outcome: _Outcome, args: argparse.Namespace) -> str:
    ann, est, n_unknown = outcome.annotations, outcome.estimator, outcome.n_unknown
    source = "standard input" if args.labels == "-" else args.labels
    workers = quantity(ann.n_workers, "worker")
    counts = f"{quantity(ann.n_labels, 'label')} of {quantity(ann.n_tasks, 'task')} by {workers}"
    fitted = f"{quantity(len(est.labels_), 'task')} by {quantity(len(est.workers_), 'worker')}"
    lines = [
        f"{source}: {counts}",
        f"{args.fit}: {type(est).__name__} fitted to {fitted}",
        f"  {outcome.n_known:,} of {workers} known to the fit",
    ]
    if n_unknown:
        share = outcome.n_labels_of_unknown / ann.n_labels
        count = "as the crowd's average" if n_unknown == 1 else "as the crowd's average each"
        lines.append(f"  {n_unknown:,} unknown, with {share:.1%} of the labels, {count}")
    sure = int((outcome.tasks["probability"] >= 0.95).sum())
    lines.append(f"  {sure:,} of {quantity(ann.n_tasks, 'label')} at least 95% sure")
    if outcome.n_ties:
        lines.append(f"  {quantity(outcome.n_ties, 'tie')} broken by the seed")
    if outcome.scores is not None:
        scores = outcome.scores
        lines.append(
            f"  accuracy {scores.accuracy:.4f}, Brier score {scores.brier:.4f} on "
            f"{quantity(scores.n, 'task')} of {args.truth}"
        )
    if args.out is None:
        lines += ["", first_tasks(outcome.tasks)]
    elif args.out != "-":
        lines.append(f"{args.out}: {quantity(ann.n_tasks, 'task')} written")
    return "\n".join(lines)
