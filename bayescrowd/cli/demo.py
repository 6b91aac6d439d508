"""`bayescrowd demo`: a simulated crowd, and what every method makes of it."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayescrowd.cli.arguments import (
    DEFAULT_METHOD,
    METHODS,
    PICTURES,
    Commands,
    check_outputs,
    make_estimator,
    natural_number,
)
from bayescrowd.cli.text import align

if TYPE_CHECKING:
    import pandas as pd

    from bayescrowd.aggregation.protocol import Aggregator
    from bayescrowd.data.dataset import Dataset

__all__ = ["add_to"]

PICTURE = "bayescrowd-demo.png"

_MARK = "bayescrowd demo"
"""Written into the metadata of the picture and the head of the report, to recognise them later."""

N_TASKS, N_WORKERS, LABELS_PER_TASK = 3000, 60, 6
CLASSES = {"cat": 0.5, "dog": 0.25, "fox": 0.15, "owl": 0.1}
SPAMMERS, ADVERSARIES = 0.25, 0.1
N_LISTED = 5

_DESCRIPTION = """\
Simulate a crowd with spammers and adversaries, aggregate its labels with every method, compare
the results with the truth, draw a picture and write a report. This needs neither network nor
data."""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "demo", help="try every method on a simulated crowd", description=_DESCRIPTION
    )
    parser.set_defaults(run=_run)
    parser.add_argument(
        "--out",
        metavar="PATH",
        default=".",
        help=f"file of the picture ({', '.join(PICTURES)}), or a folder for {PICTURE}; the report "
        "has the same name, ending in .html; default: the current folder",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="overwrite existing files; those of an earlier demo are always overwritten",
    )
    parser.add_argument(
        "--seed", type=natural_number, metavar="N", default=0, help="seed of the crowd; default: 0"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document instead of the summary"
    )


class _Outcome(NamedTuple):
    """What the demo found."""

    data: Dataset
    fitted: dict[str, Aggregator]
    table: pd.DataFrame
    """Indexed by method: accuracy, log_likelihood (nats), seconds."""
    best: str
    """The default method, which a user who does not know the truth would take."""
    reference: float
    """Accuracy of the labels that are most probable under the true parameters."""
    workers: pd.DataFrame
    """Workers by estimated accuracy under `best`, with their true accuracy and kind."""


def _run(args: argparse.Namespace) -> int:
    from bayescrowd.io.writing import write_picture

    path = _picture_path(args.out)
    page = path.with_suffix(".html")
    overwrite = args.force or _is_ours(path)
    overwrite_page = args.force or _is_ours(page)
    check_outputs(pictures=[str(path)], overwrite=overwrite)
    check_outputs(others=[str(page)], overwrite=overwrite_page)
    outcome = _outcome(args.seed)
    figure = _draw_picture(outcome)
    key = "Software" if path.suffix == ".png" else "Creator"
    write_picture(figure, path, overwrite=overwrite, metadata={key: _MARK})
    _write_report(outcome, page, overwrite=overwrite_page)
    if args.json:
        print(json.dumps(_document(outcome, path, page, args.seed), indent=2))
    else:
        print(_story(outcome, path, page))
    return 0


def _picture_path(out: str) -> Path:
    path = Path(out)
    if path.is_dir():
        return path / PICTURE
    if path.suffix.lower() not in PICTURES:
        raise ValueError(
            f"{path}: expected an existing folder, or a file that ends in {', '.join(PICTURES)}"
        )
    return path


def _is_ours(path: Path) -> bool:
    return path.is_file() and _MARK.encode() in path.read_bytes()


def _outcome(seed: int) -> _Outcome:
    import pandas as pd

    from bayescrowd.metrics import accuracy

    data = _crowd(seed)
    assert data.truth is not None  # simulated
    fitted, rows = {}, {}
    for name in METHODS:
        estimator = make_estimator(name)
        start = time.perf_counter()
        fitted[name] = estimator.fit(data.annotations)
        rows[name] = {
            "accuracy": accuracy(estimator.probas_, data.truth),
            "log_likelihood": estimator.log_likelihood_,
            "seconds": time.perf_counter() - start,
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
    best = DEFAULT_METHOD
    return _Outcome(
        data=data,
        fitted=fitted,
        table=table,
        best=best,
        reference=accuracy(_true_posterior(data), data.truth),
        workers=_ranked_workers(fitted[best], data),
    )


def _crowd(seed: int) -> Dataset:
    """The simulated crowd, with names for classes and workers."""
    import dataclasses

    import pandas as pd

    from bayescrowd.simulate.crowds import crowd

    data = crowd(
        N_TASKS,
        N_WORKERS,
        len(CLASSES),
        labels_per_task=LABELS_PER_TASK,
        activity=0.6,
        prevalence=list(CLASSES.values()),
        spammers=SPAMMERS,
        adversaries=ADVERSARIES,
        seed=seed,
    )
    classes = pd.Index(list(CLASSES), name="class")
    workers = pd.Index([f"w{i:02}" for i in range(1, N_WORKERS + 1)], name="worker")
    annotations = dataclasses.replace(data.annotations, classes=classes, workers=workers)
    assert data.truth is not None  # simulated
    truth = pd.Series(classes.take(data.truth.to_numpy()), data.truth.index, name="truth")
    return data._replace(annotations=annotations, truth=truth)


def _true_posterior(data: Dataset) -> pd.DataFrame:
    """P(class) of each task under the parameters the crowd was drawn from."""
    import numpy as np
    import pandas as pd

    from bayescrowd.aggregation.em import floored_log
    from bayescrowd.aggregation.whole_matrices import estimate_of, incidence

    assert data.parameters is not None  # simulated
    ann = data.annotations
    posterior = np.empty((ann.n_tasks, ann.n_classes))
    estimate = estimate_of(floored_log(data.parameters.confusions), data.parameters.prevalence)
    incidence(ann).sweep(estimate, posterior)
    return pd.DataFrame(posterior, index=ann.tasks, columns=ann.classes)


def _ranked_workers(estimator: Aggregator, data: Dataset) -> pd.DataFrame:
    import numpy as np

    assert data.parameters is not None  # simulated
    parameters = data.parameters
    workers = estimator.worker_quality_.assign(
        true_accuracy=np.einsum("wkk,k->w", parameters.confusions, parameters.prevalence),
        kind=parameters.kinds,
    )
    return workers.sort_values("accuracy", ascending=False, kind="stable")


def _draw_picture(outcome: _Outcome) -> Any:
    from bayescrowd.plots.overview import demo

    return demo(
        outcome.data,
        outcome.fitted,
        outcome.table,
        best=outcome.best,
        reference=outcome.reference,
    )


def _write_report(outcome: _Outcome, page: Path, *, overwrite: bool) -> None:
    import bayescrowd

    bayescrowd.report(
        outcome.fitted[outcome.best],
        truth=outcome.data.truth,
        path=page,
        overwrite=overwrite,
        most_dropped=0,  # a demo is over within seconds
        title=f"{_MARK}: a simulated crowd",
        source="simulated labels",
    )


def _document(outcome: _Outcome, path: Path, page: Path, seed: int) -> dict[str, Any]:
    ann = outcome.data.annotations
    return {
        "seed": seed,
        "n_tasks": ann.n_tasks,
        "n_workers": ann.n_workers,
        "n_classes": ann.n_classes,
        "n_labels": ann.n_labels,
        "methods": outcome.table.reset_index().to_dict("records"),
        "best_method": outcome.best,
        "true_model_accuracy": outcome.reference,
        "workers": outcome.workers.reset_index().to_dict("records"),
        "picture": str(path),
        "report": str(page),
    }


def _story(outcome: _Outcome, path: Path, page: Path) -> str:
    next_step = (
        f"Picture: {path}\n"
        f"Report, to be opened in a browser: {page}\n"
        "Your own labels (a table with the columns task, worker and label):\n"
        "  bayescrowd aggregate labels.csv --out aggregated.csv --workers workers.csv"
    )
    texts = [_crowd_text(outcome.data), _method_text(outcome), _worker_text(outcome), next_step]
    return "\n\n".join(texts)


def _crowd_text(data: Dataset) -> str:
    assert data.parameters is not None  # simulated
    ann, kinds = data.annotations, data.parameters.kinds
    n_spammers = sum("spammer" in kind for kind in kinds)
    n_adversaries = sum(kind == "adversary" for kind in kinds)
    shares = ", ".join(f"{share:.0%} {name}" for name, share in CLASSES.items())
    missing = 1 - ann.n_labels / (ann.n_tasks * ann.n_workers)
    per_worker = ann.labels_per_worker
    return (
        f"A simulated crowd of {ann.n_workers} workers names the animal in {ann.n_tasks:,} "
        f"pictures ({shares}).\n"
        f"{n_spammers} of them are spammers, who do not look; {n_adversaries} are adversaries, "
        "who look and name another animal;\n"
        f"the others err, each in their own way. Each picture has {LABELS_PER_TASK} labels, "
        f"{ann.n_labels:,} in all: {missing:.0%} of the table is\n"
        f"missing. The laziest worker gave {per_worker.min():,} labels, the busiest "
        f"{per_worker.max():,}."
    )


def _method_text(outcome: _Outcome) -> str:
    rows = [["method", "accuracy", "log-likelihood", "seconds", ""]]
    for name, row in outcome.table.iterrows():
        rows.append(
            [
                str(name),
                f"{row['accuracy']:.3f}",
                f"{row['log_likelihood']:,.0f}",
                f"{row['seconds']:.3f}",
                METHODS[str(name)].summary,
            ]
        )
    rows.append(["(true model)", f"{outcome.reference:.3f}", "", "", "knows every worker"])
    return (
        "What the methods make of it without seeing the truth; accuracy is the share of right "
        "labels.\n"
        f"{align(rows, left=(0, 4))}\n"
        f"The default is {outcome.best}.\n{_why(outcome)}"
    )


def _why(outcome: _Outcome) -> str:
    """How the default explains itself, in lines of at most 100 characters."""
    import textwrap

    why = getattr(outcome.fitted[outcome.best], "why_", "")
    return "\n".join(textwrap.wrap(f"It says: {why}", 100)) if why else ""


def _worker_text(outcome: _Outcome) -> str:
    header = ["worker", "accuracy", "true accuracy", "information", "labels", "flag", "true kind"]
    rows = [header]
    workers = outcome.workers
    for position, (name, worker) in enumerate(workers.iterrows()):
        if N_LISTED <= position < len(workers) - N_LISTED:
            if position == N_LISTED:
                rows.append(["...", *[""] * (len(header) - 1)])
            continue
        rows.append(
            [
                str(name),
                f"{worker['accuracy']:.3f}",
                f"{worker['true_accuracy']:.3f}",
                f"{worker['information']:.3f}",
                f"{worker['n_labels']:,}",
                worker["flag"],
                worker["kind"],
            ]
        )
    is_bad = workers["kind"] != "honest"
    is_flagged = workers["flag"] != ""
    caught, accused = int((is_bad & is_flagged).sum()), int((~is_bad & is_flagged).sum())
    return (
        f"The {N_LISTED} best and the {N_LISTED} worst workers as {outcome.best} sees them "
        "(information in nats):\n"
        f"{align(rows, left=(0, 5, 6))}\n"
        f"Flagged: {caught} of {is_bad.sum()} spammers and adversaries, and {accused} of "
        f"{(~is_bad).sum()} honest workers."
    )
